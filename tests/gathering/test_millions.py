"""A million inner sources through each operator that reads them, at a stack and in memory that stay as they are.

They take minutes, so they run only where they are asked for:

    SOURCES=1000000 python3 dev.py test -s tests/gathering/test_millions.py    and show the figures
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import repeat
from pathlib import Path
from types import FrameType

import pytest
from attrs import define, field

from reactive_aio import Flow

SOURCES = int(os.environ.get("SOURCES", "0"))

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(not SOURCES, reason="minutes for a million sources: ask for them by SOURCES=..."),
    pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc"),
    pytest.mark.asyncio(loop_factories=["asyncio"]),
]

SAMPLES = 200
GROWTH = 4 << 20
"""Bytes that the process may have grown by since the first tenth of the sources: four for each of a million."""
BLOCKS = 20_000
"""Objects beyond those of the first tenth: of one turn of the loop, and what the garbage collector has not seen yet."""
FRAMES = 60
"""Frames of the stack where a source is made, beyond those of the test."""

NOTHING = Flow.empty()
ONE = Flow.of(1)


async def soon() -> int:
    return 1


AWAITED = Flow.from_awaitable(soon)


@define
class Meter:
    """Makes the sources, and looks at memory and stack each time that so many have been made."""

    made: int = 0
    blocks: list[int] = field(factory=list[int])
    memory: list[int] = field(factory=list[int])
    frames: list[int] = field(factory=list[int])

    def source(self, _: object = None) -> Flow[int]:
        """Return a source. Half are empty, most others have an element at once, and one in a hundred awaits it."""
        self.made += 1
        if self.made % (SOURCES // SAMPLES or 1) == 0:
            self.look()
        return AWAITED if self.made % 100 == 0 else ONE if self.made % 2 else NOTHING

    def ready(self, _: object = None) -> Flow[int]:
        """The same without those that are awaited: meanwhile `exhaust_map` has no use for others, and `concat_eager` keeps them."""
        source = self.source()
        return ONE if source is AWAITED else source

    def look(self) -> None:
        """Note what there is."""
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        self.blocks.append(sys.getallocatedblocks())
        self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        self.frames.append(depth())


def depth() -> int:
    """The frames of the stack."""
    frame: FrameType | None = sys._getframe(1)
    frames = 0
    while frame is not None:
        frame, frames = frame.f_back, frames + 1
    return frames


def growth(samples: list[int]) -> int:
    """How much more there has been than at the end of the first tenth."""
    return max(samples) - samples[len(samples) // 10]


Run = Callable[[Meter], Awaitable[int]]


def mapped(name: str) -> Run:
    """Map each of so many elements to a source."""
    return lambda meter: getattr(Flow.range(SOURCES), name)(meter.source).count()


def given(name: str, make: Callable[[Meter], Flow[int]]) -> Run:
    """Return a run that passes `SOURCES` sources to a method in one call."""

    def run(meter: Meter) -> Awaitable[int]:
        source = Flow.defer(lambda: make(meter))
        return getattr(source, name)(*repeat(source, SOURCES - 1)).count()  # type: ignore[no-any-return]

    return run


def retried(meter: Meter) -> Awaitable[int]:
    """Fail behind each of so many sources."""
    failing = Flow.defer(meter.source).concat(Flow.error(OSError("down")))
    return failing.retry(SOURCES - 1).on_error_complete().count()


RUNS: dict[str, Run] = {
    **{name: mapped(name) for name in ("flat_map", "concat_map", "concat_map_eager", "switch_map")},
    "exhaust_map": lambda meter: Flow.range(SOURCES).exhaust_map(meter.ready).count(),
    "merge": given("merge", Meter.source),
    "concat": given("concat", Meter.source),
    "concat_eager": given("concat_eager", Meter.ready),
    "repeat": lambda meter: Flow.defer(meter.source).repeat(SOURCES).count(),
    "retry": retried,
}


@pytest.mark.parametrize("name", RUNS)
async def test_a_million_sources_at_constant_stack_and_memory(name: str) -> None:
    gc.collect()
    meter, here, begun = Meter(), depth(), time.process_time()

    emitted = await RUNS[name](meter)

    seconds = time.process_time() - begun
    more, blocks, frames = growth(meter.memory), growth(meter.blocks), max(meter.frames) - here
    print(  # noqa: T201 - the figures are what it is run for
        f"\n{name}: {meter.made:,} sources, {emitted:,} elements, {seconds / meter.made * 1e6:.1f} us of CPU each; "
        f"{more / 1024:,.0f} KiB and {blocks:,} objects more than after the first tenth, {frames} frames"
    )
    if name == "exhaust_map":  # which has no use for elements that come while a source waits for its turn of the loop
        assert meter.made >= 0.99 * SOURCES
    else:
        assert meter.made == SOURCES
    if name != "switch_map":  # which leaves a source that is awaited for the next one
        assert emitted == (meter.made + 1) // 2 + meter.made // 100
    assert more <= GROWTH
    assert blocks <= BLOCKS
    assert frames <= FRAMES
