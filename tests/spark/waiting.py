"""Waiting for what has to happen by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final

LIMIT: Final = 120.0
"""Seconds after which a wait has failed: on a busy machine the Python worker of a task takes ten to start, and not one."""


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.005)


def only_task() -> bool:
    """Return whether the test is all that runs on the loop."""
    return asyncio.all_tasks() == {asyncio.current_task()}


def nothing_runs() -> bool:
    """Return whether neither another task runs on the loop nor a thread of the library: a subscriber waits for no thread to end."""
    return only_task() and not [thread for thread in threading.enumerate() if "reactive_aio" in thread.name]
