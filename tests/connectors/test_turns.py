"""A chunk may stand for thousands of elements: the event loop has its turns all the same."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._core import budgets
from reactive_aio.io import decompress, json_lines, read_lines, split_lines
from reactive_aio.web import split_events
from tests.subscribers import ByHand, idle

NUMBER = 300
SLOW = 0.6e-3
"""Seconds that the function behind takes for an element: two of these are longer than a turn."""

Read = Callable[[Flow[bytes]], Flow[Any]]
READ: dict[str, Read] = {
    "split_lines": split_lines,
    "split_lines, each nearly too long": lambda body: split_lines(body, max_line=4),
    "json_lines": json_lines,
    "split_events": split_events,
    "decompress": lambda body: decompress(body, "gzip", max_bytes=10**8),
}
CONTENT = {
    "split_lines": b"line\n" * NUMBER,
    "split_lines, each nearly too long": b"line\n" * NUMBER,
    "json_lines": b"[1]\n" * NUMBER,
    "split_events": b"data: x\n\n" * NUMBER,
    "decompress": gzip.compress(bytes(65_536 * NUMBER)),
}
FILES: dict[str, Callable[[Path], Flow[Any]]] = {
    "read_lines": read_lines,
    "read_lines of another encoding": lambda path: read_lines(path, encoding="shift_jis"),
}


@pytest.mark.parametrize("way", [*READ, *FILES])
async def test_slow_work_on_the_elements_of_one_chunk_leaves_the_event_loop_its_turns(
    way: str, tmp_path: Path, still: list[float]
) -> None:
    path = tmp_path / "content"
    path.write_bytes(CONTENT.get(way, b"line\n" * NUMBER))
    elements = FILES[way](path) if way in FILES else READ[way](Flow.of(path.read_bytes()))
    turns, at = 0, list[int]()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def slow(item: object) -> object:
        still[0] += SLOW
        at.append(turns)
        return item

    counting = asyncio.create_task(count_turns())
    number = await elements.map(slow).count()
    counting.cancel()

    assert NUMBER <= number
    assert NUMBER // 3 <= at[-1] - at[0], "a turn about every millisecond, from the first element to the last"


async def test_lines_that_make_no_event_leave_the_event_loop_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", count(step=budgets.TURN / 4).__next__)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    assert [] == await split_events(Flow.of(b": beat\n\n" * 3_000)).to_list()
    counting.cancel()

    assert turns > 20, "a few lines between two looks at the clock, and a turn after some of these"


@pytest.mark.parametrize("way", READ)
async def test_all_of_a_chunk_comes_though_no_other_follows_and_the_next_is_asked_for_behind_it(
    way: str, still: list[float]
) -> None:
    source, taken = ByHand(), list[object]()

    def slow(item: object) -> object:
        still[0] += SLOW
        return item

    def take(item: object) -> None:
        taken.append(item)
        # A list of elements is known to be at its end with the last of them.
        assert len(taken) >= NUMBER or [1] == source.requests

    taking = asyncio.create_task(READ[way](Flow.from_publisher(source)).map(slow).for_each(take))
    await idle()
    source.next(CONTENT[way])
    await idle(10 * NUMBER)
    taking.cancel()
    await asyncio.wait([taking])

    assert ([1, 1], True) == (source.requests, NUMBER <= len(taken))
