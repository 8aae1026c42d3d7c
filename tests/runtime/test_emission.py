"""A region at work, by the turns of its loop: what it gives in one, and what makes it need another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow
from reactive_aio._core import budgets
from reactive_aio._fusion import Stage
from reactive_aio._plan import Pulled
from reactive_aio._runtime.emission import NOTHING
from reactive_aio.operators.transforming import Map
from tests.runtime.by_turns import Bed, region_of

pytestmark = pytest.mark.usefixtures("still")


def pulled(flow: Flow[Any]) -> Pulled[Any]:
    operator = flow.__nodes__.source.operator
    assert isinstance(operator, Pulled)
    return operator


def test_nothing_is_given_in_a_request_but_in_the_turn_that_follows() -> None:
    bed = region_of(source=pulled(Flow.range(9)))
    bed.driver.request(2)
    bed.driver.request(1)
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed"], 1)

    bed.loop.turn()
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed", [0, 1, 2]], 0)


def test_a_cancel_from_a_signal_is_seen_to_behind_it() -> None:
    bed = region_of()
    bed.signals.react = lambda signal: bed.driver.cancel() if isinstance(signal, list) else None
    bed.driver.request(9)
    bed.loop.rest()
    bed.driver.on_chunk([1, 2])

    assert bed.heard == ["subscribed", [1, 2]]
    assert bed.driver.closed
    assert (bed.upstream.cancels, bed.released) == (1, ["released"])


def test_demand_that_is_unbounded_stays_so() -> None:
    bed = region_of()
    bed.driver.request(UNBOUNDED)
    bed.loop.rest()
    for _ in range(3):
        bed.driver.on_chunk([1, 2])

    assert bed.driver._demand == UNBOUNDED
    assert bed.upstream.requests == [UNBOUNDED]


def test_demand_for_all_and_more_is_demand_for_all() -> None:
    bed = region_of()
    bed.driver.request(UNBOUNDED)
    bed.driver.request(1)

    assert bed.driver._demand == UNBOUNDED


def test_a_cancel_before_the_beginning_is_seen_to_behind_it() -> None:
    bed = region_of(begun=False)
    bed.driver.cancel()
    bed.loop.rest()
    assert (bed.heard, bed.driver.closed) == ([], False)

    bed.begin()
    assert (bed.heard, bed.driver.closed, bed.released) == (["subscribed"], True, ["released"])
    assert bed.upstream.requests == []
    assert bed.driver._open_source is None  # which leads back to the driver


@pytest.mark.parametrize("chunks", [[[1, 2], [3, 4]], [[1, 2, 3, 4]]])
def test_behind_a_cancel_nothing_is_given_and_nothing_asked_for(chunks: list[list[int]]) -> None:
    bed = region_of(prefetch=4)
    bed.signals.react = lambda signal: bed.driver.cancel() if isinstance(signal, list) else None
    for chunk in chunks:
        bed.driver.upstream.add(chunk)
    bed.driver.request(9)
    bed.loop.rest()

    assert bed.heard == ["subscribed", chunks[0]]
    assert (bed.upstream.requests, bed.upstream.cancels) == ([4], 1)


def test_who_cancels_with_the_last_element_does_not_hear_of_the_end() -> None:
    bed = region_of(source=pulled(Flow.range(2)))
    bed.signals.react = lambda signal: bed.driver.cancel() if isinstance(signal, list) else None
    bed.driver.request(2)
    bed.loop.rest()

    assert (bed.heard, bed.released) == (["subscribed", [0, 1]], ["released"])


def test_a_function_that_cancels_is_not_called_again() -> None:
    called: list[int] = []

    def leave(n: int) -> int:
        called.append(n)
        bed.driver.cancel()
        return n

    bed = region_of(Map(leave), source=pulled(Flow.range(9)))
    bed.driver.each = True
    bed.driver.request(9)
    bed.loop.rest()

    assert called == [0]
    assert (bed.driver.closed, bed.released) == (True, ["released"])


# -- what stages hold


@define
class Holding(Stage[Any, Any]):
    """Holds everything until the end, and never says that it has given it all."""

    held: list[Any] = field(factory=list)

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.held.append(item)
        return
        yield

    def demand(self, n: int) -> int:
        return UNBOUNDED if n else 0

    def finish(self) -> list[Any]:
        return self.held

    @property
    def pending(self) -> bool:
        return True


@pytest.mark.parametrize("each", [True, False])
def test_the_end_comes_with_the_last_of_what_was_held(each: bool) -> None:
    bed = region_of(Holding())
    bed.driver.each = each
    bed.driver.request(1)
    bed.loop.rest()
    bed.driver.on_chunk([1, 2, 3])
    bed.driver.on_complete()
    assert bed.heard == ["subscribed", [1]]

    bed.driver.request(3)
    bed.loop.rest()
    assert [item for signal in bed.heard[1:-1] for item in signal] == [1, 2, 3]
    assert bed.heard[-1] == "complete"


# -- one element at a time, for a consumer on the same loop


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def polled(bed: Bed) -> list[Any]:
    """Poll until there is nothing to be had."""
    return list(iter(bed.driver.poll, NOTHING))


def one_by_one(*stages: Stage[Any, Any], **options: Any) -> Bed:
    bed = region_of(*stages, **options)
    bed.driver.each = True
    return bed


def test_a_pull_takes_the_turn_that_it_needs() -> None:
    bed = one_by_one(source=pulled(Flow.from_iterable(numbers(9))))
    bed.driver.pull(1)

    assert (bed.heard, len(bed.loop.ready)) == (["subscribed", [0]], 0)


def test_a_pull_waits_for_a_turn_that_is_due() -> None:
    bed = one_by_one(source=pulled(Flow.from_iterable(numbers(9))))
    bed.driver.request(1)
    bed.driver.pull(1)
    assert bed.heard == ["subscribed"]

    bed.loop.rest()
    assert bed.heard == ["subscribed", [0], [1]]


def test_what_is_asked_for_in_the_turn_of_a_pull_is_given_in_it() -> None:
    bed = one_by_one(source=pulled(Flow.from_iterable(numbers(9))))
    bed.signals.react = lambda signal: bed.driver.request(1) if signal == [0] else None
    bed.driver.pull(1)

    assert (bed.heard, len(bed.loop.ready)) == (["subscribed", [0], [1]], 0)


def test_what_a_pass_has_left_can_be_polled() -> None:
    bed = one_by_one(Map(str), source=pulled(Flow.from_iterable(numbers(4))))
    assert bed.driver.poll() is NOTHING  # no pass has begun

    bed.driver.pull(1)
    assert polled(bed) == ["1", "2", "3"]
    assert bed.driver.delivered == 4
    assert bed.heard == ["subscribed", ["0"]]

    bed.driver.pull(1)
    assert bed.heard[2:] == ["complete"]


def test_nothing_can_be_polled_from_inside_a_signal_or_behind_a_cancel() -> None:
    bed = one_by_one(source=pulled(Flow.from_iterable(numbers(9))))
    inside: list[Any] = []
    bed.signals.react = lambda signal: inside.append(bed.driver.poll())
    bed.driver.pull(1)
    assert inside == [NOTHING]
    assert bed.driver.poll() == 1

    bed.driver.cancel()
    assert bed.driver.poll() is NOTHING


def test_a_failure_is_not_polled_but_signalled() -> None:
    bed = one_by_one(Map(lambda n: 1 // (1 - n)), source=pulled(Flow.from_iterable(numbers(9))))
    bed.driver.pull(1)
    assert bed.driver.poll() is NOTHING

    assert bed.heard[1] == [1]
    assert isinstance(bed.heard[2], ZeroDivisionError)
    assert "in map(<lambda>), chained at here.py:1, on element #1 of" in bed.heard[2].__notes__[0]


def test_what_is_polled_makes_room_for_more() -> None:
    bed = one_by_one(prefetch=4)
    bed.driver.upstream.add([1, 2, 3, 4])
    bed.driver.pull(1)
    assert bed.driver.poll() == 2
    assert bed.upstream.requests == [4]

    assert bed.driver.poll() == 3
    assert bed.upstream.requests == [4, 3]


def test_what_comes_in_chunks_is_polled_to_the_end_of_each() -> None:
    bed = one_by_one(prefetch=4)
    bed.driver.upstream.add([1, 2])
    bed.driver.upstream.add([3, 4])
    bed.driver.pull(1)
    assert polled(bed) == [2]

    bed.driver.pull(1)
    assert polled(bed) == [4]

    bed.driver.on_complete()
    assert bed.heard == ["subscribed", [1], [3], "complete"]


def test_what_the_stages_give_first_and_last_can_be_polled() -> None:
    @define
    class Around(Stage[Any, Any]):
        """Emits something before the input and after it."""

        given: bool = False

        def apply(self, items: Iterator[Any]) -> Iterator[Any]:
            yield from items

        def prelude(self) -> list[Any]:
            return ["a", "b"]

        def finish(self) -> Iterator[Any]:
            yield "y"
            yield "z"
            self.given = True

        @property
        def pending(self) -> bool:
            return not self.given

    bed = one_by_one(Around(), source=pulled(Flow.from_iterable(numbers(2))))
    seen: list[Any] = []
    for _ in range(3):
        bed.driver.pull(1)
        seen += [*bed.heard.pop(), *polled(bed)]
    assert seen == ["a", "b", 0, 1, "y", "z"]

    bed.driver.pull(1)
    assert bed.heard == ["subscribed", "complete"]


# -- the clock


class Ticks:
    """A clock that goes by one with each look at it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def ticks(still: list[float], monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """Have a turn take four looks at the clock."""
    ticks = Ticks()
    monkeypatch.setattr(budgets, "TURN", 4)
    monkeypatch.setattr(budgets, "clock", ticks)
    return ticks


@pytest.mark.usefixtures("ticks")
def test_a_turn_ends_when_its_time_is_just_up_and_another_follows_by_itself() -> None:
    bed = region_of(prefetch=20)
    for n in range(20):
        bed.driver.upstream.add([n])
    bed.driver.request(20)
    bed.loop.turn()
    assert bed.heard == ["subscribed", [0], [1], [2], [3]]

    bed.driver.request(1)  # needs no turn of its own
    assert bed.loop.turn() == 1
    assert bed.heard[5:] == [[4], [5], [6], [7]]


@pytest.mark.usefixtures("ticks")
def test_no_turn_follows_where_nothing_is_left_when_the_time_is_up() -> None:
    bed = region_of(prefetch=20)
    for n in range(4):
        bed.driver.upstream.add([n])
    bed.driver.request(20)
    bed.loop.turn()

    assert bed.heard == ["subscribed", [0], [1], [2], [3]]
    assert not bed.loop.ready


@pytest.mark.usefixtures("ticks")
def test_no_turn_follows_where_no_more_is_wanted_when_the_time_is_up() -> None:
    bed = region_of(prefetch=20)
    for n in range(9):
        bed.driver.upstream.add([n])
    bed.driver.request(4)
    bed.loop.turn()

    assert bed.heard == ["subscribed", [0], [1], [2], [3]]
    assert not bed.loop.ready


@define
class Passing(Stage[Any, Any]):
    """Passes elements on, and counts its passes."""

    passes: int = 0

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        self.passes += 1
        return items


def test_a_pass_that_goes_on_has_the_time_of_the_turn_in_which_it_does(still: list[float]) -> None:
    passing = Passing()
    bed = region_of(passing, source=pulled(Flow.from_iterable(numbers(9))))
    bed.driver.request(1)
    bed.loop.rest()
    still[0] += 60.0
    bed.driver.request(6)
    bed.loop.rest()

    assert bed.heard == ["subscribed", [0], [1, 2, 3, 4, 5, 6]]
    assert passing.passes == 1


def test_a_pass_whose_time_is_up_goes_on_in_another(still: list[float]) -> None:
    def slow(n: int) -> int:
        still[0] += 1.0
        return n

    bed = region_of(Map(slow), source=pulled(Flow.from_iterable(numbers(9))))
    bed.driver.request(3)
    bed.loop.turn()
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed", [0]], 1)

    bed.loop.rest()
    assert bed.heard == ["subscribed", [0], [1], [2]]
