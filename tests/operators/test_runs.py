"""Sorting in steps: runs of elements, and buckets that are taken from all runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from reactive_aio import Flow, LimitExceededError, hooks
from reactive_aio.operators.transforming import runs, sort_by
from reactive_aio.operators.transforming.runs import Runs

SIZES = (0, 1, 3, 4, 5, 16, 17, 90, 300)
KINDS = ("few values", "many values", "sorted", "the other way", "all equal", "one run around the others")


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RUN", 4)
    monkeypatch.setattr(sort_by, "RUN", 4)


def drawn(kind: str, size: int) -> list[tuple[int, int]]:
    """Return ranks, each with its place."""
    draw = Random(size)
    ranks = {
        "few values": lambda n: draw.randrange(3),
        "many values": lambda n: draw.randrange(10**6),
        "sorted": lambda n: n,
        "the other way": lambda n: -n,
        "all equal": lambda n: 7,
        "one run around the others": lambda n: (n % 2) * 10**9 + n if n < runs.RUN else draw.randrange(10**6, 10**8),
    }[kind]
    return [(ranks(n), n) for n in range(size)]


def rank(element: tuple[int, int]) -> int:
    return element[0]


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_sorts_as_python_does(kind: str, size: int, reverse: bool) -> None:
    elements = drawn(kind, size)
    whole, by_rank = sorted(elements, reverse=reverse), sorted(elements, key=rank, reverse=reverse)

    assert whole == Flow.from_iterable(elements).sort_by(reverse=reverse).run_sync()
    assert by_rank == Flow.from_iterable(elements).sort_by(rank, reverse=reverse).run_sync()
    assert by_rank[:5] == Flow.from_iterable(elements).sort_by(rank, reverse=reverse).take(5).run_sync()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["many values", "sorted", "the other way", "one run around the others"])
def test_no_step_sorts_much_more_than_a_run(kind: str, reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    fill = Runs._fill

    def counted(self: Runs) -> bool:
        filled = fill(self)
        steps.append(len(self._bucket))
        return filled

    monkeypatch.setattr(Runs, "_fill", counted)
    size = 50 * runs.RUN
    assert size == len(Flow.from_iterable(drawn(kind, size)).sort_by(rank, reverse=reverse).run_sync())

    assert size == sum(steps)
    assert max(steps) <= 2 * runs.RUN
    assert len(steps) <= 50 * 4


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("key", [None, rank])
async def test_a_list_is_put_together_in_several_turns(
    key: Any, still: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    fills: list[int] = []
    turns: list[int] = []
    fill = Runs._fill

    def slow(self: Runs) -> bool:
        still[0] += 2e-3
        fills.append(len(turns))
        return fill(self)

    monkeypatch.setattr(Runs, "_fill", slow)
    elements = drawn("many values", 40)
    task = asyncio.ensure_future(Flow.from_iterable(elements).to_sorted_list(key=key))
    while not task.done():
        turns.append(1)
        await asyncio.sleep(0)

    assert sorted(elements, key=key) == await task
    assert len(fills) >= 6
    assert max(Counter(fills).values()) <= 2


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("max_size", [1, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("key", [None, rank])
def test_it_fails_with_one_element_too_many(max_size: int, key: Any) -> None:
    flow = Flow.from_iterable(drawn("few values", max_size))

    assert max_size == len(flow.sort_by(key, max_size=max_size).run_sync())
    with pytest.raises(LimitExceededError, match=f"more than {max_size} elements"):
        flow.start_with((9, 9)).sort_by(key, max_size=max_size).run_sync()


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("key", [None, rank])
@pytest.mark.parametrize("taken", [1, 5, 11])
async def test_the_elements_that_are_not_read_are_discarded(taken: int, key: Any, reverse: bool) -> None:
    left: list[tuple[int, int]] = []
    elements = drawn("few values", 12)
    flow = Flow.from_iterable(elements).sort_by(key, reverse=reverse)

    with hooks.using(on_discard=left.append):
        async with flow.open() as items:
            read = [await anext(items) for _ in range(taken)]
    assert sorted(elements) == sorted([*read, *left])


def test_a_key_is_called_once_for_each_element_as_it_comes() -> None:
    calls: list[object] = []
    flow = Flow.range(3).do_on_next(lambda n: calls.append(("came", n))).sort_by(lambda n: calls.append(n) or -n)

    assert [2, 1, 0] == flow.run_sync()
    assert [("came", 0), 0, ("came", 1), 1, ("came", 2), 2] == calls
