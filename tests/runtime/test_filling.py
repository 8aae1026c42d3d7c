"""A region whose demand is large fills a list by one call; nobody can tell but by its speed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._core import budgets
from reactive_aio._fusion import fuse
from reactive_aio._fusion.writing import Unit
from reactive_aio._runtime import emission
from reactive_aio._runtime.emission import MANY
from tests.subscribers import Recorder, idle

SOURCES = pytest.mark.parametrize("source", [list[int], iter], ids=["a list", "an iterator"])


@pytest.fixture
def filled(still: list[float], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the lists that are filled by a call, which no turn cuts short."""
    lengths: list[int] = []
    call = fuse.call

    def noting(unit: Unit, transforms: Sequence[Any]) -> Any:
        function, bound = call(unit, transforms)

        def fill(items: Any, pace: Any, given: list[Any], most: int, *rest: Any) -> None:
            try:
                function(items, pace, given, most, *rest)
            finally:
                lengths.append(len(given))

        return fill, bound

    monkeypatch.setattr("reactive_aio._fusion.run.call", noting)
    return lengths


@SOURCES
async def test_what_is_wanted_is_made_and_no_more_of_the_input_is_taken(
    source: Callable[[Iterable[int]], Iterable[int]], filled: list[int]
) -> None:
    seen: list[int] = []
    flow = Flow.from_iterable(source(range(100))).map(lambda n: seen.append(n) or n).filter(lambda n: n % 2 == 0)
    recorder = Recorder(0)
    flow.publish_on(schedulers.current(), prefetch=MANY).subscribe(recorder)
    await idle()

    assert [*range(2 * MANY - 1)] == seen
    assert MANY == sum(filled)
    recorder.request(MANY)
    await idle()
    assert [*range(0, 2 * MANY, 2)] == recorder.items
    recorder.cancel()
    await idle()


async def test_little_is_taken_of_a_generator(filled: list[int]) -> None:
    flow = Flow.range(100).map(str).publish_on(schedulers.current(), prefetch=MANY - 1)

    assert [*map(str, range(100))] == await flow.to_list()
    assert {0} == {*filled}  # the fold behind the boundary


@pytest.mark.parametrize("prefetch", range(MANY, 2 * MANY))
async def test_demand_may_be_large_and_small_by_turns(prefetch: int, filled: list[int]) -> None:
    recorder = Recorder(0)
    Flow.range(100).map(str).filter(bool).publish_on(schedulers.current(), prefetch=prefetch).subscribe(recorder)
    while not recorder.over.is_set():
        await idle()
        recorder.request(3)

    assert [*map(str, range(100))] == recorder.items
    assert prefetch == filled[0]


@pytest.mark.parametrize("end", ["count", "sum", "drain"])
async def test_a_fold_never_waits_for_demand_and_is_filled_whatever_is_wanted(end: str, filled: list[int]) -> None:
    await getattr(Flow.range(3000).map(lambda n: n), end)()

    assert filled
    assert {0} == {*filled}


@SOURCES
@pytest.mark.parametrize("at", [0, 3, 70])
async def test_a_failure_comes_behind_what_was_made_and_names_stage_and_element(
    source: Callable[[Iterable[int]], Iterable[int]], at: int, filled: list[int]
) -> None:
    recorder = Recorder(1000)
    flow = Flow.from_iterable(source(range(100))).map(lambda n: n).map(lambda n: n + 1 // (at - n))
    flow.publish_on(schedulers.current()).subscribe(recorder)
    await recorder.over.wait()

    assert at == len(recorder.items)
    assert filled
    assert isinstance(recorder.error, ZeroDivisionError)
    (note,) = recorder.error.__notes__
    assert f"element #{at} of from_iterable" in note


@pytest.mark.parametrize("at", [0, 5])
async def test_a_stop_iteration_is_a_failure_as_it_is_in_a_generator(at: int, filled: list[int]) -> None:
    def stopping(n: int) -> int:
        if n == at:
            raise StopIteration(n)
        return n

    with pytest.raises(RuntimeError, match="generator raised StopIteration") as caught:
        await Flow.range(100).map(stopping).to_list()

    assert isinstance(caught.value.__cause__, StopIteration)
    assert "in map(stopping)" in caught.value.__notes__[0]
    assert f"element #{at}" in caught.value.__notes__[0]
    assert filled


async def test_what_is_given_one_by_one_is_never_made_ahead(filled: list[int]) -> None:
    log: list[Any] = []

    def on_next(n: int) -> None:
        log.append(("has", n))

    flow = Flow.range(3 * MANY).map(lambda n: log.append(("makes", n)) or n)
    await flow.for_each(on_next)

    assert [(word, n) for n in range(3 * MANY) for word in ("makes", "has")] == log


async def test_a_list_is_given_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch, filled: list[int]) -> None:
    monkeypatch.setattr(budgets, "TURN", 0.0)
    chunks: list[int] = []
    flow = Flow.range(20).map(str).publish_on(schedulers.current(), prefetch=16)
    monkeypatch.setattr(emission, "MANY", 1)

    assert [*map(str, range(20))] == await flow.do_on_next(chunks.append).to_list()
    assert 1 == filled[0]
