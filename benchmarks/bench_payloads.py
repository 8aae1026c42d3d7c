"""What the parent pays for elements that go to worker processes: large ones, arrays, and many small ones."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import cycle, islice
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from typing import Any, cast

from attrs import evolve

from reactive_aio import Flow, schedulers
from reactive_aio.schedulers.processes import ProcessPool

from .by_hand_services import increment
from .harness import Bar, Row
from .workload import Field, LoopFactory, Workload, peer

WORKERS = 2
PIPES = "pipes by hand"
SHARED = "shared memory by hand"
BYTES = 100_000
ARRAY = 2**17
"""Elements of 8 bytes, so a mebibyte."""
LIST = 256
AHEAD = 2 * WORKERS
"""Messages under way: for each worker what it works on and the next."""

PAYLOADS = Field()
ARRAYS = Field()
INTS = Field()


def rows(n: int) -> list[Row]:
    """CPU counts, and that of the parent alone: what the workers do is theirs."""
    payloads = Workload(
        title=f"processes, {BYTES // 1000} KB of bytes each: CPU of the parent",
        by=PAYLOADS,
        expect=_all_bytes,
        bars=(Bar(PIPES, at_most=1.5),),
        limit=PIPES,
        loops=("asyncio",),
        share=0.02,
    )
    arrays = evolve(
        payloads,
        title="processes, numpy arrays of 1 MB: CPU of the parent",
        by=ARRAYS,
        expect=_same,
        bars=(Bar(SHARED, at_most=1.2),),
        limit=SHARED,
        share=0.01,
    )
    ints = evolve(
        payloads,
        title="processes, ints: CPU of the parent",
        by=INTS,
        expect=_summed,
        bars=(Bar(PIPES, at_most=2),),
        share=0.5,
    )
    return [row for workload in (payloads, arrays, ints) for row in workload.rows(n)]


def _same(n: int) -> int:
    return n


def _all_bytes(n: int) -> int:
    return n * BYTES


def _summed(n: int) -> int:
    return n * (n + 1) // 2


# --- what all have in common -----------------------------------------------------------------------------------------


@cache
def pool() -> ProcessPool:
    return schedulers.processes(WORKERS).open()


@cache
def executor() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn"))


@cache
def served(serve: Callable[[Connection], None]) -> list[Connection]:
    """Start the workers that answer over pipes."""
    context = multiprocessing.get_context("spawn")
    ours: list[Connection] = []
    for _ in range(WORKERS):
        here, there = context.Pipe()
        context.Process(target=serve, args=(there,), daemon=True).start()
        ours.append(here)
    return ours


def exchanged(pipes: list[Connection], send: Callable[[Connection], bool]) -> Iterator[Any]:
    """Yield the answers as they come, with two messages in flight for each worker. ``send`` returns if it sent one."""
    under_way = sum(send(pipe) for pipe in pipes * 2)
    while under_way:
        for ready in wait(pipes):
            pipe = cast("Connection", ready)
            yield pipe.recv()
            under_way += send(pipe) - 1


def sending(items: Iterable[Any]) -> Callable[[Connection], bool]:
    """Send one after another, as long as there are any."""
    left = iter(items)

    def send(pipe: Connection) -> bool:
        for item in left:
            pipe.send(item)
            return True
        return False

    return send


# --- bytes -----------------------------------------------------------------------------------------------------------


def payloads(n: int) -> Iterator[bytes]:
    """Return one object after another, since the same one would be pickled once for a chunk."""
    return (bytes(BYTES) for _ in range(n))


def serve_lengths(pipe: Connection) -> None:
    while True:
        pipe.send(len(pipe.recv()))


@PAYLOADS.contestant("reactive_aio")
async def our_payloads(n: int) -> int:
    return await Flow.from_iterable(payloads(n)).publish_on(pool()).map(len).sum()


@PAYLOADS.contestant("reactive_aio, prefetch 4")
async def our_payloads_one_by_one(n: int) -> int:
    return await Flow.from_iterable(payloads(n)).publish_on(pool(), prefetch=AHEAD).map(len).sum()


@PAYLOADS.contestant(PIPES)
def payloads_by_hand(n: int, _: LoopFactory) -> int:
    return sum(exchanged(served(serve_lengths), sending(payloads(n))))


@PAYLOADS.contestant("ProcessPoolExecutor.map", note="unbounded")
def payloads_mapped(n: int, _: LoopFactory) -> int:
    return sum(executor().map(len, payloads(n)))


# --- arrays ----------------------------------------------------------------------------------------------------------


@cache
def different() -> list[Any]:
    return [peer("numpy").ones(ARRAY) for _ in range(2 * AHEAD)]


def arrays(n: int) -> Iterator[Any]:
    return islice(cycle(different()), n)


def is_whole(given: Any) -> int:
    return int(len(given) == ARRAY and given[0] == given[-1] == 1)


def serve_arrays(pipe: Connection) -> None:
    """Look at the arrays in the memory that is named first."""
    numpy = peer("numpy")
    memory = SharedMemory(pipe.recv())
    shape = (AHEAD, ARRAY)
    slots = numpy.ndarray(shape, buffer=memory.buf)
    pipe.send(None)
    while True:
        slot = pipe.recv()
        pipe.send((slot, is_whole(slots[slot])))


@cache
def shared() -> tuple[SharedMemory, list[Connection]]:
    """Start workers that have some memory in common with us, which has to be kept."""
    memory = SharedMemory(create=True, size=AHEAD * ARRAY * 8)
    pipes = served(serve_arrays)
    for pipe in pipes:
        pipe.send(memory.name)
        pipe.recv()
    memory.unlink()
    return memory, pipes


@ARRAYS.contestant("reactive_aio")
async def our_arrays(n: int) -> int:
    return await Flow.from_iterable(arrays(n)).publish_on(pool()).map(is_whole).sum()


@ARRAYS.contestant("reactive_aio, prefetch 4", note="as much as by hand")
async def our_arrays_one_by_one(n: int) -> int:
    return await Flow.from_iterable(arrays(n)).publish_on(pool(), prefetch=AHEAD).map(is_whole).sum()


@ARRAYS.contestant(SHARED, needs="numpy")
def arrays_by_hand(n: int, _: LoopFactory) -> int:
    memory, pipes = shared()
    slots = peer("numpy").ndarray((AHEAD, ARRAY), buffer=memory.buf)
    free = list(range(AHEAD))
    left = arrays(n)

    def send(pipe: Connection) -> bool:
        for item in left:
            slot = free.pop()
            slots[slot] = item
            pipe.send(slot)
            return True
        return False

    count = 0
    answers: Iterator[tuple[int, int]] = exchanged(pipes, send)
    for slot, right in answers:
        free.append(slot)
        count += right
    return count


def serve_whole(pipe: Connection) -> None:
    while True:
        pipe.send(is_whole(pipe.recv()))


@ARRAYS.contestant(PIPES, needs="numpy")
def arrays_over_pipes(n: int, _: LoopFactory) -> int:
    return sum(exchanged(served(serve_whole), sending(arrays(n))))


# --- ints ------------------------------------------------------------------------------------------------------------


def serve_incremented(pipe: Connection) -> None:
    while True:
        pipe.send([increment(item) for item in pipe.recv()])


def lists(n: int) -> Iterator[list[int]]:
    items = iter(range(n))
    while chunk := list(islice(items, LIST)):
        yield chunk


@INTS.contestant("reactive_aio")
async def our_ints(n: int) -> int:
    return await Flow.range(n).publish_on(pool()).map(increment).sum()


@INTS.contestant("reactive_aio, prefetch 1024", note="as much as by hand")
async def our_ints_like_that(n: int) -> int:
    return await Flow.range(n).publish_on(pool(), prefetch=AHEAD * LIST).map(increment).sum()


@INTS.contestant(PIPES, note=f"lists of {LIST}")
def ints_by_hand(n: int, _: LoopFactory) -> int:
    return sum(map(sum, exchanged(served(serve_incremented), sending(lists(n)))))


@INTS.contestant(f"ProcessPoolExecutor.map, chunksize={LIST}", note="unbounded")
def ints_mapped(n: int, _: LoopFactory) -> int:
    return sum(executor().map(increment, range(n), chunksize=LIST))
