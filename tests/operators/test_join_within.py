"""The join of two flows by key whose elements meet within a time, on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any, TypeVar
from weakref import WeakSet

import pytest

from reactive_aio import UNBOUNDED, Flow, KeyedFlow, LimitExceededError, hooks
from reactive_aio.testing import TestPublisher, no_leaks, probe, run_virtual

T = TypeVar("T")
Timed = tuple[float, int, str]
"""When an element comes, its key, and its name."""
HOWS = pytest.mark.parametrize("how", ["inner", "left", "outer"])
WITHIN = 3.0
LONG = 1e6


def now() -> float:
    return asyncio.get_running_loop().time()


async def moment(time: float) -> None:
    """Wait for a time of the virtual clock."""
    loop = asyncio.get_running_loop()
    come = loop.create_future()
    timer = loop.call_at(time, come.set_result, None)
    try:
        await come
    finally:
        timer.cancel()


def at_times(events: list[Timed], end: float) -> Flow[Timed]:
    async def come() -> AsyncIterator[Timed]:
        for event in events:
            await moment(event[0])
            yield event
        await moment(end)

    return Flow.from_async_iterable(come)


def key_of(event: Timed) -> int:
    return event[1]


def name_of(event: Timed) -> str:
    return event[2]


def by_key(events: list[Timed], end: float = 40.0) -> KeyedFlow[int, str]:
    return at_times(events, end).group_by_key(key_of).map(name_of)


def drawn(draw: Random, side: str, count: int) -> list[Timed]:
    """Draw elements, some of them at one time, and many as far apart as they may be."""
    return [(time, draw.randrange(2), f"{side}{n}") for n, time in enumerate(sorted(draw.choices(range(30), k=count)))]


def joined(left: list[Timed], right: list[Timed], how: str) -> list[str]:
    """Join by hand, by the definition."""
    pairs = [(a, b) for a in left for b in right if a[1] == b[1] and abs(a[0] - b[0]) <= WITHIN]
    found: list[Any] = [(a[1], (a[2], b[2])) for a, b in pairs]
    if how != "inner":
        found += [(a[1], (a[2], None)) for a in left if all(a is not each for each, _ in pairs)]
    if how == "outer":
        found += [(b[1], (None, b[2])) for b in right if all(b is not each for _, each in pairs)]
    return sorted(map(repr, found))


@HOWS
@pytest.mark.parametrize("seed", range(30))
def test_it_pairs_what_comes_within_the_time_however_late_the_pairs_are_wanted(how: Any, seed: int) -> None:
    draw = Random(seed)
    left, right = (drawn(draw, side, draw.randrange(31)) for side in "lr")

    async def slowly() -> list[Any]:
        found: list[Any] = []
        async for pair in by_key(left).join(by_key(right), how=how, within=WITHIN):
            found.append(pair)
            await asyncio.sleep(draw.choice([0, 0, 1.0, 7.0]))
        return found

    at_once: list[Any] = run_virtual(by_key(left).join(by_key(right), how=how, within=WITHIN).to_list())

    assert joined(left, right, how) == sorted(map(repr, at_once))
    assert joined(left, right, how) == sorted(map(repr, run_virtual(slowly())))


async def when(flow: Flow[T]) -> list[tuple[float, T]]:
    """Return the elements, each with the time at which it came, in hundredths."""
    return [(round(now(), 2), item) async for item in flow]


def test_a_pair_comes_as_soon_as_both_are_there() -> None:
    left: list[Timed] = [(1.0, 7, "a"), (5.0, 7, "b")]
    right: list[Timed] = [(2.0, 7, "x"), (8.0, 7, "y")]

    assert [(2.0, (7, ("a", "x"))), (5.0, (7, ("b", "x"))), (8.0, (7, ("b", "y")))] == run_virtual(
        when(by_key(left).join(by_key(right), within=WITHIN))
    )


def test_one_that_comes_in_the_last_moment_is_a_partner_whichever_has_its_turn_first() -> None:
    left: list[Timed] = [(1.0, 7, "a")]
    for right in ([(1.0 + WITHIN, 7, "x")], [(1.0 + WITHIN + 1e-3, 7, "x")]):
        pairs = run_virtual(by_key(left).join(by_key(right), how="left", within=WITHIN).to_list())
        assert [(7, ("a", "x" if right[0][0] == 4.0 else None))] == pairs


def test_one_without_a_partner_comes_when_its_time_is_over() -> None:
    left: list[Timed] = [(1.0, 7, "a"), (2.0, 7, "b")]
    right: list[Timed] = [(4.5, 7, "x"), (9.0, 8, "y")]

    assert [(4.0, (7, ("a", None))), (4.5, (7, ("b", "x"))), (12.0, (8, (None, "y")))] == run_virtual(
        when(by_key(left).join(by_key(right), how="outer", within=WITHIN))
    )


@pytest.mark.parametrize("within", [1e14, 1e18, 1e300])
def test_a_time_may_be_so_long_that_the_clock_counts_in_greater_steps_than_the_grace(within: float) -> None:
    nobody: Flow[Timed] = Flow.never()
    lonely = at_times([(1.0, 7, "a")], within).group_by_key(key_of).map(name_of)
    flow = lonely.join(nobody.group_by_key(key_of), how="left", within=within)

    assert (7, ("a", None)) == run_virtual(flow.first())


def test_one_without_a_partner_comes_at_once_when_the_other_flow_has_ended() -> None:
    left: list[Timed] = [(1.0, 7, "a"), (5.0, 7, "b")]

    assert [(1.5, (7, ("a", None))), (5.0, (7, ("b", None)))] == run_virtual(
        when(by_key(left).join(by_key([], end=1.5), how="left", within=WITHIN))
    )


@pytest.mark.parametrize(("how", "end"), [("inner", 4.0), ("left", 9.0), ("outer", 9.0)])
def test_it_ends_when_no_pair_can_come_any_more(how: Any, end: float) -> None:
    async def ended() -> float:
        right = by_key([(1.0, 7, "x")], end=2.0)
        await by_key([(3.0, 8, "b")], end=9.0).join(right, how=how, within=WITHIN).to_list()
        return round(now(), 2)

    assert end == run_virtual(ended())


@HOWS
def test_two_empty_flows_give_nothing(how: Any) -> None:
    nothing = Flow[int].empty().group_by_key(abs)

    assert [] == nothing.join(nothing, how=how, within=LONG).run_sync()


# -- what is held, and for how long


def endless(period: float) -> KeyedFlow[int, int]:
    """Count without end, each number a key of its own."""
    return Flow.interval(period).on_backpressure_buffer(10).group_by_key(abs)


def test_two_endless_flows_are_joined_and_no_more_is_held_than_comes_in_the_time() -> None:
    left = endless(1.0).map(str).filter(bool)

    assert [(n, (str(n), n)) for n in range(2_000)] == run_virtual(
        left.join(endless(1.0), within=2.0, max_size=7).take(2_000).to_list()
    )


def test_more_than_may_be_held_are_an_error() -> None:
    left: list[Timed] = [(1.0, 1, "a"), (2.0, 2, "b"), (6.0, 3, "c")]
    right: list[Timed] = [(2.5, 4, "x"), (5.2, 4, "y")]

    assert [] == run_virtual(by_key(left).join(by_key(right), within=WITHIN, max_size=3).to_list())
    with pytest.raises(
        LimitExceededError,
        match=r"^join\(within=3, max_size=2\) has no room for 'x': .* Raise max_size, or lower within",
    ) as failed:
        run_virtual(by_key(left).join(by_key(right), within=WITHIN, max_size=2).to_list())
    assert failed.value.__notes__[0].startswith("in join(within=3, how='inner'), chained at ")


def test_operators_that_keep_something_for_a_key_are_bounded_by_its_limit() -> None:
    left = Flow.range(3).group_by_key(abs, max_keys=2)
    right = Flow.range(3).group_by_key(abs)

    assert 3 == len(left.map(str).join(right, within=LONG).run_sync())
    with pytest.raises(LimitExceededError, match=r"group_by_key\(max_keys=2\) has no room for another key, 2"):
        left.scan(max).join(right, within=LONG).run_sync()


class Key:
    """A key that can be watched."""


@HOWS
def test_nothing_is_kept_of_a_key_whose_elements_have_had_their_time(how: Any) -> None:
    keys, most = WeakSet[Key](), 0

    def key(_: int) -> Key:
        nonlocal most
        made = Key()
        keys.add(made)
        most = max(most, len(keys))
        return made

    def ticks() -> KeyedFlow[Key, int]:
        return Flow.interval(1.0).on_backpressure_buffer(10).take(100).group_by_key(key)

    run_virtual(ticks().join(ticks(), how=how, within=WITHIN).drain())

    assert 8 <= most <= 14


def test_the_key_is_that_of_the_element_that_came_first() -> None:
    left, right = at_times([(1.0, 1, "a"), (2.0, 2, "b")], 9.0), at_times([(1.5, 1, "x"), (2.5, 2, "y")], 9.0)
    pairs = left.group_by_key(lambda _: True).join(right.group_by_key(key_of).filter(lambda x: x[1] == 1), within=9.0)

    assert ["True", "1"] == [repr(key) for key, _ in run_virtual(pairs.to_list())]


def test_operators_of_each_key_run_before() -> None:
    left = Flow.of(1, 2, 3, 4, 5).group_by_key(lambda n: n % 2).pairwise()
    right = Flow.of(7, 8).group_by_key(lambda n: n % 2).count().group_by_key(lambda pair: pair[0])

    assert [(1, ((1, 3), (1, 1))), (0, ((2, 4), (0, 1))), (1, ((3, 5), (1, 1)))] == sorted(
        left.join(right, within=LONG).run_sync(), key=lambda pair: pair[1]
    )


def test_keys_are_equal_as_with_group_by_key() -> None:
    left = Flow.of(1, float("nan"), "a", None).group_by_key(lambda key: key)
    right = Flow.of(True, float("nan"), None, b"a").group_by_key(lambda key: key).map(repr)

    assert ["None", "True", "nan"] == sorted(left.join(right, within=LONG).map(lambda pair: pair[1][1]).run_sync())


# -- demand


def test_no_more_is_asked_for_than_is_ahead_and_nothing_is_taken_without_demand() -> None:
    async def run() -> None:
        left, right = TestPublisher[int](), TestPublisher[int]()
        sides = [Flow.from_publisher(each).group_by_key(lambda _: 0) for each in (left, right)]
        async with probe(sides[0].join(sides[1], within=LONG)) as p:
            await p.expect_no_event()
            left.assert_requested(32)
            right.assert_requested(32)
            left.next(*range(32))
            await p.expect_no_event()
            right.next(*range(100, 132))
            await p.expect_no_event()
            left.assert_requested(32)
            right.assert_requested(32)
            await p.request(1)
            await p.expect_next((0, (0, 100)))
            await p.expect_no_event()
            await p.request(UNBOUNDED)
            await p.expect_next(*[(0, (left, right)) for right in range(100, 132) for left in range(32)][1:])
            await p.expect_no_event()
            p.cancel()
        left.assert_cancelled()
        right.assert_cancelled()

    asyncio.run(run())


# -- ends


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_failure_of_either_side_comes_after_the_pairs_before_it(side: str) -> None:
    async def run() -> None:
        broken, whole = TestPublisher[int](), TestPublisher[int]()
        sides = [Flow.from_publisher(each).group_by_key(lambda _: 0) for each in (broken, whole)]
        left, right = sides if side == "left" else reversed(sides)
        async with probe(left.join(right, within=LONG)) as p:
            await p.expect_no_event()
            broken.next(1)
            whole.next(2, 3)
            await p.expect_no_event()
            broken.error(ValueError("broken"))
            for other in (2, 3):
                await p.expect_no_event()
                await p.request(1)
                await p.expect_next((0, (1, other) if side == "left" else (other, 1)))
            await p.expect_error(ValueError)
        whole.assert_cancelled()

    asyncio.run(run())


def test_a_failure_of_an_operator_of_a_key_names_it() -> None:
    broken, whole = Flow.of(7).group_by_key(abs).map(lambda n: n // 0), Flow.of(7).group_by_key(abs)
    for flow in (broken.join(whole, within=LONG), whole.join(broken, within=LONG)):
        with pytest.raises(ZeroDivisionError) as failed:
            flow.run_sync()
        first, second, *_ = failed.value.__notes__
        assert first.startswith("in map(<lambda>), chained at ")
        assert second.startswith("in group_by_key(abs -> map(<lambda>)), chained at ")


class WithoutEqual:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError


class WithoutHash(WithoutEqual):
    def __hash__(self) -> int:
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", [WithoutEqual, WithoutHash])
def test_a_key_that_can_not_be_compared_fails_the_join(kind: type[WithoutEqual]) -> None:
    sides = [Flow.of(1).group_by_key(lambda _: kind()) for _ in "lr"]
    with pytest.raises(ZeroDivisionError) as failed:
        sides[0].join(sides[1], within=LONG).run_sync()
    assert failed.value.__notes__[0].startswith("in join(within=1e+06, how='inner'), chained at ")


def test_what_was_in_no_pair_goes_to_the_hook_when_the_flow_is_left() -> None:
    discarded: list[Any] = []

    async def run() -> None:
        left, right = TestPublisher[int](), TestPublisher[int]()
        sides = [Flow.from_publisher(each).group_by_key(lambda n: n % 10) for each in (left, right)]
        async with probe(sides[0].join(sides[1], how="outer", within=LONG)) as p:
            await p.expect_no_event()
            left.next(1, 2, 3)
            right.next(11, 21, 14)
            await p.request(1)
            await p.expect_next((1, (1, 11)))
            await p.expect_no_event()
            p.cancel()

    with hooks.using(on_discard=discarded.append):
        asyncio.run(run())
    assert {2, 3, 21, 14} == {item if isinstance(item, int) else item[1] for item in discarded}
    assert 4 == len(discarded)


@HOWS
def test_nothing_is_left_of_it(how: Any) -> None:
    async def run() -> None:
        async with no_leaks():
            flow = by_key([(1.0, 7, "a"), (2.0, 8, "b")]).join(by_key([(2.0, 7, "x")]), how=how, within=WITHIN)
            assert [(7, ("a", "x"))] == await flow.take(1).to_list()

    run_virtual(run())


# -- refusals, and the plan


@pytest.mark.parametrize(
    ("within", "kind", "text"),
    [
        (0, ValueError, r"join\(within=0\): within must be a finite number above 0"),
        (float("inf"), ValueError, "finite"),
        ("1", TypeError, "within is a number of seconds"),
    ],
)
def test_other_times_are_refused_at_once(within: Any, kind: type[Exception], text: str) -> None:
    keyed = Flow.of(1).group_by_key(abs)
    with pytest.raises(kind, match=text):
        keyed.join(keyed, within=within)


def test_an_order_that_waits_for_the_end_is_refused() -> None:
    keyed, ordered = Flow.of(1).group_by_key(abs), Flow.of(1).group_by_key(abs, order_by=abs)
    for flows in ((keyed, ordered), (ordered, keyed)):
        with pytest.raises(ValueError, match="holds them until its flow has ended"):
            flows[0].join(flows[1], within=1.0)


def test_the_plan_shows_both_sides() -> None:
    flow = Flow.of(1).group_by_key(key_of).map(name_of).join(Flow.of(2).group_by_key(abs), how="left", within=2.5)

    plan = flow.describe()
    assert "join(2.5, 'left', 65536)" in plan
    assert "of(1) -> group_by_key(key_of -> map(name_of))" in plan
    assert "of(2) -> group_by_key(abs)" in plan
