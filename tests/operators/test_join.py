"""The join of two flows by key, on the event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from reactive_aio import Flow, KeyedFlow, LimitExceededError, hooks
from reactive_aio.testing import settle
from tests.subscribers import Recorder

Pair = tuple[int, str]


def joined(left: list[Pair], right: list[Pair], how: str) -> list[Any]:
    """Join by hand, as SQL does."""
    found: list[Any] = []
    for element in left:
        partners: list[Any] = [other for other in right if other[0] == element[0]]
        found += [(element[0], (element, other)) for other in partners or ([] if how == "inner" else [None])]
    if how == "outer":
        found += [(key, (None, (key, other))) for key, other in right if key not in dict(left)]
    return found


def key_of(pair: Pair) -> int:
    return pair[0]


def by_key(*pairs: Pair) -> KeyedFlow[int, Pair]:
    return Flow.from_iterable(pairs).group_by_key(key_of)


def in_text(pairs: list[Any]) -> list[str]:
    return sorted(map(repr, pairs))


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (5, 0), (5, 5), (40, 20)])
def test_it_gives_what_a_join_by_hand_gives(how: Any, sizes: tuple[int, int]) -> None:
    draw = Random(f"{how} {sizes}")
    left, right = (
        [(draw.randrange(8), f"{side}{n}") for n in range(size)] for side, size in zip("lr", sizes, strict=True)
    )
    found = by_key(*left).join(by_key(*right), how=how).run_sync()

    assert in_text(joined(left, right, how)) == in_text(found)


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
async def test_it_gives_the_same_one_at_a_time(how: Any) -> None:
    left: list[Pair] = [(3, "b"), (1, "a")]
    right: list[Pair] = [(1, "x"), (1, "y"), (2, "z"), (2, "u")]
    expected = joined(left, right, how)
    recorder = Recorder(request=0)
    by_key(*left).join(by_key(*right), how=how).subscribe(recorder)
    for count in range(1, len(expected) + 1):
        await settle()
        assert not recorder.over.is_set()
        recorder.request(1)
        await settle()
        assert count == len(recorder.items)
    recorder.request(1)  # behind the last there may be elements without a partner
    await settle()

    assert in_text(expected) == in_text(recorder.items)
    assert "complete" == recorder.kinds[-1]


def test_elements_come_in_the_order_of_the_flow() -> None:
    left: list[Pair] = [(2, "a"), (1, "b"), (2, "c"), (1, "d")]
    right: list[Pair] = [(1, "x"), (2, "y"), (1, "z")]

    assert joined(left, right, "left") == by_key(*left).join(by_key(*right), how="left").run_sync()


def test_each_side_has_its_own_key_and_its_operators_run_before() -> None:
    lines = Flow.of("b2", "a1", "b1").group_by_key(lambda line: line[0], order_by=str).map(str.upper)
    prices = Flow.of((3, "b"), (5, "a"), (4, "b")).group_by_key(lambda price: price[1]).map(lambda price: price[0])

    assert [("b", ("B1", 12)), ("b", ("B2", 12)), ("a", ("A1", 5))] == lines.join(
        prices.scan(lambda product, n: product * n).filter(lambda n: n % 3 == 0 or n == 5).buffer(2).map(max)
    ).run_sync()


def test_keys_are_equal_as_with_group_by_key() -> None:
    left = Flow.of(1, math.nan, "a", None).group_by_key(lambda key: key)
    right = Flow.of(True, float("nan"), None, b"a").group_by_key(lambda key: key).map(repr)

    assert ["True", "nan", "None"] == left.join(right).map(lambda pair: pair[1][1]).run_sync()


def test_a_side_whose_operators_give_nothing_has_no_partner() -> None:
    nobody = by_key((1, "x"), (2, "y")).filter(lambda pair: pair[0] == 2)

    assert [(1, ((1, "a"), None))] == by_key((1, "a")).join(nobody, how="left").run_sync()
    assert [(2, (None, (2, "y")))] == by_key((1, "a")).take(0).join(nobody, how="outer").run_sync()


async def test_the_other_flow_is_read_first_and_then_one_element_at_a_time() -> None:
    log: list[str] = []
    left = Flow.range(9).do_on_next(lambda n: log.append(f"left {n}")).group_by_key(lambda n: n % 2)
    right = Flow.range(2).do_on_next(lambda n: log.append(f"right {n}")).group_by_key(lambda n: n)

    assert [(0, (0, 0)), (1, (1, 1))] == await left.join(right).take(2).to_list()
    assert ["right 0", "right 1", "left 0", "left 1"] == log


def test_more_elements_of_a_key_than_may_be_held_are_an_error() -> None:
    right = by_key((1, "x"), (2, "y"), (1, "z"))

    assert 3 == len(by_key((1, "a"), (2, "b")).join(right, max_size=2).run_sync())
    with pytest.raises(LimitExceededError, match=r"join\(max_size=1\) has no room for \(1, 'z'\): .* Raise max_size"):
        by_key((1, "a")).join(right, max_size=1).run_sync()


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_failure_of_either_side_arrives_with_a_note(side: str) -> None:
    broken = Flow.of(0).map(lambda n: 1 // n).group_by_key(abs)
    whole = Flow.of(1).group_by_key(abs)
    with pytest.raises(ZeroDivisionError) as failed:
        (broken.join(whole) if side == "left" else whole.join(broken)).run_sync()
    assert any(note.startswith("in map(") for note in failed.value.__notes__)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_failure_of_an_operator_names_it_with_its_side_and_key(side: str) -> None:
    broken, whole = Flow.of(7).group_by_key(abs).map(lambda n: n // 0), Flow.of(7).group_by_key(abs)
    with pytest.raises(ZeroDivisionError) as failed:
        (broken.join(whole) if side == "left" else whole.join(broken)).run_sync()
    first, second, *_ = failed.value.__notes__
    assert first.startswith("in map(<lambda>), chained at ")
    assert first.endswith(f"on element #0 of the {side} elements")
    assert second.startswith("in join(how='inner'), chained at ")
    assert second.endswith("of the elements of key 7")


async def test_a_cancel_ends_both_flows() -> None:
    ended: list[str] = []

    async def never(name: str) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    left = Flow.from_async_iterable(lambda: never("left")).group_by_key(abs)
    right = Flow.of(1).do_finally(lambda: ended.append("right")).group_by_key(abs)
    read = asyncio.Event()
    task = asyncio.create_task(left.join(right).for_each(lambda _: read.set()))
    await read.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["right", "left"] == ended


def test_what_nobody_has_had_goes_to_the_hook_when_the_flow_fails() -> None:
    discarded: list[Any] = []
    left = Flow.of(1, 0).map(lambda n: 1 // n).group_by_key(abs)
    right = Flow.of(5, 6, 7, 1).group_by_key(lambda n: min(n, 5)).filter(lambda n: n != 6)
    with hooks.using(on_discard=discarded.append), pytest.raises(ZeroDivisionError):
        left.join(right).run_sync()

    assert [(1, (1, 1)), 5, 7] == discarded


def limited(max_keys: int, *keys: int) -> KeyedFlow[int, int]:
    return Flow.from_iterable(keys).group_by_key(abs, max_keys=max_keys)


@pytest.mark.parametrize(("left", "right"), [(2, 3), (3, 2)])
def test_the_larger_limit_of_keys_holds_for_the_keys_of_both_flows_together(left: int, right: int) -> None:
    pairs = limited(left, 1, 3).join(limited(right, 1, 2))
    too_many = limited(left, 1, 3).join(limited(right, 1, 2, 4))

    assert [(1, (1, 1))] == pairs.run_sync()
    with pytest.raises(LimitExceededError, match=r"^group_by_key\(max_keys=3\) has no room for another key, 3. Raise"):
        too_many.run_sync()


@pytest.mark.parametrize(
    ("build", "kind", "text"),
    [
        (lambda keyed: keyed.join(Flow.of(1)), TypeError, r"join\(\) takes the result of group_by_key\(\), not Flow"),
        (
            lambda keyed: keyed.join(keyed, how="cross"),
            ValueError,
            r"join\(how='cross'\): choose one of 'inner', 'left', 'outer'",
        ),
        (lambda keyed: keyed.join(keyed, max_size=0), ValueError, "max_size"),
    ],
)
def test_what_can_not_be_joined_is_refused_at_once(
    build: Callable[[KeyedFlow[int, Pair]], object], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        build(by_key((1, "a")))


def test_the_plan_shows_both_sides() -> None:
    flow = by_key((1, "a")).map(key_of).join(Flow.of(1).group_by_key(abs), how="left")

    assert "join(key_of -> map(key_of), abs, how='left')" in flow.describe()
