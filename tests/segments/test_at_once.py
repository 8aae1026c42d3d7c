"""Lines for many elements at once: a region reads a list with them, and nobody can tell but by its speed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise
from math import inf
from random import Random
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._core import budgets
from reactive_aio._fusion import Pace
from reactive_aio._fusion.fuse import call, fuse, gathering
from reactive_aio._fusion.writing import LONGEST_PLAIN, LONGEST_SLICE
from reactive_aio.operators.filtering.take_last import TakeLast
from reactive_aio.operators.folding.fold import ToList
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.windowing.buffer import Buffer
from tests.subscribers import Recorder, idle

AnyFlow = Flow[Any]
LENGTHS = (0, 1, 15, 16, 17, 100, 128, 129, 1024, 1025, 3000)


def fail_at(place: int) -> Callable[[Any], Any]:
    calls = iter(range(place))

    def fail(item: Any) -> Any:
        if next(calls, None) is None:
            raise ValueError(f"at {place}")
        return item

    return fail


FIRST: dict[str, Callable[[AnyFlow], AnyFlow]] = {
    "buffer(16)": lambda flow: flow.buffer(16),
    "buffer(100)": lambda flow: flow.buffer(100),
    "buffer(5000)": lambda flow: flow.buffer(5000),
    "take_last(20)": lambda flow: flow.take_last(20),
}
BEHIND: dict[str, Callable[[AnyFlow], AnyFlow]] = {
    "nothing": lambda flow: flow,
    "map": lambda flow: flow.map(repr),
    "filter": lambda flow: flow.index().filter(lambda pair: pair[0] % 2 == 1),
    "several of one": lambda flow: flow.flat_map_iterable(lambda item: [item] * 3),
    "take": lambda flow: flow.take(3),
    "a failure": lambda flow: flow.map(fail_at(2)),
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("first", FIRST)
async def test_a_list_gives_what_an_iterator_gives_for_any_demand(first: str, behind: str, length: int) -> None:
    def flow(items: Any) -> AnyFlow:
        return BEHIND[behind](FIRST[first](Flow.from_iterable(items)))

    demands = [Random(f"{first}{behind}{length}{at}").choice((1, 2, 7, 20, 10_000)) for at in range(60)]
    seen: list[list[tuple[str, Any]]] = []
    for items in (list(range(length)), islice(range(length), length)):
        recorder = Recorder()
        flow(items).subscribe(recorder)
        for n in demands:
            if recorder.kinds[-1:] in (["complete"], ["error"]):
                break
            recorder.request(n)
            await idle()
        seen.append(
            [(kind, [str(value), *notes(value)] if kind == "error" else value) for kind, value in recorder.signals]
        )
    assert seen[0] == seen[1]


def notes(error: BaseException) -> list[str]:
    """Return the notes of an error, but for the name of the source."""
    return [note.rpartition(" of ")[0] for note in getattr(error, "__notes__", ())]


@pytest.mark.parametrize("length", LENGTHS)
async def test_ends_keep_all_elements_of_a_list(length: int) -> None:
    items = [object() for _ in range(length)]
    assert await Flow.from_iterable(items).to_list() == items
    assert await Flow.from_iterable(items).take_last(3).to_list() == items[-3:]


@pytest.mark.parametrize(
    ("stages", "longest"),
    [
        ((ToList(),), LONGEST_PLAIN),
        ((Buffer(10**6),), LONGEST_PLAIN),
        ((TakeLast(5),), LONGEST_PLAIN),
        ((Buffer(10**6), Map(len)), LONGEST_SLICE),
        ((Buffer(16), Map(len)), LONGEST_SLICE),
    ],
    ids=str,
)
def test_the_clock_is_looked_at_between_slices(
    monkeypatch: pytest.MonkeyPatch, stages: tuple[Any, ...], longest: int
) -> None:
    items = iter(range(20_000))
    left: list[int] = []

    def clock() -> float:
        left.append(items.__length_hint__())
        return 0.0

    monkeypatch.setattr(budgets, "clock", clock)
    pace = Pace()
    pace.deadline = 1.0
    list(fuse([each.transform() for each in stages], paced=True).paced(items, pace))

    assert pace.ended
    read = [before - after for before, after in pairwise(left)]
    assert max(read) == longest
    assert read[:5] == [1, 2, 4, 8, 16]


def test_a_pass_ends_when_its_time_is_up_and_the_next_one_goes_on() -> None:
    transform = Buffer(1_000).transform()
    items, pace = iter(range(2_500)), Pace()  # whose time is always up
    lists: list[list[int]] = []
    passes = 0
    while not pace.ended:
        lists += fuse((transform,), paced=True).paced(items, pace)
        passes += 1
    assert [*lists, *transform.finish()] == [[*range(1_000)], [*range(1_000, 2_000)], [*range(2_000, 2_500)]]
    assert passes > 3


@pytest.mark.parametrize("behind", [(), (Map(len),)], ids=str)
def test_no_more_is_made_than_there_is_room_for(behind: tuple[Any, ...]) -> None:
    stages = (Buffer(16).transform(), *behind)
    unit = gathering(tuple(map(type, stages)))
    assert unit is not None
    function, bound = call(unit, stages)
    items, pace = iter(range(1_000)), Pace()
    pace.deadline = inf
    given: list[Any] = []
    while not pace.ended:
        made: list[Any] = []
        function(items, pace, made, 3, *bound)
        assert len(made) <= 3
        given += made
    assert len(given) == 1_000 // 16
