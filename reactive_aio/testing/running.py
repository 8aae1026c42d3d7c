"""Running a coroutine on virtual time from ordinary code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from .._clocks.virtual import VirtualTimeLoop

T = TypeVar("T")


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a VirtualTimeLoop of its own, as ``asyncio.run`` does on an ordinary loop.

    >>> import asyncio
    >>> run_virtual(asyncio.sleep(86400, "a day later"))
    'a day later'
    """
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
