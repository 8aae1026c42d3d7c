"""How much memory ten million elements need on their way through two boundaries."""

from __future__ import annotations

import asyncio
import tracemalloc

from reactive_aio import Flow, schedulers

MIB = 2**20


def peak(n: int) -> int:
    """Give the peak of traced memory, in bytes, of ``n`` elements through two boundaries."""

    async def main() -> int:
        flow = Flow.range(n).publish_on(schedulers.current()).map(str).publish_on(schedulers.current())
        return await flow.count()

    tracemalloc.start()
    assert asyncio.run(main()) == n
    _, top = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return top


def report(*, quick: bool) -> tuple[str, bool]:
    """Compare a long stream with a short one; flat means within 5 MiB."""
    peak(1_000)
    short, n = peak(100_000), 1_000_000 if quick else 10_000_000
    long = peak(n)
    text = f"{n:,} elements through two boundaries: peak {long / MIB:.2f} MiB, 100,000: {short / MIB:.2f} MiB"
    return text, long - short < 5 * MIB
