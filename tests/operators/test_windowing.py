"""sliding and buffer_until_changed, each at its edges."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, LimitExceededError, hooks, schedulers
from tests.subscribers import ByHand, Recorder, idle


def windows(items: list[int], size: int, step: int) -> list[list[int]]:
    """Return the full windows of a list."""
    return [items[at : at + size] for at in range(0, len(items), step) if at + size <= len(items)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (1, 3), (2, 5)])
async def test_sliding_gives_the_full_windows(count: int, size: int, step: int) -> None:
    expected = windows(list(range(count)), size, step)

    assert expected == await Flow.range(count).sliding(size, step=step).to_list()


@pytest.mark.parametrize(
    ("size", "step", "request_", "expected"),
    [(3, 1, 1, 3), (3, 1, 4, 6), (2, 5, 3, 12), (3, 1, UNBOUNDED, UNBOUNDED), (2, 3, UNBOUNDED, UNBOUNDED)],
)
async def test_sliding_asks_for_what_the_wanted_lists_take(size: int, step: int, request_: int, expected: int) -> None:
    source = ByHand()
    Flow.from_publisher(source).sliding(size, step=step).subscribe(Recorder(request_))
    await idle()

    assert [expected] == source.requests


async def test_sliding_asks_from_the_second_list_on_for_the_step() -> None:
    source, recorder = ByHand(), Recorder(1)
    Flow.from_publisher(source).sliding(3, step=2).subscribe(recorder)
    await idle()
    source.next(0, 1, 2)
    await idle()
    recorder.request(1)
    await idle()

    assert [3, 2] == source.requests


@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize(("size", "step"), [(3, 1), (3, 2), (3, 3), (2, 5), (1, 3)])
async def test_sliding_tells_of_each_element_that_was_kept_in_vain(count: int, size: int, step: int) -> None:
    discarded: list[object] = []

    with hooks.using(on_discard=discarded.append):
        lists = await Flow.range(count).sliding(size, step=step).to_list()

    begun = [at for at in range(0, count, step) if at + size > count]
    kept = sorted({n for at in begun for n in range(at, min(at + size, count))} - {n for each in lists for n in each})
    # Of the first window all elements are its own; where windows lie apart what lies between them belongs to none.
    assert kept == discarded


@pytest.mark.parametrize(("size", "step"), [(0, 1), (1, 0), (-1, 1), (1.5, 1), (1, True)])
def test_sliding_takes_sizes_of_at_least_one(size: Any, step: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="sliding"):
        Flow.of(1).sliding(size, step=step)


async def test_the_lists_of_sliding_are_the_consumers_own() -> None:
    def empty(items: list[int]) -> list[int]:
        copy = list(items)
        items.clear()
        return copy

    assert [[0, 1], [1, 2]] == await Flow.range(3).sliding(2).map(empty).to_list()


# -- buffer_until_changed


@pytest.mark.parametrize(
    ("items", "expected"),
    [([], []), ([1], [[1]]), ([1, 1, 2, 1], [[1, 1], [2], [1]]), ([None, None, 0], [[None, None], [0]])],
)
async def test_gathers_what_is_equal(items: list[Any], expected: list[list[Any]]) -> None:
    assert expected == await Flow.from_iterable(items).buffer_until_changed().to_list()


async def test_gathers_by_the_key_that_is_asked_for_once_for_each_element() -> None:
    asked: list[str] = []

    def initial(word: str) -> str:
        asked.append(word)
        return word[0]

    assert [["a", "ab"], ["b"]] == await Flow.of("a", "ab", "b").buffer_until_changed(initial).to_list()
    assert ["a", "ab", "b"] == asked


async def test_a_list_is_given_when_an_element_differs() -> None:
    recorder, source = Recorder(1), ByHand()
    Flow.from_publisher(source).buffer_until_changed().subscribe(recorder)
    await idle()
    source.next(1)
    await idle()
    assert [] == recorder.items

    source.next(2)
    await idle()
    assert [[1]] == recorder.items
    assert 2 == sum(source.requests)


async def test_the_last_list_waits_for_demand_and_completes() -> None:
    recorder = Recorder(1)
    Flow.of(1, 2).buffer_until_changed().subscribe(recorder)
    await idle()
    assert [("next", [1])] == recorder.signals[1:]

    recorder.request(1)
    await idle()
    assert [("next", [2]), ("complete", None)] == recorder.signals[2:]


async def test_a_list_grows_no_longer_than_it_may() -> None:
    assert [[1, 1], [2, 2]] == await Flow.of(1, 1, 2, 2).buffer_until_changed(max_size=2).to_list()
    with pytest.raises(LimitExceededError, match="max_size=2"):
        await Flow.of(1, 1, 1).buffer_until_changed(max_size=2).to_list()


async def test_what_was_gathered_is_told_when_the_source_fails() -> None:
    discarded: list[object] = []

    with hooks.using(on_discard=discarded.append), pytest.raises(OSError, match="down"):
        await Flow.of(1, 2, 2).concat(Flow.error(OSError("down"))).buffer_until_changed().drain()

    assert [2, 2] == discarded


async def test_a_failure_does_not_wait_for_demand_behind_a_list_that_will_not_be_given() -> None:
    discarded: list[object] = []
    recorder, source = Recorder(1), ByHand()
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(source).buffer_until_changed().subscribe(recorder)
    await idle()
    source.next(1)
    await idle()
    source.next(2)
    source.error(OSError("down"))
    await idle()

    assert [[1]] == recorder.items
    assert "error" == recorder.kinds[-1]
    assert [2] == discarded


async def test_a_failure_waits_behind_the_lists_that_were_taken_before_it() -> None:
    recorder = Recorder(1)
    flow = Flow.of(1, 2).flat_map_iterable(lambda n: [n, -n, n]).concat(Flow.error(OSError("down")))
    flow.publish_on(schedulers.current()).buffer_until_changed().subscribe(recorder)
    await idle()
    assert ["subscribe", "next"] == recorder.kinds

    recorder.request(4)
    await idle()
    assert [[1], [-1], [1], [2], [-2]] == recorder.items
    assert "error" == recorder.kinds[-1]


@pytest.mark.parametrize("most", [0, -1, None, 2.0])
def test_a_list_needs_a_bound(most: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="max_size"):
        Flow.of(1).buffer_until_changed(max_size=most)


def test_a_key_is_an_ordinary_function() -> None:
    async def later(item: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=r"buffer_until_changed.*async def"):
        Flow.of(1).buffer_until_changed(later)


@pytest.mark.parametrize("build", [lambda f: f.sliding(2), lambda f: f.buffer_until_changed(abs)])
def test_a_stage_travels_to_workers(build: Callable[[Any], Any]) -> None:
    stage = build(Flow.of(1)).__nodes__.steps[0].operator

    assert stage == pickle.loads(pickle.dumps(stage))
