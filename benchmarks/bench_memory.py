"""How much memory ten million elements need on their way through four regions."""

from __future__ import annotations

import asyncio
import tracemalloc

from reactive_aio import Flow, schedulers

from .harness import Bar, Contestant, Figures, Row

MIB = 2**20
PEAK = "peak MiB above that of 100,000"


def peak(n: int) -> float:
    """Give the peak of traced memory, in MiB, of ``n`` elements through four regions, one of them on a thread."""

    async def main() -> int:
        strings = Flow.range(n).publish_on(schedulers.current()).map(str)
        lengths = strings.publish_on(schedulers.thread("middle")).map(len)
        return await lengths.publish_on(schedulers.current()).count()

    tracemalloc.start()
    assert asyncio.run(main()) == n
    _, top = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return top / MIB


def rows(n: int) -> list[Row]:
    """Compare a long stream with a short one."""
    long = 10 * n

    def ours() -> Figures:
        peak(1_000)
        return Figures({PEAK: peak(long) - peak(100_000)})

    title = f"{long:,} elements through four regions"
    return [Row(title, long, (Contestant("reactive_aio", ours),), (Bar(at_most=5),), rounds=1, metrics=(PEAK,))]
