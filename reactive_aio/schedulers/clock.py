"""The clocks of event loops."""

from __future__ import annotations

import asyncio


def has_virtual_time(loop: asyncio.AbstractEventLoop | None) -> bool:
    """Return whether the time of a loop is virtual: it passes only while the loop waits."""
    from .._clocks import VirtualTimeLoop

    return isinstance(loop, VirtualTimeLoop)
