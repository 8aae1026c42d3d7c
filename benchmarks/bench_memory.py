"""Memory: what piles up between a fast producer and a slow consumer, and what ten million elements leave behind."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import anyio
from attrs import define

from reactive_aio import Flow, schedulers

from . import queues
from .harness import Bar, Contestant, Figures, Row
from .workload import Field, Workload, peer

SIZE = 256
MIB = 2**20
PEAK = "peak MiB above that of 100,000"
BACKLOG = "most elements waiting"

WAITING = Field()


def rows(n: int) -> list[Row]:
    """The pile, and the length of a stream."""
    waiting = Workload(
        title=f"fast producer, slow consumer, a buffer of {SIZE} declared",
        by=WAITING,
        fixed=2_000,
        bars=(Bar(at_most=SIZE), Bar(at_most=SIZE, of="reactive_aio, from a thread")),
        rounds=1,
        metrics=(BACKLOG,),
    )
    return [*waiting.rows(n), flat(10 * n)]


# --- a fast producer and a slow consumer -----------------------------------------------------------------------------


@define
class Pile:
    """The elements that have been made and not used yet, and the most there were at a time."""

    made: int = 0
    used: int = 0
    most: int = 0

    def make(self, n: int) -> Iterator[int]:
        """Make numbers, and keep count."""
        for item in range(n):
            self.made += 1
            yield item

    async def make_async(self, n: int) -> AsyncIterator[int]:
        """Make numbers for those who take async iterables only."""
        for item in self.make(n):
            yield item

    async def use(self) -> None:
        """Take several turns of the loop over an element."""
        self.note()
        for _ in range(5):
            await asyncio.sleep(0)

    def note(self) -> None:
        """Look how much waits, and use one."""
        self.most = max(self.most, self.made - self.used)
        self.used += 1

    def figures(self) -> Figures:
        """Return the most that waited."""
        # The one that is being used waits no more.
        return Figures({BACKLOG: self.most - 1}, self.used)


@WAITING.contestant("reactive_aio")
async def ours(n: int) -> Figures:
    pile = Pile()
    async for _ in Flow.from_iterable(pile.make(n)).publish_on(schedulers.current(), prefetch=SIZE):
        await pile.use()
    return pile.figures()


@WAITING.contestant("reactive_aio, from a thread")
async def ours_from_thread(n: int) -> Figures:
    pile = Pile()
    made = Flow.from_iterable(pile.make(n)).subscribe_on(schedulers.thread("making"))
    async for _ in made.publish_on(schedulers.current(), prefetch=SIZE):
        await pile.use()
    return pile.figures()


async def _through(n: int, queue: queues.Queue) -> Figures:
    pile = Pile()

    async def produce() -> None:
        for item in pile.make(n):
            await queue.put(item)
        await queue.put(None)

    task = asyncio.create_task(produce())
    while await queue.get() is not None:
        await pile.use()
    await task
    return pile.figures()


@WAITING.contestant("asyncio.Queue")
async def asyncio_queue(n: int) -> Figures:
    return await _through(n, asyncio.Queue[int | None](SIZE))


@WAITING.contestant("anyio")
async def anyio_stream(n: int) -> Figures:
    send, receive = anyio.create_memory_object_stream[int | None](SIZE)
    with send, receive:
        return await _through(n, queues.Methods(send.send, receive.receive))


@WAITING.contestant("aiochan", needs="aiochan")
async def aiochan(n: int) -> Figures:
    return await _through(n, queues.AiochanQueue(SIZE))


@WAITING.contestant("aiologic", needs="aiologic")
async def aiologic(n: int) -> Figures:
    return await _through(n, queues.aiologic_queue(SIZE))


@WAITING.contestant("culsans", needs="culsans")
async def culsans(n: int) -> Figures:
    return await _through(n, queues.culsans_queue(SIZE))


@WAITING.contestant("janus", needs="janus")
async def janus(n: int) -> Figures:
    return await _through(n, queues.janus_queue(SIZE))


@WAITING.contestant("aiostream", needs="aiostream", note="pulled: it has no buffer")
async def aiostream(n: int) -> Figures:
    pile = Pile()
    async with peer("aiostream").stream.iterate(pile.make(n)).stream() as items:
        async for _ in items:
            await pile.use()
    return pile.figures()


@WAITING.contestant("pypeln.task", needs="pypeln", note="two queues of that size")
async def pypeln(n: int) -> Figures:
    pile = Pile()
    async for _ in peer("pypeln").task.map(_same, pile.make_async(n), maxsize=SIZE):
        await pile.use()
    return pile.figures()


def _same(item: int) -> int:
    return item


@WAITING.contestant("reactivex", needs="reactivex", note="has no bound to declare")
async def reactivex(n: int) -> Figures:
    """A consumer that is a coroutine function can only be spawned for each element."""
    pile, operators = Pile(), peer("reactivex.operators")
    here = peer("reactivex.scheduler.eventloop").AsyncIOScheduler(asyncio.get_running_loop())

    def use(_: int) -> asyncio.Task[None]:
        return asyncio.create_task(pile.use())

    source = peer("reactivex").from_iterable(pile.make(n))
    await source.pipe(operators.observe_on(here), operators.flat_map(use), operators.count())
    return pile.figures()


@WAITING.contestant("streamable", needs="streamable")
async def streamable(n: int) -> Figures:
    pile = Pile()
    async for _ in peer("streamable").stream(pile.make_async(n)).buffer(SIZE):
        await pile.use()
    return pile.figures()


@WAITING.contestant("streamz", needs="streamz")
async def streamz(n: int) -> Figures:
    pile, done = Pile(), asyncio.Event()

    async def use(_: int) -> None:
        await pile.use()
        if pile.used == n:
            done.set()

    source = peer("streamz").Stream(asynchronous=True)
    source.buffer(SIZE).sink(use)
    for item in pile.make(n):
        await source.emit(item)
    await done.wait()
    return pile.figures()


# --- a long stream ---------------------------------------------------------------------------------------------------


def peak(n: int) -> float:
    """Return the peak of traced memory, in MiB, of ``n`` elements through four regions, one of them on a thread."""

    async def main() -> int:
        strings = Flow.range(n).publish_on(schedulers.current()).map(str)
        lengths = strings.publish_on(schedulers.thread("middle")).map(len)
        return await lengths.publish_on(schedulers.current()).count()

    tracemalloc.start()
    assert asyncio.run(main()) == n
    _, top = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return top / MIB


def flat(n: int) -> Row:
    """Compare a long stream with a short one."""

    def ours() -> Figures:
        peak(1_000)
        return Figures({PEAK: peak(n) - peak(100_000)})

    title = f"{n:,} elements through four regions"
    bars = (Bar(at_most=5),)
    return Row(title, n, (Contestant("reactive_aio", ours),), bars, rounds=1, metrics=(PEAK,))
