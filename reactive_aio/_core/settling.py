"""Waiting that is not cut short."""

from __future__ import annotations

import asyncio
from typing import Any


async def settled(*tasks: asyncio.Future[Any]) -> None:
    """Wait until tasks have ended. Each cancel meanwhile is delayed until then."""
    put_off: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as cancelled:
            put_off = cancelled
    if put_off is not None:
        raise put_off
