"""Reading the messages of a query's process, and noticing its silence without a hang-up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ..._remote.frames import Decoder, Frame

BEAT: Final = 5.0
"""Seconds between two signs of life of a task."""
SILENCE: Final = 6
"""Beats that may be missed before a task counts as lost."""

Hear = Callable[[], Awaitable[Frame]]


def hearing(reader: asyncio.StreamReader) -> Hear:
    """Return a function that waits for a frame. It raises ConnectionError if the peer hangs up or falls silent."""
    decoder = Decoder()
    heard: deque[Frame] = deque()

    async def hear() -> Frame:
        while not heard:
            heard.extend(decoder.feed(await _read(reader)))
        return heard.popleft()

    return hear


async def _read(reader: asyncio.StreamReader) -> bytes:
    for _ in range(SILENCE):  # so many turns of this loop, for it may have been held up itself
        try:
            async with asyncio.timeout(BEAT):
                data = await reader.read(65536)
        except TimeoutError:
            continue
        if not data:
            raise ConnectionResetError("the process of the query has closed the connection")
        return data
    raise ConnectionAbortedError(f"the process of the query has sent nothing for {SILENCE * BEAT:g} seconds")
