"""The inputs of a region, by themselves: when they request upstream, and how they keep, pass on or drop elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio._fusion import Origin, Placed, RegionRun, Stage
from reactive_aio._plan import Pulled
from reactive_aio._runtime.inputs import LONGEST_CHUNK, PulledInput, PushedInput
from reactive_aio.operators.filtering.skip import Skip
from reactive_aio.operators.transforming import Map


@define
class Upstream:
    """A subscription that notes what is asked of it."""

    requests: list[int] = field(factory=list)
    cancels: int = 0

    def request(self, n: int) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1


def region(*stages: Stage[Any, Any], counted: bool = True) -> RegionRun:
    placed = tuple(Placed(stage, Origin("here.py", at)) for at, stage in enumerate(stages, 1))
    return RegionRun(placed, "the source", counted=counted)


def fed(prefetch: int | None, *stages: Stage[Any, Any]) -> tuple[PushedInput, Upstream]:
    source, upstream = PushedInput(prefetch, region(*stages)), Upstream()
    source.upstream = upstream
    return source, upstream


# -- fed with a prefetch


def test_a_source_that_is_told_hears_of_each_element_that_is_consumed() -> None:
    source, upstream = PushedInput(8, region(), told=True), Upstream()
    source.upstream = upstream
    source.start()
    source.add([1, 2, 3])
    items = source.stretch()
    assert items is not None
    for _ in range(3):
        next(items)
        source.more(0)

    assert [8, 1, 1, 1] == upstream.requests


@pytest.mark.parametrize(
    ("prefetch", "consumed"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (8, 6), (10, 8), (16, 12), (256, 192)]
)
def test_more_is_requested_when_three_quarters_are_consumed(prefetch: int, consumed: int) -> None:
    source, upstream = fed(prefetch)
    source.start()
    source.add(list(range(prefetch)))
    items = source.stretch()
    assert items is not None
    for taken in range(1, consumed + 1):
        source.more(0)
        assert upstream.requests == [prefetch], taken
        next(items)
    source.more(0)

    assert upstream.requests == [prefetch, consumed]
    assert source.outstanding == consumed
    assert source.requested == prefetch + consumed


def test_what_waits_in_chunks_counts_as_not_consumed() -> None:
    source, upstream = fed(8)
    source.start()
    source.add([1, 2, 3])
    source.add([4, 5, 6])
    source.more(0)

    assert source.whole_chunk(9) == [1, 2, 3]
    source.more(0)
    assert (source.outstanding, source.buffered, upstream.requests) == (2, 3, [8])

    assert source.whole_chunk(9) == [4, 5, 6]
    source.more(0)
    assert (source.outstanding, source.buffered, upstream.requests) == (8, 0, [8, 6])


def test_nothing_is_requested_behind_the_end() -> None:
    source, upstream = fed(4)
    source.start()
    source.add([1, 2, 3, 4])
    source.end(None)
    source.whole_chunk(4)
    source.more(1)

    assert upstream.requests == [4]


def test_an_upstream_that_is_not_there_yet_is_not_asked() -> None:
    source = PushedInput(4, region())
    source.start()

    assert (source.outstanding, source.requested) == (4, 4)


# -- fed one for one


def test_no_more_is_requested_than_the_demand_at_hand() -> None:
    source, upstream = fed(None)
    source.start()
    source.more(0)
    assert upstream.requests == []

    source.more(3)
    source.more(3)
    assert upstream.requests == [3]

    source.more(5)
    assert upstream.requests == [3, 2]

    source.add([1, 2])
    source.more(5)
    assert (upstream.requests, source.outstanding) == ([3, 2], 3)


def test_stages_say_how_much_they_need() -> None:
    source, upstream = fed(None, Skip(4))
    source.more(0)
    assert upstream.requests == []

    source.more(1)

    assert upstream.requests == [5]


def test_unbounded_demand_is_passed_on_once() -> None:
    source, upstream = fed(None)
    source.more(2)
    source.more(UNBOUNDED)
    source.add([1, 2, 3])
    source.more(UNBOUNDED)

    assert upstream.requests == [2, UNBOUNDED]
    assert (source.outstanding, source.requested) == (UNBOUNDED, UNBOUNDED)


# -- what has arrived


def test_a_chunk_is_passed_whole_where_all_of_it_is_wanted() -> None:
    source, _ = fed(None)
    source.add([1, 2])

    assert source.whole_chunk(1) is None
    assert source.whole_chunk(2) == [1, 2]
    assert source.whole_chunk(2) is None


def test_a_chunk_that_was_begun_is_not_passed_whole() -> None:
    source, _ = fed(None)
    source.add([1, 2])
    items = source.stretch()
    source.add([3])

    assert items is not None
    assert next(items) == 1
    assert source.whole_chunk(9) is None
    assert source.stretch() is items
    assert list(items) == [2]
    assert source.used_up()
    assert source.whole_chunk(9) == [3]


def test_a_chunk_is_not_passed_whole_where_something_is_done_to_it() -> None:
    source, _ = fed(None, Map(abs))
    source.add([1])

    assert source.whole_chunk(9) is None


@pytest.mark.parametrize("whole", [True, False])
def test_elements_are_numbered_through_the_chunks(whole: bool) -> None:
    source, _ = fed(None)
    source.add([1, 2])
    source.add([3, 4, 5])
    totals: list[int] = []
    for _ in range(2):
        if whole:
            source.whole_chunk(9)
        else:
            source.stretch()
            source.used_up()
        totals.append(source.run.total)

    assert totals == [2, 5]
    assert (source.received, source.buffered) == (5, 0)


def test_the_rest_of_a_chunk_is_buffered() -> None:
    source, _ = fed(None)
    source.add([1, 2, 3])
    source.add([4])
    items = source.stretch()
    assert items is not None
    next(items)

    assert source.buffered == 3


def test_used_up_tells_whether_there_is_more_to_work_on() -> None:
    source, _ = fed(None)
    assert not source.used_up()

    source.add([1])
    assert source.used_up()

    source.stretch()
    assert not source.used_up()

    source.end(None)
    assert source.used_up()


def test_the_end_comes_behind_the_elements() -> None:
    source, _ = fed(None)
    assert (source.idle, source.at_end) == (True, False)

    source.add([1])
    source.end(None)
    assert (source.idle, source.at_end) == (False, False)

    items = source.stretch()
    assert (source.ended, source.at_end) == (False, False)

    assert items is not None
    assert list(items) == [1]
    assert source.at_end

    source.used_up()
    assert source.stretch() is None
    assert source.ended
    assert not source.idle


def test_what_is_begun_or_waiting_is_not_idle() -> None:
    source, _ = fed(None)
    source.add([1])
    assert not source.idle

    source.stretch()
    assert not source.idle

    source.used_up()
    assert source.idle
    assert source.stretch() is None
    assert not source.ended


def test_what_is_left_when_the_region_closes_is_told_to_the_hooks() -> None:
    discarded: list[Any] = []
    source, upstream = fed(None)
    source.add([1, 2])
    source.add([3])
    items = source.stretch()
    assert items is not None
    next(items)
    with hooks.using(on_discard=discarded.append):
        source.close()
        source.close()
        source.add([4])

    assert discarded == [2, 3, 4]
    assert upstream.cancels == 1
    assert (source.buffered, source.received) == (0, 3)


def test_an_upstream_that_has_ended_is_not_cancelled() -> None:
    source, upstream = fed(None)
    source.end(None)
    source.close()

    assert upstream.cancels == 0


# -- an iterator of its own


def pulled(flow: Flow[Any], *stages: Stage[Any, Any]) -> PulledInput:
    operator = flow.__nodes__.source.operator
    assert isinstance(operator, Pulled)
    return PulledInput(operator, region(*stages))


def test_a_source_that_runs_no_code_is_opened_at_once() -> None:
    source = pulled(Flow.of())
    source.start()

    assert source.at_end
    assert not source.idle


def test_a_source_of_somebody_elses_is_opened_when_it_is_wanted() -> None:
    opened: list[str] = []

    class Noting:
        def __iter__(self) -> Iterator[int]:
            opened.append("opened")
            return iter(n for n in range(2))

    source = pulled(Flow.from_iterable(Noting()))
    source.start()
    assert opened == []
    assert not source.at_end

    items = source.stretch()
    assert opened == ["opened"]
    assert source.stretch() is items
    assert source.whole_chunk(1) is None
    assert items is not None
    assert list(items) == [0, 1]
    assert not source.at_end

    assert source.used_up()
    assert source.at_end
    assert source.stretch() is None


def test_a_sized_source_gives_lists_until_it_knows_its_end() -> None:
    source = pulled(Flow.range(2 * LONGEST_CHUNK))
    source.start()

    assert source.run.total == 2 * LONGEST_CHUNK
    assert source.whole_chunk(3) == [0, 1, 2]
    assert source.whole_chunk(UNBOUNDED) == list(range(3, LONGEST_CHUNK + 3))
    assert not source.at_end
    assert len(source.whole_chunk(UNBOUNDED) or ()) == LONGEST_CHUNK - 3
    assert source.at_end
    assert not source.ended
    assert source.whole_chunk(1) is None
    assert source.ended


def test_a_sized_source_gives_no_lists_where_something_is_done_to_them() -> None:
    source = pulled(Flow.range(3), Map(abs))
    source.start()

    assert source.whole_chunk(3) is None


def test_an_iterator_is_closed_once() -> None:
    closed: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append("closed")

    source = pulled(Flow.from_iterable(numbers()))
    items = source.stretch()
    assert items is not None
    next(items)
    source.close()
    source.close()

    assert closed == ["closed"]
    assert source.ended
    assert source.stretch() is None


def test_a_stretch_is_spent_when_its_last_element_has_been_taken() -> None:
    source, _ = fed(4)
    source.start()
    assert not source.spent
    source.add([1, 2])
    items = source.stretch()
    assert items is not None
    assert [False, 1, False, 2, True] == [source.spent, next(items), source.spent, next(items), source.spent]
