"""Types survive a chain: read by mypy and pyright in strict mode; running it only shows that it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, assert_type

import attrs

from reactive_aio import (
    Backoff,
    Completed,
    Emitter,
    Failed,
    Flow,
    FlowIterator,
    GroupedFlow,
    KeyedFlow,
    Next,
    Poll,
    Publisher,
    SynchronousSink,
    schedulers,
)
from reactive_aio._fusion import Stage
from tests.subscribers import Recorder

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row

    from reactive_aio.spark.sink import BatchWriter, Committed


def is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


async def numbers() -> AsyncIterator[int]:
    yield 1


async def producer(emit: Callable[[bytes], Awaitable[None]]) -> None:
    await emit(b"")


async def answer(about: object, times: int) -> bool:
    return False


def register(emitter: Emitter[str]) -> None:
    assert_type(emitter.next("a"), bool)


async def register_later(emitter: Emitter[str]) -> Callable[[], Awaitable[None]]:
    return lambda: asyncio.sleep(0)


class Inbox:
    async def fetch(self, n: int) -> list[str]:
        raise StopAsyncIteration

    async def idle(self) -> None: ...

    async def close(self) -> None: ...


@asynccontextmanager
async def opened() -> AsyncGenerator[Poll[str]]:
    yield Inbox()


def polled() -> Iterator[str | None]:
    yield None


def keep(n: int, sink: SynchronousSink[str]) -> None:
    sink.next(str(n))


class Shown(Stage[int, str]):
    def apply(self, items: Iterator[int]) -> Iterator[str]:
        return map(str, items)


@attrs.frozen
class Point:
    x: int


def rows_of_spark(frame: DataFrame, rdd: RDD[bytes]) -> None:
    """Never called: it takes a session."""
    assert_type(Flow.from_spark(rdd), Flow[bytes])
    assert_type(Flow.from_spark(frame), Flow[Row])
    assert_type(Flow.from_spark(frame, as_=tuple), Flow[tuple[Any, ...]])
    assert_type(Flow.from_spark(frame, as_=dict, ordered=False), Flow[dict[str, Any]])
    assert_type(Flow.from_spark(frame, as_=Point, prefetch=64), Flow[Point])
    assert_type(Flow.from_spark(frame, as_=Point).to_frame(Point), DataFrame)
    assert_type(Flow.from_spark(frame, as_=Point).to_rdd(), RDD[Point])


async def written_by_spark(writer: BatchWriter) -> None:
    """Never called: it takes a session."""
    assert_type(await Flow.of(Point(1)).to_spark(writer, Point, size=10), Committed)


def test_sources() -> None:
    assert_type(Flow.of(1, 2), Flow[int])
    assert_type(Flow.from_iterable(["a"]), Flow[str])
    assert_type(Flow.range(3), Flow[int])
    assert_type(Flow.empty(), Flow[NoReturn])
    assert_type(Flow.never(), Flow[NoReturn])
    assert_type(Flow.of(1).concat(Flow.error(OSError())), Flow[int])
    assert_type(Flow.defer(lambda: Flow.of("a")), Flow[str])
    assert_type(Flow.from_async_iterable(numbers()), Flow[int])
    assert_type(Flow.create(producer), Flow[bytes])
    assert_type(Flow.from_publisher(Flow.of(1.5)), Flow[float])
    assert_type(Flow.from_callback(register), Flow[str])
    assert_type(Flow.from_callback(register_later), Flow[str])
    assert_type(Flow.from_poll(opened), Flow[str])
    assert_type(Flow.from_blocking(polled), Flow[str])
    assert_type(Flow.interval(1), Flow[int])


def test_operators() -> None:
    flow = Flow.range(3)
    assert_type(flow.map(str), Flow[str])
    assert_type(flow.map(lambda n: n / 2), Flow[float])
    assert_type(flow.map(lambda n: [n]).map(lambda ns: ns[0]), Flow[int])
    assert_type(flow.filter(lambda n: n > 1), Flow[int])
    assert_type(Flow.of(1, "a").filter(is_text), Flow[str])
    assert_type(flow.take(1).skip(1), Flow[int])
    assert_type(flow.take_last(1).skip_last(1)[1:], Flow[int])
    assert_type(flow.take_while(bool).take_until(bool).skip_while(bool), Flow[int])
    assert_type(flow.take_until_other(Flow.of("a")), Flow[int])
    assert_type(flow.take_until_other(asyncio.Event()).take_until_other(lambda: asyncio.sleep(1)), Flow[int])
    assert_type(flow.distinct().distinct(str), Flow[int])
    assert_type(
        flow.distinct_until_changed().distinct_until_changed(str, comparer=lambda a, b: a.lower() == b), Flow[int]
    )
    assert_type(Flow.of(1, "a").of_type(str), Flow[str])
    assert_type(flow.ignore_elements().concat(Flow.of("a")), Flow[str])
    assert_type(flow.flat_map_iterable(lambda n: [str(n)]), Flow[str])
    assert_type(flow.map_not_none({1: "a"}.get), Flow[str])
    assert_type(flow.scan(lambda a, b: a + b), Flow[int])
    assert_type(flow.scan(lambda text, n: text + str(n), ""), Flow[str])
    assert_type(flow.index().map(lambda pair: pair[0]), Flow[int])
    assert_type(flow.map_batches(lambda items: [str(item) for item in items], size=3), Flow[str])
    assert_type(flow.sort_by(lambda n: -n), Flow[int])
    assert_type(flow.sample_fraction(0.5, key=str), Flow[int])
    assert_type(flow.handle(keep), Flow[str])
    assert_type(flow.repartition(2, key=lambda n: -n), Flow[int])
    assert_type(flow.pairwise(), Flow[tuple[int, int]])
    assert_type(flow.materialize(), Flow[Next[int] | Failed | Completed])
    assert_type(flow.materialize().dematerialize(), Flow[int])
    assert_type(flow.concat(Flow.of("a")), Flow[int | str])
    assert_type(flow.race(Flow.of("a"), Flow.of("b")), Flow[int | str])
    text = Flow.of("a")
    assert_type(flow.zip(text), Flow[tuple[int, str]])
    assert_type(flow.zip(text, flow, prefetch=8), Flow[tuple[int, str, int]])
    assert_type(flow.zip(text, flow, text), Flow[tuple[int, str, int, str]])
    assert_type(flow.zip(text, flow, text, flow), Flow[tuple[int, str, int, str, int]])
    assert_type(flow.zip(text, text, text, text, text), Flow[tuple[int | str, ...]])
    assert_type(flow.combine_latest(text, prefetch=8), Flow[tuple[int, str]])
    assert_type(flow.combine_latest(text, flow), Flow[tuple[int, str, int]])
    assert_type(flow.combine_latest(text, flow, text), Flow[tuple[int, str, int, str]])
    assert_type(flow.combine_latest(text, flow, text, flow), Flow[tuple[int, str, int, str, int]])
    assert_type(flow.with_latest_from(text), Flow[tuple[int, str]])
    assert_type(flow.merge(Flow.of("a"), prefetch=8), Flow[int | str])
    assert_type(Flow.from_iterable(lambda: [1]), Flow[int])
    assert_type(Flow.from_async_iterable(lambda: flow), Flow[int])
    assert_type(flow.repeat(2).retry(2), Flow[int])
    assert_type(flow.on_error_resume_next(Flow.of("a")), Flow[int | str])
    assert_type(flow.on_error_resume_next(lambda error: Flow.of(str(error))), Flow[int | str])
    assert_type(flow.on_error_resume_next(Flow.of("a"), errors=OSError), Flow[int | str])
    assert_type(flow.on_error_return("a").on_error_complete(errors=(OSError, KeyError)), Flow[int | str])
    assert_type(flow.on_error_map(lambda error: OSError(error.args), errors=KeyError), Flow[int])
    assert_type(flow.retry_if(lambda error, attempt: attempt < 3), Flow[int])
    assert_type(flow.retry_if(lambda error, attempt: error.errno == attempt, errors=OSError), Flow[int])
    assert_type(flow.on_error_resume_next(lambda error: Flow.of(error.errno or 0), errors=(OSError,)), Flow[int])
    assert_type(flow.retry_when(answer).repeat_when(answer), Flow[int])
    assert_type(flow.retry(Backoff(1.0, max_retries=3), resume=lambda last: Flow.of(last + 1)), Flow[int])
    assert_type(flow.delay(1).delay_subscription(1).debounce(1).sample(1).throttle_first(1), Flow[int])
    assert_type(flow.rate_limit(2, 1.5), Flow[int])
    assert_type(flow.timestamp(), Flow[tuple[float, int]])
    assert_type(flow.elapsed(), Flow[tuple[float, int]])
    assert_type(flow.buffer_timeout(2, 1.5), Flow[list[int]])
    assert_type(flow.timeout(1), Flow[int])
    assert_type(flow.timeout(1.5, fallback=Flow.of("a")), Flow[int | str])
    assert_type(flow.start_with("a"), Flow[int | str])
    assert_type(flow.default_if_empty(None), Flow[int | None])
    assert_type(flow.switch_if_empty(Flow.of("a")), Flow[int | str])
    assert_type(flow.buffer(2), Flow[list[int]])
    assert_type(flow.sliding(3, step=2), Flow[list[int]])
    assert_type(flow.window(3), Flow[Flow[int]])
    assert_type(flow.group_by(str, max_groups=8, prefetch=64), Flow[GroupedFlow[str, int]])
    assert_type(flow.group_by(str).map(lambda group: group.key), Flow[str])
    assert_type(flow.group_by(str).flat_map(lambda group: group.map(float)), Flow[float])
    assert_type(flow.buffer_until_changed(str), Flow[list[int]])
    keyed = flow.group_by_key(str, order_by=abs, max_keys=8, max_size=64, partitions=8)
    assert_type(flow.group_by_key(str), KeyedFlow[str, int])
    assert_type(keyed.map(float).filter(bool).take(2), KeyedFlow[str, float])
    assert_type(keyed.scan(lambda text, n: text + str(n), "").pairs(), Flow[tuple[str, str]])
    assert_type(keyed.pairwise().pairs(), Flow[tuple[str, tuple[int, int]]])
    assert_type(keyed.buffer(2).top_k(3, key=len), KeyedFlow[str, list[list[int]]])
    assert_type(keyed.buffer_until_changed(), KeyedFlow[str, list[int]])
    assert_type(keyed.join(keyed.map(float)), Flow[tuple[str, tuple[int, float]]])
    assert_type(keyed.join(keyed.map(float), how="left"), Flow[tuple[str, tuple[int, float | None]]])
    assert_type(keyed.join(keyed.map(float), how="outer"), Flow[tuple[str, tuple[int | None, float | None]]])
    assert_type(keyed.count(), Flow[tuple[str, int]])
    assert_type(keyed.fold(lambda total, n: total + n, 0.5, any_order=True), Flow[tuple[str, float]])
    assert_type(keyed.reduce(max), Flow[tuple[str, int]])
    assert_type(flow.do_on_next(print).do_on_error(print).do_on_complete(print), Flow[int])
    assert_type(flow.do_on_subscribe(print).do_on_request(print).do_on_cancel(print).do_finally(print), Flow[int])
    assert_type(flow.do_on_discard(print), Flow[int])
    assert_type(flow.log("numbers").checkpoint("here"), Flow[int])
    assert_type(flow.publish_on(schedulers.current()).subscribe_on(schedulers.current()), Flow[int])
    assert_type(flow.on_backpressure_buffer(2, overflow="drop_oldest").on_backpressure_error(), Flow[int])
    assert_type(flow.on_backpressure_drop(print).on_backpressure_latest(lambda n: n + 1), Flow[int])
    assert_type(flow.strict(), Flow[int])
    assert_type(flow.then(Shown()), Flow[str])
    assert_type(flow.through(lambda each: each.map(str)), Flow[str])


async def test_ends() -> None:
    flow = Flow.range(1, 3)
    assert_type(await flow.to_list(), list[int])
    assert_type(await flow.first(), int)
    assert_type(await flow.first(default=None), int | None)
    assert_type(await flow.last(default="none"), int | str)
    assert_type(await flow.reduce(lambda a, b: a + b), int)
    assert_type(await flow.reduce(max, combine=max), int)
    assert_type(await flow.reduce(lambda text, n: text + str(n), ""), str)
    assert_type(await flow.reduce(lambda a, b: a + b, 0.5, combine=lambda a, b: a + b), float)
    assert_type(await flow.collect(set[int], set[int].add), set[int])
    assert_type(await flow.collect(list[int], list[int].append, combine=list[int].extend), list[int])
    assert_type(await flow.top_k(2), list[int])
    assert_type(await flow.to_sorted_list(key=str), list[int])
    assert_type(await flow.count_by_key(str), dict[str, int])
    assert_type(await flow.reduce_by_key(str, lambda a, b: a + b, 0), dict[str, int])
    assert_type(await flow.count(), int)
    assert_type(await flow.for_each(print), None)
    assert_type(await flow.for_each_batch(print, 2), None)
    assert_type(await flow.drain(), None)
    assert_type(await flow.to_set(), set[int])
    assert_type(await flow.to_dict(str), dict[str, int])
    assert_type(await flow.to_dict(str, value=float), dict[str, float])
    assert_type(await flow.map(str).index().to_dict(), dict[int, str])
    assert_type(await Flow.of(1).single(), int)
    assert_type(await Flow.of(1).single("none"), int | str)
    assert_type(await flow.element_at(0), int)
    assert_type(await flow.element_at(9, default=None), int | None)
    assert_type(await flow.sum(), int)
    assert_type(await flow.map(float).sum(), float)
    assert_type(await flow.map(str).sum(""), str)
    assert_type(await flow.min(), int)
    assert_type(await flow.max(key=str, default=None), int | None)
    assert_type(await flow.all(bool), bool)
    assert_type(await flow.any(bool), bool)
    assert_type(await flow.contains(1), bool)
    assert_type(await flow.is_empty(), bool)
    async for n in flow:
        assert_type(n, int)
    assert_type(flow.open(), AbstractAsyncContextManager[FlowIterator[int]])
    assert_type(flow.subscribe(Recorder()), None)
    async with flow.open() as items:
        assert_type(items, FlowIterator[int])
        assert_type(items.snapshot().regions[0].delivered, int)
        plain: AsyncIterator[int] = items
        assert_type(await anext(plain), int)


def test_ends_from_ordinary_code() -> None:
    assert_type(Flow.range(1).run_sync(), list[int])
    assert_type(Flow.range(1).run_sync(Flow[int].count), int)
    assert_type(Flow.range(1).run_sync(lambda flow: flow.map(str).first()), str)


def test_a_flow_of_a_subclass_serves_where_one_of_the_base_is_wanted() -> None:
    def show(flow: Flow[object]) -> str:
        return repr(flow)

    assert show(Flow.of(True)) == "Flow.of(True)"
    assert show(Flow.empty()) == "Flow.empty()"


def test_a_flow_is_a_publisher() -> None:
    publisher: Publisher[int] = Flow.range(3)

    assert isinstance(publisher, Publisher)
    asyncio.run(Flow.from_publisher(publisher).to_list())
