"""The promises of a region: which calls it makes and when, and how it reports a failure."""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Iterator
from time import thread_time

import pytest

from reactive_aio import UNBOUNDED, Flow
from reactive_aio._fusion import Pace, Stage, Template
from reactive_aio.operators.filtering.take import Take
from reactive_aio.operators.transforming.map import Map
from tests.subscribers import ByHand, Recorder, idle, others


def counting(calls: list[int]) -> Iterator[int]:
    """Numbers without end; each that is read is noted."""
    n = 0
    while True:
        calls.append(n)
        yield n
        n += 1


# -- exactly lazy


async def test_take_evaluates_no_more_than_it_lets_through() -> None:
    calls: list[int] = []

    def fn(n: int) -> int:
        calls.append(n)
        return n

    assert await Flow.range(100).map(fn).take(3).to_list() == [0, 1, 2]
    assert calls == [0, 1, 2]


async def test_a_source_is_not_read_ahead_of_demand() -> None:
    read: list[int] = []
    recorder = Recorder(request=2)

    Flow.from_iterable(counting(read)).map(str).subscribe(recorder)
    await idle()

    assert recorder.items == ["0", "1"]
    assert read == [0, 1]


async def test_nothing_is_evaluated_without_demand() -> None:
    read: list[int] = []
    recorder = Recorder()

    Flow.from_iterable(counting(read)).subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe"]
    assert read == []


async def test_take_before_other_stages_reads_no_more_of_the_source() -> None:
    read: list[int] = []

    assert await Flow.from_iterable(counting(read)).take(2).filter(lambda n: False).to_list() == []
    assert read == [0, 1]


async def test_take_zero_does_not_open_the_source() -> None:
    def never() -> Flow[int]:
        raise AssertionError("opened")

    assert await Flow.defer(never).take(0).to_list() == []


async def test_async_for_evaluates_one_element_a_step() -> None:
    read: list[int] = []

    async for n in Flow.from_iterable(counting(read)).map(lambda n: n):
        if n == 2:
            break

    assert read == [0, 1, 2]


# -- demand passes one for one


async def test_demand_passes_through_map_one_for_one() -> None:
    source = ByHand()
    recorder = Recorder()

    Flow.from_publisher(source).map(str).subscribe(recorder)
    await idle()
    recorder.request(2)
    recorder.request(3)
    await idle()

    assert sum(source.requests) == 5


async def test_unbounded_demand_stays_unbounded() -> None:
    source = ByHand()
    recorder = Recorder(request=UNBOUNDED)

    Flow.from_publisher(source).map(str).filter(bool).subscribe(recorder)
    await idle()
    source.next(1, 2, 3)
    await idle()

    assert source.requests == [UNBOUNDED]


async def test_take_asks_for_no_more_than_it_lets_through() -> None:
    source = ByHand()
    recorder = Recorder(request=UNBOUNDED)

    Flow.from_publisher(source).take(3).subscribe(recorder)
    await idle()
    source.next(1, 2)
    await idle()

    assert source.requests == [3]


async def test_skip_enlarges_the_first_request_once() -> None:
    source = ByHand()
    recorder = Recorder(request=2)

    Flow.from_publisher(source).skip(5).subscribe(recorder)
    await idle()
    source.next(*range(7))
    await idle()
    recorder.request(1)
    await idle()

    assert source.requests == [7, 1]
    assert recorder.items == [5, 6]


async def test_a_filtered_element_is_replaced_by_asking_on() -> None:
    source = ByHand()
    recorder = Recorder(request=2)

    Flow.from_publisher(source).filter(lambda n: n > 9).subscribe(recorder)
    await idle()
    source.next(1, 10)
    await idle()
    source.next(2)
    await idle()
    source.next(11)
    await idle()

    assert source.requests == [2, 1, 1]
    assert recorder.items == [10, 11]


async def test_asking_on_does_not_recurse() -> None:
    assert await Flow.range(300_000).filter(lambda n: n == 299_999).first() == 299_999
    assert await Flow.from_publisher(Flow.range(3_000)).filter(lambda n: n == 2_999).first() == 2_999


