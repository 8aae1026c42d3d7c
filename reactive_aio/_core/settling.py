"""Waiting that is not cut short."""

from __future__ import annotations

import asyncio
from typing import Any


async def settled(*tasks: asyncio.Future[Any]) -> None:
    """Wait until tasks have ended. A cancel is put off till then, as often as it comes."""
    put_off: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as cancelled:
            put_off = cancelled
    if put_off is not None:
        raise put_off
