"""The ends that make one value of a flow, each at its edges, against the builtins."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from heapq import nlargest
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, EmptyFlowError, Flow, LimitExceededError, hooks, schedulers
from reactive_aio.operators.folding.ranking import ROOM, TopK
from tests.grid.points import Books
from tests.subscribers import ByHand, idle

BROKEN = Flow.of(1, 2).concat(Flow.error(lambda: OSError("down")))
ENDS: dict[str, Callable[[Flow[Any]], Any]] = {
    "to_set": lambda flow: flow.to_set(),
    "to_dict": lambda flow: flow.to_dict(str),
    "single": lambda flow: flow.filter(lambda n: n > 1).single(),
    "element_at": lambda flow: flow.element_at(9),
    "sum": lambda flow: flow.sum(),
    "min": lambda flow: flow.min(),
    "max": lambda flow: flow.max(),
    "all": lambda flow: flow.all(lambda _: True),
    "any": lambda flow: flow.any(lambda _: False),
    "contains": lambda flow: flow.contains(9),
    "is_empty": lambda flow: flow.filter(lambda _: False).is_empty(),
    "drain": lambda flow: flow.drain(),
    "reduce": lambda flow: flow.reduce(max),
    "reduce, from a start": lambda flow: flow.reduce(max, 0),
    "collect": lambda flow: flow.collect(list, list.append),
    "top_k": lambda flow: flow.top_k(2),
    "to_sorted_list": lambda flow: flow.to_sorted_list(),
    "count_by_key": lambda flow: flow.count_by_key(str),
    "reduce_by_key": lambda flow: flow.reduce_by_key(str, max, 0),
}


class Read:
    """Numbers, and how many of them have been read."""

    def __init__(self) -> None:
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        for n in range(1000):
            self.count += 1
            yield n


ROWS: list[list[Any]] = [[], [3], [3, 1, 2], [2, 1, 1, 2], [0.5, 0.25], [True, False]]


@pytest.mark.parametrize("items", ROWS, ids=str)
async def test_the_ends_give_what_the_builtins_give(items: list[Any]) -> None:
    flow = Flow.from_iterable(items)

    assert set(items) == await flow.to_set()
    assert {str(n): n for n in items} == await flow.to_dict(str)
    assert {str(n): n * 2 for n in items} == await flow.to_dict(str, value=lambda n: n * 2)
    assert dict(enumerate(items)) == await flow.index().to_dict()
    assert sum(items) == await flow.sum()
    assert sum(items, 10) == await flow.sum(10)
    assert min(items, default=None) == await flow.min(default=None)
    assert max(items, default=None) == await flow.max(default=None)
    assert all(n > 1 for n in items) == await flow.all(lambda n: n > 1)
    assert any(n > 1 for n in items) == await flow.any(lambda n: n > 1)
    assert (2 in items) == await flow.contains(2)
    assert sorted(items) == await flow.to_sorted_list()
    assert sorted(items, key=str, reverse=True) == await flow.to_sorted_list(key=str, reverse=True)
    assert nlargest(2, items) == await flow.top_k(2)
    assert nlargest(2, items, key=str) == await flow.top_k(2, key=str)
    assert Counter(n > 1 for n in items) == await flow.count_by_key(lambda n: n > 1)
    assert {n: items.count(n) * n for n in items} == await flow.reduce_by_key(lambda n: n, lambda a, b: a + b, 0)
    assert items == await flow.collect(list, list.append)
    assert (not items) == await flow.is_empty()
    await flow.drain()


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_a_failure_comes_out(end: Callable[[Flow[Any]], Any]) -> None:
    with pytest.raises(OSError, match="down"):
        await end(BROKEN)


@pytest.mark.parametrize("name", ["single", "element_at", "min", "max", "reduce"])
async def test_what_needs_an_element_says_so_where_there_is_none(name: str) -> None:
    with pytest.raises(EmptyFlowError, match=name):
        await ENDS[name](Flow.empty())


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_an_end_may_be_awaited_twice(end: Callable[[Flow[Any]], Any]) -> None:
    flow = Flow.of(*[0] * 9, 7)

    assert await end(flow) == await end(flow)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_an_end_comes_home(end: Callable[[Flow[Any]], Any]) -> None:
    flow = Flow.of(*[0] * 9, 7)

    with schedulers.thread("elsewhere") as scheduler:
        assert await end(flow) == await end(flow.publish_on(scheduler, prefetch=2))


# -- how much is read and asked for

READS = [
    (lambda flow: flow.all(lambda n: n < 5), 6),
    (lambda flow: flow.any(lambda n: n > 5), 7),
    (lambda flow: flow.contains(5), 6),
    (lambda flow: flow.is_empty(), 1),
    (lambda flow: flow.element_at(5), 6),
    (lambda flow: flow.take(5).drain(), 5),
]


@pytest.mark.parametrize(("end", "count"), READS)
async def test_an_end_reads_no_further_than_it_needs_to(end: Callable[[Flow[Any]], Any], count: int) -> None:
    read = Read()
    await end(Flow.from_iterable(read))

    assert count == read.count


async def test_single_reads_two() -> None:
    read = Read()

    with pytest.raises(LimitExceededError, match="single"):
        await Flow.from_iterable(read).single()
    assert 2 == read.count


ASKED = [
    ("to_set", [UNBOUNDED]), ("sum", [UNBOUNDED]), ("min", [UNBOUNDED]), ("drain", [UNBOUNDED]), ("single", [2]),
    ("all", [1]), ("any", [1]), ("contains", [1]), ("is_empty", [1]), ("element_at", [10]), ("top_k", [UNBOUNDED]),
    ("to_sorted_list", [UNBOUNDED]), ("count_by_key", [UNBOUNDED]), ("reduce_by_key", [UNBOUNDED]),
    ("reduce", [UNBOUNDED]), ("reduce, from a start", [UNBOUNDED]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), ASKED)
async def test_an_end_asks_for_what_it_needs(name: str, expected: list[int]) -> None:
    source = ByHand()
    task = asyncio.ensure_future(ENDS[name](Flow.from_publisher(source)))
    await idle()
    assert expected == source.requests

    source.error(OSError("down"))
    with pytest.raises(OSError, match="down"):
        await task


async def test_the_element_that_settles_a_question_cancels_the_source() -> None:
    source = ByHand()
    task = asyncio.ensure_future(Flow.from_publisher(source).contains(1))
    await idle()
    source.next(1)

    assert await task
    assert 1 == source.cancels


# -- each for itself


async def test_of_several_with_one_key_the_last_counts() -> None:
    assert {1: "b", 2: "cc"} == await Flow.of("a", "cc", "b").to_dict(len)


async def test_a_value_needs_a_key() -> None:
    with pytest.raises(TypeError, match="to_dict"):
        await Flow.of(1).to_dict(value=str)


async def test_what_is_no_pair_is_an_error() -> None:
    with pytest.raises(TypeError, match="unpack"):
        await Flow.of(1).to_dict()


async def test_single_gives_the_element_or_the_default() -> None:
    assert None is await Flow.of(None).single()
    assert 7 == await Flow.empty().single(7) == await Flow.empty().single(default=7)


async def test_element_at_gives_the_element_or_the_default() -> None:
    assert [0, 2] == [await Flow.range(3).element_at(index) for index in (0, 2)]
    assert None is await Flow.range(3).element_at(3, default=None)


@pytest.mark.parametrize("index", [-1, 1.0, "1", True])
async def test_element_at_takes_a_place(index: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="element_at"):
        await Flow.of(1).element_at(index)


async def test_a_sum_changes_no_element_and_no_start() -> None:
    start: list[int] = []
    first = [1]

    assert [1, 2] == await Flow.of(first, [2]).sum(start)
    assert ([], [1]) == (start, first)


@pytest.mark.parametrize("key", [None, abs])
async def test_of_equals_the_first_is_the_least_and_the_greatest(key: Any) -> None:
    items = [1.0, 1, True]

    assert await Flow.from_iterable(items).min(key=key) is items[0]
    assert await Flow.from_iterable(items).max(key=key) is items[0]


async def test_the_key_is_asked_for_once_for_each_element() -> None:
    asked: list[int] = []

    def negated(n: int) -> int:
        asked.append(n)
        return -n

    assert (3, 1) == (await Flow.of(1, 3, 2).min(key=negated), await Flow.of(1, 3, 2).max(key=negated))
    assert [1, 3, 2] * 2 == asked


async def test_an_element_contains_itself_though_it_equals_nothing() -> None:
    nan = float("nan")

    assert await Flow.of(nan).contains(nan)
    assert not await Flow.of(nan).contains(float("nan"))


async def test_drain_has_every_effect_and_gives_nothing() -> None:
    seen: list[int] = []

    assert None is await Flow.range(3).do_on_next(seen.append).drain()
    assert [0, 1, 2] == seen


@pytest.mark.parametrize("k", [0, 1, 5, 2000])
async def test_the_greatest_are_found_among_many_and_the_first_of_equals_comes_first(k: int) -> None:
    items = [(n * 7919 % 1000 // 10, n) for n in range(1000)]

    assert nlargest(k, items, key=lambda pair: pair[0]) == await Flow.from_iterable(items).top_k(
        k, key=lambda pair: pair[0]
    )


class Ranked:
    """An element that is compared by its rank alone, and counts how often any of them was."""

    compared = 0

    def __init__(self, rank: int, at: int) -> None:
        self.rank, self.at = rank, at

    def __lt__(self, other: Ranked) -> bool:
        Ranked.compared += 1
        return self.rank < other.rank


@pytest.mark.parametrize("k", [0, 1, 5, 2000])
async def test_without_a_key_too_the_first_of_equals_comes_first(k: int) -> None:
    items = [Ranked(n * 7919 % 1000 // 10, n) for n in range(1000)]

    expected = [each.at for each in nlargest(k, items, key=lambda each: each.rank)]

    assert expected == [each.at for each in await Flow.from_iterable(items).top_k(k)]


async def test_an_element_that_is_not_among_the_greatest_is_compared_once() -> None:
    kept = TopK[Ranked](5, None).transform()
    list(kept.apply(Ranked(rank, rank) for rank in range(200)))
    before = Ranked.compared

    list(kept.apply(Ranked(0, at) for at in range(1000)))

    assert 1000 == Ranked.compared - before


async def test_no_more_than_twice_as_many_as_are_wanted_are_kept() -> None:
    kept = TopK[int](5, None).transform()

    assert [] == list(kept.apply(iter(range(1000))))
    assert len(kept.value) <= 2 * 5 + ROOM


@pytest.mark.parametrize("key", [None, lambda item: object()])
async def test_no_elements_are_compared_where_none_are_wanted(key: Any) -> None:
    assert [] == await Flow.from_iterable([1, "a", None] * 100).top_k(0, key=key)


@pytest.mark.parametrize("k", [-1, 1.0, None, True])
async def test_top_k_takes_a_count(k: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="top_k"):
        await Flow.of(1).top_k(k)


async def test_keys_come_in_the_order_of_their_first_elements() -> None:
    flow = Flow.of("cc", "a", "bb")

    assert [2, 1] == list(await flow.count_by_key(len))
    assert [(2, "ccbb"), (1, "a")] == [*(await flow.reduce_by_key(len, lambda a, b: a + b, "")).items()]


async def test_a_function_that_puts_parts_together_changes_nothing_here() -> None:
    flow = Flow.of("a", "b", "c")

    assert "abc" == await flow.reduce(lambda a, b: a + b, combine=lambda a, b: a + b)
    assert "abc" == await flow.reduce(lambda a, b: a + b, "", combine=lambda a, b: a + b)


async def test_a_reduction_may_be_of_another_type_and_gives_what_it_began_with_of_nothing() -> None:
    assert "n12" == await Flow.of(1, 2).reduce(lambda text, n: f"{text}{n}", "n")
    assert (None, 7) == (await Flow.empty().reduce(max, None), await Flow.empty().reduce(max, 7))


async def test_the_initial_value_is_the_left_of_the_first_call_as_functools_has_it() -> None:
    words = ["b", "c"]

    assert functools.reduce("{}-{}".format, words, "a") == await Flow.from_iterable(words).reduce("{}-{}".format, "a")
    assert functools.reduce("{}-{}".format, words) == await Flow.from_iterable(words).reduce("{}-{}".format)


KEYED = {"min", "max", "to_sorted_list", "top_k"}


@pytest.mark.parametrize("name", ["all", "any", "to_dict", *sorted(KEYED), "count_by_key", "reduce_by_key", "reduce"])
async def test_an_argument_that_is_no_ordinary_function_is_refused(name: str) -> None:
    async def later(item: object) -> None:
        """Do nothing."""

    def call(fn: Any) -> Any:
        end = getattr(Flow.of(1), name)
        if name == "reduce_by_key":
            return end(str, fn, 0)
        return end(*[1] * (name == "top_k"), key=fn) if name in KEYED else end(fn)

    with pytest.raises(TypeError, match=f"{name}.*async def"):
        await call(later)
    with pytest.raises(TypeError, match=f"{name}.*function, not int"):
        await call(3)


@pytest.mark.parametrize(
    ("end", "operator"),
    [
        (lambda flow: flow.any(lambda n: 1 // n), "any("),
        (lambda flow: flow.all(lambda n: 1 // n == 1), "all("),
        (lambda flow: flow.min(key=lambda n: 1 // n), "min("),
        (lambda flow: flow.reduce(lambda a, b: a // b), "reduce("),
        (lambda flow: flow.reduce(lambda a, b: a // b, 1), "reduce("),
        (lambda flow: flow.to_dict(lambda n: 1 // n), "to_dict("),
        (lambda flow: flow.map(lambda n: [n] if n else "0").sum([]), "sum("),
    ],
)
async def test_a_failing_end_is_located(end: Callable[[Flow[Any]], Any], operator: str) -> None:
    with pytest.raises((ZeroDivisionError, TypeError)) as failed:
        await end(Flow.of(2, 0) if operator == "any(" else Flow.of(1, 0))

    assert f"in {operator}" in failed.value.__notes__[0]
    assert __file__ in failed.value.__notes__[0]


# -- what was gathered and reaches nobody


async def test_what_to_list_has_gathered_is_discarded_when_the_flow_fails() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append), pytest.raises(ZeroDivisionError):
        await Flow.range(5).map(lambda n: 6 // (2 - n)).to_list()

    assert discarded == [3, 6]


@pytest.mark.usefixtures("still")
async def test_what_to_list_has_gathered_is_given_or_discarded_whenever_the_wait_is_cancelled() -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(4):
            await asyncio.sleep(0)
            yield books.make(n)

    turns, ended = 0, False
    counts: set[int] = set()
    while not ended:
        books = Books()
        with books.open():
            task = asyncio.ensure_future(Flow.from_async_iterable(numbers()).to_list())
        await idle(turns)
        turns, ended = turns + 1, not task.cancel()
        await asyncio.wait([task])
        for item in [] if task.cancelled() else task.result():
            books.take(item)
        assert (books.lost, books.twice) == ({}, {})
        counts.add(sum(books.discarded.values()))

    assert counts == {0, 1, 2, 3, 4}


async def test_what_to_list_gives_is_not_discarded() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        assert await Flow.range(2).to_list() == [0, 1]

    assert discarded == []
