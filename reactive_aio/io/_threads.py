"""Blocking calls on the threads of anyio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from .._core.settling import settled
from .._core.tasks import begin_apart

R = TypeVar("R")


async def in_thread(fn: Callable[[], R], limiter: CapacityLimiter | None) -> R:
    """Call on a thread, within the ``limiter``. A cancel waits until the call has returned.

    A file must not be closed while a thread uses it.
    """
    calling = begin_apart(to_thread.run_sync(fn, limiter=limiter))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await settled(calling)
        raise
