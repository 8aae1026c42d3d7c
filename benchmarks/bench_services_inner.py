"""Streams of services: small flows, one for each element or each request, and runs of the same flow again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from attrs import evolve

from reactive_aio import Flow

from .by_hand_services import increment, ready
from .harness import Bar, Row
from .workload import Field, LoopFactory, Workload, peer

BY_HAND = "async generator for each"
STREAMABLE = "streamable"

SINGLE = Field()
OF = Field()
FLAT_MAP = Field()
CONCAT_MAP = Field()
REPEAT = Field()
RETRY = Field()

GIVEN = Flow.of(1)


def rows(n: int) -> list[Row]:
    """An element is a whole flow, or a run of one."""
    found: list[Row] = []
    for workload in (*_single(), *_inner("flat_map", FLAT_MAP), *_inner("concat_map", CONCAT_MAP), *_runs()):
        found += workload.rows(n)
    return found


def _single() -> list[Workload]:
    before = Workload(
        title="of(1).map(f).to_list(), built before",
        by=SINGLE,
        given={"building": False},
        bars=(Bar(STREAMABLE, at_most=2),),
        limit=STREAMABLE,
        loops=("asyncio",),
        share=0.1,
    )
    within = evolve(
        before,
        title="of(1).map(f).to_list(), with building",
        given={"building": True},
        bars=(Bar(STREAMABLE, at_most=3),),
    )
    of = evolve(before, title="Flow.of(x) itself", by=OF, given={}, bars=(Bar(at_most=1_000),), limit="")
    return [before, within, of]


def _inner(operator: str, field: Field) -> list[Workload]:
    """Return the workloads of an operator that reads a flow for each element."""
    given = Workload(
        title=f"{operator} to one given element, built before",
        by=field,
        given={"inner": _given, "generated": ready_one},
        bars=(Bar(BY_HAND, at_most=4),),
        limit=BY_HAND,
        loops=("asyncio",),
        share=0.1,
    )
    built = evolve(
        given,
        title=f"{operator} to one given element, built in the function",
        given={"inner": _built, "generated": ready_one},
        bars=(Bar(BY_HAND, at_most=10),),
    )
    generated = evolve(
        given,
        title=f"{operator} to an async generator of 3",
        given={"inner": _awaited, "generated": _ready_three},
        bars=(Bar(BY_HAND, at_most=20),),
        expect=_three_each,
    )
    result = evolve(
        built,
        title=f"{operator} to one awaited result",
        given={"inner": _result, "generated": ready_one},
        bars=(),
    )
    return [given, built, result, generated]


def _runs() -> list[Workload]:
    repeated = Workload(
        title="repeat of one given element, a run",
        by=REPEAT,
        bars=(Bar(at_most=4_000),),
        limit="loop by hand",
        loops=("asyncio",),
        share=0.1,
    )
    return [repeated, evolve(repeated, title="retry of a map that fails, a run", by=RETRY)]


# --- one flow --------------------------------------------------------------------------------------------------------


@SINGLE.contestant("reactive_aio")
async def our_single(n: int, *, building: bool) -> int:
    flow = Flow.of(1).map(increment)
    count = 0
    for _ in range(n):
        if building:
            flow = Flow.of(1).map(increment)
        count += len(await flow.to_list())
    return count


@SINGLE.contestant("by hand")
async def single_by_hand(n: int, *, building: bool) -> int:
    async def one() -> list[int]:
        return [increment(item) async for item in ready(1)]

    count = 0
    for _ in range(n):
        count += len(await one())
    return count


@SINGLE.contestant(STREAMABLE, needs="streamable")
async def streamable_single(n: int, *, building: bool) -> int:
    stream, given = peer("streamable").stream, (1,)
    chain = stream(given).map(increment)
    count = 0
    for _ in range(n):
        if building:
            chain = stream(given).map(increment)
        count += len([item async for item in chain])
    return count


@SINGLE.contestant("aiostream", needs="aiostream")
async def aiostream_single(n: int, *, building: bool) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.just(1) | pipe.map(increment) | pipe.list()
    count = 0
    for _ in range(n):
        if building:
            chain = stream.just(1) | pipe.map(increment) | pipe.list()
        count += len(await chain)
    return count


@SINGLE.contestant("reactivex", needs="reactivex")
async def reactivex_single(n: int, *, building: bool) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    chain = rx.of(1).pipe(operators.map(increment), operators.to_list())
    count = 0
    for _ in range(n):
        if building:
            chain = rx.of(1).pipe(operators.map(increment), operators.to_list())
        count += len(await chain)
    return count


@OF.contestant("reactive_aio")
def our_of(n: int, _: LoopFactory) -> int:
    for item in range(n):
        Flow.of(item)
    return n


@OF.contestant(STREAMABLE, needs="streamable")
def streamable_of(n: int, _: LoopFactory) -> int:
    stream = peer("streamable").stream
    for item in range(n):
        stream((item,))
    return n


@OF.contestant("reactivex", needs="reactivex")
def reactivex_of(n: int, _: LoopFactory) -> int:
    rx = peer("reactivex")
    for item in range(n):
        rx.of(item)
    return n


# --- a flow for each element -----------------------------------------------------------------------------------------

Inner = Callable[[int], Flow[int]]
Generated = Callable[[int], AsyncGenerator[int]]


async def ready_one(_: int = 0) -> AsyncGenerator[int]:
    """Yield one number."""
    yield 1


def _ready_three(_: int) -> AsyncGenerator[int]:
    return ready(3)


def _given(_: int) -> Flow[int]:
    return GIVEN


def _built(_: int) -> Flow[int]:
    return Flow.of(1)


async def one() -> int:
    """Return a number without ever waiting."""
    return 1


def _result(_: int) -> Flow[int]:
    return Flow.from_awaitable(one)


def _awaited(_: int) -> Flow[int]:
    return Flow.from_async_iterable(ready(3))


def _three_each(n: int) -> int:
    return 3 * n


async def _nested(n: int, generated: Generated) -> int:
    count = 0
    for item in range(n):
        async for _ in generated(item):
            count += 1
    return count


async def _streamable_flat(n: int, generated: Generated, concurrency: int) -> int:
    count = 0
    async for _ in peer("streamable").stream(range(n)).map(generated).flatten(concurrency=concurrency):
        count += 1
    return count


@FLAT_MAP.contestant("reactive_aio")
async def our_flat_map(n: int, inner: Inner, generated: Generated) -> int:
    return await Flow.range(n).flat_map(inner).count()


@CONCAT_MAP.contestant("reactive_aio")
async def our_concat_map(n: int, inner: Inner, generated: Generated) -> int:
    return await Flow.range(n).concat_map(inner).count()


@FLAT_MAP.contestant(BY_HAND)
async def flat_map_by_hand(n: int, inner: Inner, generated: Generated) -> int:
    return await _nested(n, generated)


@CONCAT_MAP.contestant(BY_HAND)
async def concat_map_by_hand(n: int, inner: Inner, generated: Generated) -> int:
    return await _nested(n, generated)


@FLAT_MAP.contestant(STREAMABLE, needs="streamable", note="8 at a time")
async def streamable_flat_map(n: int, inner: Inner, generated: Generated) -> int:
    return await _streamable_flat(n, generated, 8)


@CONCAT_MAP.contestant(STREAMABLE, needs="streamable")
async def streamable_concat_map(n: int, inner: Inner, generated: Generated) -> int:
    return await _streamable_flat(n, generated, 1)


@CONCAT_MAP.contestant("asyncstdlib", needs="asyncstdlib")
async def asyncstdlib_concat_map(n: int, inner: Inner, generated: Generated) -> int:
    chained = peer("asyncstdlib").chain.from_iterable(generated(item) for item in range(n))
    return len([None async for _ in chained])


async def _aiostream_flat(n: int, generated: Generated, operator: str) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.range(n) | getattr(pipe, operator)(generated)
    async with chain.stream() as items:
        return len([None async for _ in items])


@FLAT_MAP.contestant("aiostream", needs="aiostream")
async def aiostream_flat_map(n: int, inner: Inner, generated: Generated) -> int:
    return await _aiostream_flat(n, generated, "flatmap")


@CONCAT_MAP.contestant("aiostream", needs="aiostream")
async def aiostream_concat_map(n: int, inner: Inner, generated: Generated) -> int:
    return await _aiostream_flat(n, generated, "concatmap")


# --- the same flow again ---------------------------------------------------------------------------------------------


@REPEAT.contestant("reactive_aio")
async def our_repeat(n: int) -> int:
    return await Flow.of(1).repeat(n).count()


@REPEAT.contestant("loop by hand")
async def repeat_by_hand(n: int) -> int:
    count = 0
    for _ in range(n):
        async for _item in ready_one():
            count += 1
    return count


@REPEAT.contestant("reactivex", needs="reactivex")
async def reactivex_repeat(n: int) -> int:
    operators = peer("reactivex.operators")
    count: int = await peer("reactivex").of(1).pipe(operators.repeat(n), operators.count())
    return count


class Failing:
    """Counts its calls, and fails in each."""

    calls = 0

    def call(self, _: int) -> int:
        """Fail."""
        self.calls += 1
        raise OSError("down")


@RETRY.contestant("reactive_aio")
async def our_retry(n: int) -> int:
    failing = Failing()
    await Flow.of(1).map(failing.call).retry(n - 1).on_error_complete().count()
    return failing.calls


@RETRY.contestant("loop by hand")
async def retry_by_hand(n: int) -> int:
    failing = Failing()
    for _ in range(n):
        try:
            [failing.call(item) async for item in ready_one()]
        except OSError:
            continue
    return failing.calls


@RETRY.contestant("reactivex", needs="reactivex")
async def reactivex_retry(n: int) -> int:
    rx, operators, failing = peer("reactivex"), peer("reactivex.operators"), Failing()
    attempts = rx.of(1).pipe(operators.map(failing.call), operators.retry(n))
    await attempts.pipe(operators.catch(rx.empty()), operators.count())
    return failing.calls
