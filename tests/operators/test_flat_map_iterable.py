from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio._fusion import Stage, Transform
from reactive_aio.operators.folding.collect import Collect
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable
from tests.subscribers import ByHand, Recorder, idle


class Numbers:
    """The numbers from 0, and a note of each that is read and of the end."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.closed = False

    def __call__(self, stop: int) -> Iterator[int]:
        try:
            for n in range(stop):
                self.read.append(n)
                yield n
        finally:
            self.closed = True


async def test_gives_the_elements_of_each_iterable_in_order() -> None:
    assert await Flow.of("ab", "", "c").flat_map_iterable(iter).to_list() == ["a", "b", "c"]


async def test_calls_the_function_when_an_element_of_the_result_is_wanted() -> None:
    calls: list[int] = []

    def twice(n: int) -> list[int]:
        calls.append(n)
        return [n, n]

    assert await Flow.range(9).flat_map_iterable(twice).take(3).to_list() == [0, 0, 1]
    assert calls == [0, 1]


async def test_reads_of_an_iterable_what_is_wanted_and_no_more() -> None:
    numbers = Numbers()
    recorder = Recorder(request=2)

    Flow.of(10**9).flat_map_iterable(numbers).subscribe(recorder)
    await idle()

    assert recorder.items == [0, 1]
    assert numbers.read == [0, 1]

    recorder.request(1)
    await idle()

    assert recorder.items == [0, 1, 2]


@pytest.mark.parametrize("each", [1, 2, 3, 7])
async def test_an_iterable_goes_on_over_any_demand(each: int) -> None:
    recorder = Recorder(request=each)

    Flow.of(3, 4).flat_map_iterable(range).subscribe(recorder)
    for _ in range(7):
        await idle()
        recorder.request(each)
    await idle()

    assert recorder.items == [0, 1, 2, 0, 1, 2, 3]
    assert recorder.kinds[-1] == "complete"


async def test_asks_for_one_element_where_it_may_be_enough() -> None:
    source = ByHand()
    recorder = Recorder(request=5)

    Flow.from_publisher(source).flat_map_iterable(range).subscribe(recorder)
    await idle()
    assert source.requests == [1]

    source.next(2)
    await idle()
    assert source.requests == [1, 1]

    source.next(3)
    await idle()
    assert recorder.items == [0, 1, 0, 1, 2]
    assert source.requests == [1, 1]


async def test_unbounded_demand_is_passed_on() -> None:
    source = ByHand()

    Flow.from_publisher(source).flat_map_iterable(range).subscribe(Recorder(request=UNBOUNDED))
    await idle()

    assert source.requests == [UNBOUNDED]


async def test_completes_at_once_behind_the_last_element_of_a_list() -> None:
    recorder = Recorder(request=3)

    Flow.of([1, 2], [3]).flat_map_iterable(lambda items: items).subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe", "next", "next", "next", "complete"]


async def test_an_end_in_the_middle_of_an_iterable_waits_for_demand() -> None:
    source = ByHand()
    recorder = Recorder(request=1)

    Flow.from_publisher(source).flat_map_iterable(range).subscribe(recorder)
    await idle()
    source.next(2)
    source.complete()
    await idle()
    assert recorder.kinds == ["subscribe", "next"]

    recorder.request(1)
    await idle()
    assert recorder.kinds == ["subscribe", "next", "next", "complete"]


async def test_an_exception_of_the_function_comes_behind_the_elements_before_it() -> None:
    recorder = Recorder(request=9)

    Flow.of("12", "3x").flat_map_iterable(lambda text: map(int, text)).map(str).subscribe(recorder)
    await idle()

    assert recorder.items == ["1", "2", "3"]
    assert type(recorder.error) is ValueError
    assert "in flat_map_iterable(<lambda>), chained at" in recorder.error.__notes__[0]


async def test_a_failing_last_stage_is_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        await Flow.of(0).flat_map_iterable(lambda n: [1 // n]).to_list()

    assert "in flat_map_iterable(<lambda>)" in caught.value.__notes__[0]


async def test_a_failing_stage_is_told_from_others_of_its_kind() -> None:
    failing = Flow.of(0).flat_map_iterable(lambda n: [1 // n])
    with pytest.raises(ZeroDivisionError) as caught:
        await failing.flat_map_iterable(range).map(str).flat_map_iterable(iter).to_list()

    assert "in flat_map_iterable(<lambda>)" in caught.value.__notes__[0]


async def test_what_is_no_iterable_is_an_error() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        await Flow.of(1).flat_map_iterable(cast("Any", abs)).to_list()


async def test_stop_iteration_from_the_function_is_an_error() -> None:
    def stop(_: int) -> list[int]:
        raise StopIteration

    with pytest.raises(RuntimeError):
        await Flow.of(1).flat_map_iterable(stop).to_list()


def test_a_coroutine_function_is_refused_when_the_flow_is_built() -> None:
    async def numbers(_: int) -> AsyncIterator[int]:
        raise NotImplementedError

    with pytest.raises(TypeError, match="ordinary function"):
        Flow.of(1).flat_map_iterable(cast("Any", numbers))


async def test_cancelling_closes_the_generator_at_hand() -> None:
    numbers = Numbers()
    recorder = Recorder(request=1)

    Flow.of(9).flat_map_iterable(numbers).subscribe(recorder)
    await idle()
    assert not numbers.closed

    recorder.cancel()
    await idle()
    assert numbers.closed


class Closeable:
    """An iterator that notes when it is closed."""

    def __init__(self, numbers: Iterator[int], closed: list[str], name: str) -> None:
        self.numbers, self.closed, self.name = numbers, closed, name

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return next(self.numbers)

    def close(self) -> None:
        self.closed.append(self.name)


@pytest.mark.parametrize("fails", ["the function", "the source", "the iterable"])
async def test_after_a_failure_only_an_iterable_that_has_not_ended_is_closed(fails: str) -> None:
    closed: list[str] = []

    def source() -> Iterator[int]:
        yield 0
        if fails == "the source":
            raise LookupError
        yield 1

    def numbers(item: int) -> Iterator[int]:
        yield item
        if item == 1:
            raise LookupError

    def opened(item: int) -> Closeable:
        if item == 1 and fails == "the function":
            raise LookupError
        return Closeable(numbers(item), closed, f"number {item}")

    with pytest.raises(LookupError):
        await Flow.from_iterable(source()).flat_map_iterable(opened).to_list()

    assert (["number 1"] if fails == "the iterable" else []) == closed


async def test_a_generator_that_fails_when_it_is_closed_is_reported() -> None:
    dropped: list[BaseException] = []
    recorder = Recorder(request=1)

    def numbers(n: int) -> Iterator[int]:
        try:
            yield n
        finally:
            raise OSError("closing")

    with hooks.using(on_error_dropped=dropped.append):
        Flow.of(9).flat_map_iterable(numbers).subscribe(recorder)
        await idle()
        recorder.cancel()
        await idle()

    assert [str(error) for error in dropped] == ["closing"]


async def test_a_long_iterable_leaves_the_loop_its_turns() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    total = await Flow.of(3_000_000, 1).flat_map_iterable(range).filter(lambda n: n < 2).count()
    counting.cancel()

    assert total == 3
    # A turn about every millisecond, and it takes hundreds of them; without, there is a handful for the whole.
    assert turns > 20


async def test_the_rest_of_an_iterable_comes_though_no_other_element_follows(still: list[float]) -> None:
    """A pass ends in the middle of the iterable, and the source is silent."""
    source, taken = ByHand(), list[int]()

    def slow(n: int) -> int:
        still[0] += 0.6e-3
        return n

    taking = asyncio.create_task(
        Flow[int].from_publisher(source).flat_map_iterable(range).map(slow).for_each(taken.append)
    )
    await idle()
    source.next(200)
    await idle(1000)
    taking.cancel()
    await asyncio.wait([taking])

    assert taken == [*range(200)]


async def test_an_iterable_that_is_left_in_the_middle_is_left_once_only() -> None:
    """Two in a row, each longer than a turn of the loop: neither loses its place when a pass ends."""
    flow = Flow.of(3).flat_map_iterable(range).flat_map_iterable(lambda _: range(70_000))

    assert await flow.count() == 210_000


async def test_what_comes_behind_the_end_is_flattened_whole() -> None:
    """From `finish` a stage is run to its end, however long that takes: nobody would call it again."""
    long = Flow.range(2).then(Collect(list, list.append)).flat_map_iterable(lambda _: range(100_000))

    assert await long.filter(lambda n: n % 2 == 0).count() == 50_000


async def test_each_subscription_has_its_own_place() -> None:
    flow = Flow.of(3).flat_map_iterable(range)
    first, second = Recorder(request=2), Recorder(request=1)

    flow.subscribe(first)
    flow.subscribe(second)
    await idle()

    assert (first.items, second.items) == ([0, 1], [0])


def test_the_stage_is_a_value_that_keeps_no_state() -> None:
    stage: Stage[str, str] = FlatMapIterable(str.split)
    made: Transform[str, str] = pickle.loads(pickle.dumps(stage)).transform()

    assert list(made.apply(iter(["a b", "c"]))) == ["a", "b", "c"]
    assert stage == FlatMapIterable(str.split)
    assert stage.transform() is not stage.transform()


async def test_an_iterable_is_read_to_its_end_though_the_stage_before_it_needs_no_more() -> None:
    def slowly(_: int) -> Iterator[int]:
        for n in range(200):
            if n % 50 == 0:
                time.sleep(0.002)  # longer than a turn of the region
            yield n

    assert list(range(200)) == await Flow.of(1, 2).take(1).flat_map_iterable(slowly).to_list()


async def test_a_failure_waits_behind_what_is_left_of_the_iterable_at_hand() -> None:
    recorder, source = Recorder(1), ByHand()
    Flow.from_publisher(source).flat_map_iterable(lambda n: [n, n]).subscribe(recorder)
    await idle()
    source.next(1)
    source.error(OSError("down"))
    await idle()
    assert ["subscribe", "next"] == recorder.kinds

    recorder.request(1)
    await idle()
    assert ["subscribe", "next", "next", "error"] == recorder.kinds
