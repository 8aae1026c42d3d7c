"""The example of the specification: every layout from socket to socket, and its pictures in the docs."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from examples import selector
from reactive_aio import Flow

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "concepts" / "boundaries.md"

Layout = Callable[[int], Flow[int]]
every_layout = pytest.mark.parametrize("layout", selector.LAYOUTS, ids=lambda layout: layout.__name__)


@every_layout
async def test_what_is_sent_at_one_end_arrives_at_the_other(layout: Layout) -> None:
    before = {*threading.enumerate(), *asyncio.all_tasks()}

    arrived = await selector.run(layout, 3000)

    assert [n * n for n in range(3000) if n % 2] == arrived
    assert {*threading.enumerate(), *asyncio.all_tasks()} <= before


@every_layout
async def test_a_far_side_that_does_not_read_stops_the_one_that_writes(layout: Layout) -> None:
    served = 0
    stalled, go_on = asyncio.Event(), asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        for number in range(2_000_000):
            writer.write(b"%0100d\n" % number)
            await writer.drain()
            served += 1

    async def send(_: int) -> None:
        stalled.set()
        await go_on.wait()

    async with await asyncio.start_server(serve, selector.HOST, 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        running = asyncio.ensure_future(layout(port).for_each(send))
        await stalled.wait()
        # It has stopped when nothing is served any more while everybody else has turns.
        quiet, last = 0, -1
        while quiet < 50:
            await asyncio.sleep(0.001)
            quiet, last = (quiet + 1, last) if served == last else (0, served)
        assert served < 2_000_000
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


@every_layout
def test_the_page_shows_the_layout_and_its_picture(layout: Layout) -> None:
    flow = layout(0)
    page = PAGE.read_text(encoding="utf-8")
    picture = ROOT / "docs" / "pictures" / f"{layout.__name__}.svg"

    assert flow.describe("line", end="for_each(send)") in page
    assert f"../pictures/{picture.name}" in page
    assert flow.diagram(end="for_each(send)") == picture.read_text(encoding="utf-8").rstrip(), (
        "draw it again: python -m examples.selector docs/pictures"
    )


def test_the_blocks_of_the_page_are_the_layouts() -> None:
    blocks = re.findall(r"^flow = \(\n(.*?)^\)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    source = Path(selector.__file__).read_text(encoding="utf-8")
    returned = re.findall(r"^    return \(\n(.*?)^    \)", source, re.MULTILINE | re.DOTALL)

    assert len(selector.LAYOUTS) == len(blocks)
    for block, layout in zip(blocks, returned, strict=True):
        assert block.replace("port=8000", "port").split() == layout.split()
