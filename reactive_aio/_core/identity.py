"""Which task is the current one: for code that goes on in the name of another task, in the middle of a step of the running one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

AnyTask = asyncio.Task[Any]

swap_current_task: Callable[[asyncio.AbstractEventLoop, AnyTask | None], AnyTask | None]
"""Makes another task the current one of an event loop, and returns the one before. Each call has to be undone in the same step."""

if sys.version_info >= (3, 12):
    swap_current_task = getattr(asyncio.tasks, "_swap_current_task")  # noqa: B009, as its type is not known
else:
    _tasks: dict[asyncio.AbstractEventLoop, AnyTask] = getattr(asyncio.tasks, "_current_tasks")  # noqa: B009

    def _swap(loop: asyncio.AbstractEventLoop, task: AnyTask | None) -> AnyTask | None:
        before = _tasks.get(loop)
        if task is None:
            del _tasks[loop]
        else:
            _tasks[loop] = task
        return before

    swap_current_task = _swap
