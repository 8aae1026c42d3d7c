"""The example of the Reactive Streams specification, on real sockets, with its boundaries wherever one wants them.

    nioSelectorThreadOrigin map(f) filter(p) consumeTo(toNioSelectorOutput)

The origin is a TCP socket, which the event loop of its region reads. The output is another socket, which the consuming loop
writes. The elements are lines of numbers. A slow output slows the origin, down to the window of its socket.

    python -m examples.selector                  runs each layout, from socket to socket
    python -m examples.selector docs/pictures    draws them
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from reactive_aio import Flow, schedulers

HOST = "127.0.0.1"

Send = Callable[[int], Awaitable[None]]
Emit = Callable[[bytes], Awaitable[None]]


def nio_selector_origin(port: int) -> Flow[bytes]:
    """Emit the lines that come in over a TCP connection, read through the event loop of the region."""

    async def read_socket(emit: Emit) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            async for line in reader:
                await emit(line)
        finally:
            writer.close()
            await writer.wait_closed()

    return Flow.create(read_socket)


@asynccontextmanager
async def nio_selector_output(port: int) -> AsyncGenerator[Send]:
    """Yield a function that sends a number over a TCP connection, and waits when the other side is slow."""
    _, writer = await asyncio.open_connection(HOST, port)

    async def send(number: int) -> None:
        writer.write(b"%d\n" % number)
        await writer.drain()

    try:
        yield send
    finally:
        writer.close()
        await writer.wait_closed()


def f(line: bytes) -> int:
    """Read a number and square it."""
    return int(line) ** 2


def p(number: int) -> bool:
    """Keep odd numbers."""
    return number % 2 == 1


# -- the layouts: the same four steps, cut in different places


def four_regions(port: int) -> Flow[int]:
    """Schedule every step by itself."""
    return (
        nio_selector_origin(port)
        .subscribe_on(schedulers.thread("selector"))
        .publish_on(schedulers.thread("mapper"), prefetch=64)
        .map(f)
        .publish_on(schedulers.thread("picker"), prefetch=64)
        .filter(p)
        .publish_on(schedulers.current(), prefetch=64)
    )


def boundary_before_the_last(port: int) -> Flow[int]:
    """Do the work on the thread of the origin, and schedule only the output."""
    return (
        nio_selector_origin(port)
        .subscribe_on(schedulers.thread("selector"))
        .map(f)
        .filter(p)
        .publish_on(schedulers.current(), prefetch=64)
    )


def boundary_after_the_first(port: int) -> Flow[int]:
    """Fuse the work with the output."""
    return (
        nio_selector_origin(port)
        .subscribe_on(schedulers.thread("selector"))
        .publish_on(schedulers.current(), prefetch=64)
        .map(f)
        .filter(p)
    )


def across_processes(port: int) -> Flow[int]:
    """Do the work in other processes, in order, and what is left at home."""
    return (
        nio_selector_origin(port)
        .subscribe_on(schedulers.thread("selector"))
        .publish_on(schedulers.processes(2), prefetch=1024)
        .map(f)
        .filter(p)
    )


LAYOUTS: Sequence[Callable[[int], Flow[int]]] = (
    four_regions,
    boundary_before_the_last,
    boundary_after_the_first,
    across_processes,
)


# -- the other side of the sockets


@asynccontextmanager
async def far_side(count: int) -> AsyncGenerator[tuple[int, int, asyncio.Queue[list[int]]]]:
    """Serve numbers on one port and collect answers on another; give both ports, and the answers of each connection."""
    collected: asyncio.Queue[list[int]] = asyncio.Queue(maxsize=16)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(count):
            writer.write(b"%d\n" % number)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        numbers = [int(line) async for line in reader]
        writer.close()
        await writer.wait_closed()
        await collected.put(numbers)

    source, sink = await asyncio.start_server(serve, HOST, 0), await asyncio.start_server(collect, HOST, 0)
    async with source, sink:
        yield source.sockets[0].getsockname()[1], sink.sockets[0].getsockname()[1], collected


async def run(layout: Callable[[int], Flow[int]], count: int) -> list[int]:
    """Run one layout from socket to socket; give what has arrived at the far side."""
    async with far_side(count) as (source, sink, collected):
        async with nio_selector_output(sink) as send:
            await layout(source).for_each(send)
        return await collected.get()


async def main() -> None:
    """Run the layouts one after another."""
    for layout in LAYOUTS:
        print(f"{layout.__name__.replace('_', ' ')}\n")
        print(layout(0).describe("line", end="for_each(send)"), "\n")
        arrived = await run(layout, 10_000)
        print(f"{len(arrived):,} numbers have arrived, the last of them {arrived[-1]:,}\n")


def draw(folder: Path) -> None:
    """Draw the layouts."""
    for layout in LAYOUTS:
        picture = layout(0).diagram(end="for_each(send)")
        (folder / f"{layout.__name__}.svg").write_text(picture + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    else:
        asyncio.run(main())