# -- completes at once


@pytest.mark.parametrize("flow", [Flow.range(3), Flow.of(1, 2, 3), Flow.from_iterable([1, 2, 3]).map(str)])
async def test_a_sized_source_completes_with_its_last_element(flow: Flow[object]) -> None:
    recorder = Recorder(request=3)

    flow.subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe", "next", "next", "next", "complete"]


async def test_take_completes_with_its_last_element_and_cancels_the_source() -> None:
    source = ByHand()
    recorder = Recorder(request=2)

    Flow.from_publisher(source).take(2).subscribe(recorder)
    await idle()
    source.next(1, 2)
    await idle()

    assert recorder.kinds == ["subscribe", "next", "next", "complete"]
    assert source.cancels == 1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
async def test_a_fold_behind_take_ends_wherever_the_chunks_end(n: int) -> None:
    for prefetch in (1, 2, 3, 4):
        flow = Flow.range(1000).publish_on(_current(), prefetch=prefetch).map(str)
        assert await flow.take(n).to_list() == [str(k) for k in range(n)]
        assert await flow.take(n).take(n + 1).skip(1).count() == n - 1


async def test_an_empty_source_completes_without_demand() -> None:
    recorder = Recorder()

    Flow.empty().subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe", "complete"]


async def test_a_generator_is_not_read_to_find_out_whether_it_has_ended() -> None:
    ended: list[bool] = []

    def two() -> Iterator[int]:
        yield 1
        yield 2
        ended.append(True)

    recorder = Recorder(request=2)
    Flow.from_iterable(two()).subscribe(recorder)
    await idle()
    assert recorder.kinds == ["subscribe", "next", "next"]
    assert not ended

    recorder.request(1)
    await idle()
    assert recorder.kinds[-1] == "complete"


# -- failures


def stop(_: object) -> object:
    raise StopIteration("from user code")


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("method", ["map", "filter"])
async def test_stop_iteration_from_a_function_is_an_error_not_the_end(method: str, at: int) -> None:
    def fn(n: int) -> object:
        return stop(n) if n == at else True

    with pytest.raises(RuntimeError) as caught:
        await getattr(Flow.range(3), method)(fn).to_list()

    assert isinstance(caught.value.__cause__, StopIteration)
    assert f"in {method}(fn)" in caught.value.__notes__[0]


