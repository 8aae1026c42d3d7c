from __future__ import annotations

from typing import Any, cast

import pytest

from reactive_aio import UNBOUNDED, Flow
from tests.subscribers import ByHand, Recorder, idle


async def test_gives_one_container_of_everything() -> None:
    assert await Flow.range(3).collect(list, list.append).to_list() == [[0, 1, 2]]


async def test_the_container_of_an_empty_source_is_given_too() -> None:
    assert await Flow.empty().collect(list, list.append).to_list() == [[]]


async def test_the_container_is_made_anew_for_each_subscription() -> None:
    made: list[list[int]] = []

    def factory() -> list[int]:
        made.append([])
        return made[-1]

    flow = Flow.range(2).collect(factory, list.append)
    assert made == []

    assert await flow.to_list() == await flow.to_list() == [[0, 1]]
    assert len(made) == 2


async def test_nothing_is_made_or_asked_for_without_demand() -> None:
    source = ByHand()
    made: list[list[int]] = []
    recorder = Recorder()

    Flow.from_publisher(source).collect(lambda: made.append([]) or made[-1], list.append).subscribe(recorder)
    await idle()

    assert (source.requests, made) == ([], [])


async def test_asks_for_everything_when_the_container_is_wanted_and_completes_with_it() -> None:
    source = ByHand()
    recorder = Recorder(request=1)

    Flow.from_publisher(source).collect(list, list.append).subscribe(recorder)
    await idle()
    assert source.requests == [UNBOUNDED]

    source.next(1, 2)
    await idle()
    assert recorder.kinds == ["subscribe"]

    source.complete()
    await idle()
    assert recorder.signals[1:] == [("next", [1, 2]), ("complete", None)]


async def test_an_end_before_the_container_is_wanted_waits_for_demand() -> None:
    recorder = Recorder()

    Flow.empty().collect(list, list.append).subscribe(recorder)
    await idle()
    assert recorder.kinds == ["subscribe"]

    recorder.request(1)
    await idle()
    assert recorder.signals[1:] == [("next", []), ("complete", None)]


async def test_a_failing_source_gives_no_container() -> None:
    recorder = Recorder(request=1)

    Flow.of(1).concat(Flow.error(OSError("down"))).collect(list, list.append).subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe", "error"]
    assert str(recorder.error) == "down"


@pytest.mark.parametrize("items", [[], [1]])
async def test_a_failing_factory_fails_the_flow(items: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        await Flow.from_iterable(items).collect(lambda: [1 // 0], list.append).to_list()


async def test_a_failing_accumulator_fails_the_flow_and_is_named() -> None:
    with pytest.raises(TypeError) as caught:
        await Flow.of([1]).collect(set, set.add).to_list()

    assert "in collect(set, add), chained at" in caught.value.__notes__[0]


async def test_what_follows_runs_on_the_container() -> None:
    ranked = Flow.from_iterable("abcab").collect(set, set.add).flat_map_iterable(sorted)

    assert await ranked.take(2).to_list() == ["a", "b"]
    assert await ranked.map(str.upper).to_list() == ["A", "B", "C"]


async def test_a_container_nobody_wants_any_more_is_not_given() -> None:
    assert await Flow.range(3).collect(list, list.append).take(0).to_list() == []


@pytest.mark.parametrize("place", [0, 1])
def test_a_coroutine_function_is_refused_when_the_flow_is_built(place: int) -> None:
    async def wrong(*_: object) -> None:
        raise NotImplementedError

    functions: list[Any] = [list, list.append]
    functions[place] = wrong

    with pytest.raises(TypeError, match="ordinary function"):
        Flow.of(1).collect(functions[0], functions[1])


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        Flow.of(1).collect(cast("Any", []), list.append)