async def test_what_came_before_a_failure_is_delivered_first() -> None:
    recorder = Recorder(request=UNBOUNDED)

    Flow.range(10).publish_on(_current()).map(lambda n: 1 // (5 - n)).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), 60)

    assert recorder.items == [0, 0, 0, 0, 1]
    assert isinstance(recorder.error, ZeroDivisionError)


async def test_what_came_before_a_failure_crosses_a_boundary_first() -> None:
    recorder = Recorder(request=UNBOUNDED)

    Flow.range(10).map(lambda n: 1 // (5 - n)).publish_on(_current()).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), 60)

    assert recorder.items == [0, 0, 0, 0, 1]
    assert isinstance(recorder.error, ZeroDivisionError)


def _current() -> object:
    from reactive_aio import schedulers

    return schedulers.current()


async def test_an_error_says_operator_line_and_element() -> None:
    flow = Flow.range(100).map(lambda n: n)
    flow = flow.filter(lambda n: True).map(lambda n: 1 // (n - 17))

    with pytest.raises(ZeroDivisionError) as caught:
        await flow.to_list()

    (note,) = caught.value.__notes__
    line = test_an_error_says_operator_line_and_element.__code__.co_firstlineno + 2
    assert f"in map(<lambda>), chained at {__file__}:{line}, on element #17 of range(0, 100)" in note


async def test_an_error_of_a_builtin_function_is_located_too() -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        await Flow.from_iterable(word for word in ("1", "2", "three")).map(str).map(int).filter(bool).to_list()

    assert "in map(int)" in caught.value.__notes__[0]
    assert "on element #2 of from_iterable(generator)" in caught.value.__notes__[0]


async def test_an_error_behind_a_boundary_counts_the_elements_of_its_region() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        await Flow.range(1000).publish_on(_current(), prefetch=4).map(lambda n: 1 // (n - 777)).to_list()

    assert "on element #777 of publish_on(current(), prefetch=4)" in caught.value.__notes__[0]


async def test_an_error_of_the_source_says_so() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk") as caught:
        await Flow.from_iterable(broken()).map(str).to_list()

    assert caught.value.__notes__[0].startswith("in from_iterable(broken())")


async def test_an_error_in_a_stage_of_ones_own_names_the_stage() -> None:
    class Picky(Stage[int, int]):
        def apply(self, items: Iterator[int]) -> Iterator[int]:
            for item in items:
                if item == 3:
                    raise KeyError(item)
                yield item

    with pytest.raises(KeyError) as caught:
        await Flow.range(5).map(lambda n: n).then(Picky()).map(str).to_list()

    assert caught.value.__notes__[0].startswith("in picky()")


async def test_the_users_frame_is_the_last_of_the_traceback() -> None:
    def fail(n: int) -> int:
        raise LookupError(n)

    with pytest.raises(LookupError) as caught:
        await Flow.range(1).map(fail).to_list()

    assert caught.traceback[-1].name == "fail"


# -- fair to the loop, and prompt


async def test_an_endless_ready_source_leaves_turns_to_others() -> None:
    started = thread_time()

    def until(n: int) -> bool:
        # Nothing passes the filter for a tenth of a second of work, however long a busy machine takes for that.
        return thread_time() - started > 0.1

    async with others() as turns:
        await Flow.from_iterable(iter(int, 1)).filter(until).first()

    # A turn about every millisecond; a tenth of that is asked for, so that a slow machine passes as well.
    assert len(turns) >= 10


@pytest.mark.parametrize("end", ["count", "to_list", "last"])
async def test_a_long_fold_leaves_turns_to_others(end: str) -> None:
    async with others() as turns:
        await getattr(Flow.range(1_000_000), end)()

    assert len(turns) >= 5


async def test_async_for_over_a_ready_source_leaves_turns_to_others() -> None:
    async with others() as turns:
        async for _ in Flow.range(100_000):
            pass

    assert len(turns) >= 5


async def test_nobody_waits_for_a_slow_function_to_fill_a_chunk(still: list[float]) -> None:
    made: list[int] = []
    seen: list[tuple[int, int]] = []

    def slow(n: int) -> int:
        still[0] += 2e-3
        made.append(n)
        return n

    await Flow.range(20).map(slow).publish_on(_current()).for_each(lambda n: seen.append((n, len(made))))

    # Each element is on its way before many more have been made.
    assert all(ahead - n <= 3 for n, ahead in seen)


async def test_chunks_grow_from_one_element_so_that_slowness_is_noticed_early(still: list[float]) -> None:
    made: list[int] = []
    ahead: list[int] = []

    def slow_after_three(n: int) -> int:
        if n >= 3:
            still[0] += 2e-3
        made.append(n)
        return n

    flow = Flow.range(40).map(slow_after_three).publish_on(_current())
    await flow.for_each(lambda n: ahead.append(len(made) - n))

    # The slice in which it turned slow was the third, of four elements.
    assert max(ahead) <= 8


# -- effects interleave as in a loop


async def test_effects_of_map_and_for_each_interleave() -> None:
    trace: list[str] = []

    await Flow.range(3).map(lambda n: trace.append(f"a{n}") or n).for_each(lambda n: trace.append(f"b{n}"))

    assert trace == ["a0", "b0", "a1", "b1", "a2", "b2"]


async def test_effects_of_map_and_a_foreign_subscriber_interleave() -> None:
    trace: list[str] = []

    class Tracer(Recorder):
        def on_next(self, item: int) -> None:
            trace.append(f"b{item}")

    recorder = Tracer(request=UNBOUNDED)
    Flow.range(3).map(lambda n: trace.append(f"a{n}") or n).subscribe(recorder)
    await idle()

    assert trace == ["a0", "b0", "a1", "b1", "a2", "b2"]


async def test_cancel_in_on_next_stops_the_evaluation() -> None:
    made: list[int] = []

    class Once(Recorder):
        def on_next(self, item: int) -> None:
            super().on_next(item)
            self.cancel()

    recorder = Once(request=UNBOUNDED)
    Flow.range(100).map(lambda n: made.append(n) or n).subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe", "next"]
    assert made == [0]


# -- stages as values


def test_a_stage_is_a_picklable_value() -> None:
    assert pickle.loads(pickle.dumps(Take(3))) == Take(3)
    assert pickle.loads(pickle.dumps(Map(len))) == Map(len)


def test_a_stage_can_be_used_as_an_iterator_transform() -> None:
    assert list(Map(str).apply(iter([1, 2]))) == ["1", "2"]
    assert list(Take(2).transform().apply(iter(range(9)))) == [0, 1]


async def test_state_belongs_to_the_subscription() -> None:
    flow = Flow.range(5).skip(1).take(2)

    assert await flow.to_list() == [1, 2]
    assert await flow.to_list() == [1, 2]


async def test_stages_with_and_without_templates_mix() -> None:
    class Twice(Stage[int, int]):
        def apply(self, items: Iterator[int]) -> Iterator[int]:
            for item in items:
                yield item
                yield item

    flow = Flow.range(6).then(Twice()).map(lambda n: n + 1).then(Twice()).filter(lambda n: n % 2).take(6)

    assert await flow.to_list() == [1, 1, 1, 1, 3, 3]


async def test_a_hundred_stages_fuse() -> None:
    flow = Flow.range(3)
    for _ in range(100):
        flow = flow.map(lambda n: n + 1).filter(lambda n: True)

    assert await flow.to_list() == [100, 101, 102]


async def test_none_is_an_ordinary_element() -> None:
    assert await Flow.of(None, 1).map(lambda x: None).to_list() == [None, None]
    assert await Flow.of(None).first() is None
    assert await Flow.of(1, None).last() is None
    assert [item async for item in Flow.of(None, None)] == [None, None]


class Careless(Stage[int, int]):
    """Passes elements on, and fails when it is cleaned up."""

    def apply(self, items: Iterator[int]) -> Iterator[int]:
        try:
            yield from items
        finally:
            raise OSError("cleanup")


class Doubled(Stage[int, int]):
    """Another stage that is applied as a whole."""

    def apply(self, items: Iterator[int]) -> Iterator[int]:
        for item in items:
            yield 2 * item


async def test_the_cleanup_of_a_stage_is_heard_of_whatever_follows_it() -> None:
    careless = Flow.range(5).then(Careless())
    flows: list[Flow[object]] = [careless.take(2), careless.map(str).take(2), careless.then(Doubled()).take(2)]
    for flow in flows:
        with pytest.raises(OSError, match="cleanup"):
            await flow.to_list()


def test_a_stage_that_says_no_more_asks_one_for_one_and_gives_nothing_of_its_own() -> None:
    stage = Doubled()

    assert stage.transform() is stage
    assert [list(stage.prelude()), list(stage.finish())] == [[], []]
    assert (stage.demand(3), stage.done, stage.pending) == (3, False, False)
    assert (stage.name, stage.arguments, str(stage), stage.in_parts()) == ("doubled", "", "doubled()", None)
    assert list(stage.paced(iter([1, 2]), Pace())) == [2, 4]


def test_a_template_is_its_lines_wherever_it_is_indented() -> None:
    template = Template("""
        if item:
            $rest
    """)

    assert template.lines == ("if item:", "    $rest")
    assert template.local == ()


@pytest.mark.parametrize("stages", ["map", "nothing"])
async def test_a_range_may_be_longer_than_what_can_be_counted(stages: str) -> None:
    for first in (0, 10**30):
        flow = Flow.range(first, first + 2 * sys.maxsize)
        flow = flow.map(lambda n: n) if stages == "map" else flow

        assert [first, first + 1, first + 2] == await flow.take(3).to_list()
        assert [first + 5] == await flow.skip(5).take(1).to_list()
