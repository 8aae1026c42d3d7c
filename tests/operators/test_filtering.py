"""The operators that let some of the elements through, each at its edges; conformance is tested by the registry."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, LimitExceededError, hooks
from tests.subscribers import ByHand, Recorder, idle

FAILING = Flow.range(4).concat(Flow.error(lambda: OSError("down")))


class Read:
    """Numbers, and how many of them have been read."""

    def __init__(self) -> None:
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        for n in range(1000):
            self.count += 1
            yield n


async def asked(build: Callable[[Flow[int]], Flow[Any]], request: int, *items: int) -> list[int]:
    """Return what an operator asks of its source when so much is asked of it, before and after some elements."""
    source = ByHand()
    build(Flow.from_publisher(source)).subscribe(Recorder(request))
    await idle()
    source.next(*items)
    await idle()
    return source.requests


# -- take_last


@pytest.mark.parametrize(("n", "expected"), [(0, []), (2, [3, 4]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])])
async def test_take_last_gives_the_last(n: int, expected: list[int]) -> None:
    assert expected == await Flow.range(5).take_last(n).to_list()


async def test_take_last_asks_for_everything() -> None:
    assert [UNBOUNDED] == await asked(lambda flow: flow.take_last(2), 1)


async def test_take_last_gives_what_is_wanted_and_completes_with_the_last() -> None:
    recorder = Recorder(1)
    Flow.range(5).take_last(2).subscribe(recorder)
    await idle()
    assert [("next", 3)] == recorder.signals[1:]

    recorder.request(1)
    await idle()
    assert [("next", 3), ("next", 4), ("complete", None)] == recorder.signals[1:]


async def test_take_last_tells_what_it_kept_when_the_source_fails() -> None:
    discarded: list[object] = []

    with hooks.using(on_discard=discarded.append), pytest.raises(OSError, match="down"):
        await FAILING.take_last(2).to_list()

    assert [2, 3] == discarded


async def test_take_last_tells_what_nobody_wanted() -> None:
    discarded: list[object] = []

    with hooks.using(on_discard=discarded.append):
        assert [3] == await Flow.range(5).take_last(2).take(1).to_list()

    assert [4] == discarded


# -- skip_last


@pytest.mark.parametrize(("n", "expected"), [(0, [0, 1, 2]), (1, [0, 1]), (3, []), (9, [])])
async def test_skip_last_leaves_out_the_last(n: int, expected: list[int]) -> None:
    assert expected == await Flow.range(3).skip_last(n).to_list()


async def test_skip_last_asks_once_for_what_it_holds_back() -> None:
    assert [5] == await asked(lambda flow: flow.skip_last(3), 2, 0, 1, 2, 3)


async def test_skip_last_gives_an_element_as_soon_as_enough_have_followed() -> None:
    read = Read()

    assert [0, 1] == await Flow.from_iterable(read).skip_last(3).take(2).to_list()
    assert read.count == 5


async def test_skip_last_tells_what_it_held_back() -> None:
    discarded: list[object] = []

    with hooks.using(on_discard=discarded.append):
        assert [0] == await Flow.range(3).skip_last(2).to_list()

    assert [1, 2] == discarded


# -- take_while, take_until, skip_while


async def test_take_while_ends_before_the_first_that_fails_and_reads_no_further() -> None:
    read = Read()

    assert [0, 1, 2] == await Flow.from_iterable(read).take_while(lambda n: n < 3).to_list()
    assert read.count == 4


async def test_take_until_ends_with_the_match_and_reads_no_further() -> None:
    read = Read()

    assert [0, 1, 2, 3] == await Flow.from_iterable(read).take_until(lambda n: n == 3).to_list()
    assert read.count == 4


async def test_take_until_completes_with_the_match_without_further_demand() -> None:
    recorder = Recorder(2)
    source = ByHand()
    Flow.from_publisher(source).take_until(lambda n: n == 1).subscribe(recorder)
    await idle()
    source.next(0, 1)
    await idle()

    assert ["subscribe", "next", "next", "complete"] == recorder.kinds
    assert 1 == source.cancels


async def test_take_while_cancels_at_the_first_that_fails() -> None:
    recorder = Recorder(5)
    source = ByHand()
    Flow.from_publisher(source).take_while(bool).subscribe(recorder)
    await idle()
    source.next(1, 0)
    await idle()

    assert ["subscribe", "next", "complete"] == recorder.kinds
    assert 1 == source.cancels


async def test_skip_while_tests_no_more_once_an_element_has_passed() -> None:
    tested: list[int] = []

    def small(n: int) -> bool:
        tested.append(n)
        return n < 2

    assert [2, 0, 1] == await Flow.of(0, 1, 2, 0, 1).skip_while(small).to_list()
    assert [0, 1, 2] == tested


async def test_skip_while_replaces_what_it_drops() -> None:
    assert 4 == sum(await asked(lambda flow: flow.skip_while(lambda n: n < 2), 2, 0, 1))


@pytest.mark.parametrize(
    ("method", "fn"),
    [
        ("take_while", lambda n: 1 // n),
        ("take_until", lambda n: 1 // n > 1),
        ("skip_while", lambda n: 1 // n),
        ("distinct", lambda n: 1 // n),
        ("distinct_until_changed", lambda n: 1 // n),
    ],
)
async def test_a_failing_function_ends_the_flow_behind_what_came_before(
    method: str, fn: Callable[[int], object]
) -> None:
    recorder = Recorder(10)
    before = [] if method == "skip_while" else [1]  # its function is called no more once an element has passed
    getattr(Flow.of(*before, 0), method)(fn).subscribe(recorder)
    await idle()

    assert before == recorder.items
    assert isinstance(recorder.error, ZeroDivisionError)
    assert f"in {method}(" in recorder.error.__notes__[0]


@pytest.mark.parametrize("method", ["take_while", "take_until", "skip_while", "distinct", "distinct_until_changed"])
def test_an_argument_that_is_no_ordinary_function_is_refused_when_the_flow_is_built(method: str) -> None:
    async def later(n: int) -> bool:
        return bool(n)

    with pytest.raises(TypeError, match=f"{method}.*async def"):
        getattr(Flow.of(1), method)(later)
    with pytest.raises(TypeError, match=f"{method}.*function, not int"):
        getattr(Flow.of(1), method)(3)


# -- slices

SLICES = [
    slice(None), slice(2), slice(0), slice(2, None), slice(2, 5), slice(5, 2), slice(3, 3), slice(None, None, 3),
    slice(1, None, 4), slice(1, 8, 3), slice(1, 7, 3), slice(2, 100, 5), slice(20, 30),
]  # fmt: skip


@pytest.mark.parametrize("at", SLICES, ids=str)
async def test_a_slice_gives_what_the_slice_of_a_list_gives(at: Any) -> None:
    assert list(range(10))[at] == await Flow.range(10)[at].to_list()


async def test_a_slice_reads_nothing_beyond_its_last_element() -> None:
    read = Read()

    assert [2, 5, 8] == await Flow.from_iterable(read)[2:11:3].to_list()
    assert read.count == 9


async def test_an_empty_slice_opens_no_source() -> None:
    read = Read()

    assert [] == await Flow.from_iterable(read)[5:2].to_list()
    assert read.count == 0


@pytest.mark.parametrize(
    ("at", "request_", "expected"),
    [
        (slice(3, None), 2, [5]),
        (slice(3, None, 4), 2, [8]),
        (slice(3, 9, 4), UNBOUNDED, [8]),
        (slice(3, None, 4), UNBOUNDED, [UNBOUNDED]),
    ],
)
async def test_a_slice_asks_for_what_leads_to_the_wanted_elements(at: Any, request_: int, expected: list[int]) -> None:
    assert expected == await asked(lambda flow: flow[at], request_)


@pytest.mark.parametrize(
    ("at", "error", "text"),
    [
        (slice(-3, None), ValueError, "take_last"),
        (slice(None, -3), ValueError, "skip_last"),
        (slice(None, None, 0), ValueError, "step"),
        (slice(None, None, -1), ValueError, "step"),
        (slice("a", None), TypeError, "start"),
        (slice(True, None), TypeError, "start"),
        (3, TypeError, "element_at"),
    ],
    ids=str,
)
def test_an_argument_that_is_no_slice_of_a_stream_is_refused_when_the_flow_is_built(
    at: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        Flow.of(1)[at]


def test_a_flow_is_no_sequence_for_all_that() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        iter(Flow.of(1))


def test_a_slice_is_shown_as_it_is_written() -> None:
    assert "Flow.range(0, 9)[2:8:3][:4]" == repr(Flow.range(9)[2:8:3][:4])


# -- distinct


async def test_distinct_gives_each_element_once() -> None:
    assert [3, 1, 2] == await Flow.of(3, 1, 3, 2, 1, 3).distinct().to_list()


async def test_distinct_gives_the_first_of_each_key() -> None:
    assert ["a", "bb"] == await Flow.of("a", "b", "bb", "c").distinct(len).to_list()


async def test_distinct_keeps_no_more_keys_than_it_may() -> None:
    recorder = Recorder(10)
    Flow.of(1, 2, 1, 3, 4).distinct(max_keys=2).subscribe(recorder)
    await idle()

    assert [1, 2] == recorder.items
    assert isinstance(recorder.error, LimitExceededError)
    assert "max_keys=2" in str(recorder.error)


async def test_distinct_forgets_the_oldest_key_where_it_is_told_to() -> None:
    assert [1, 2, 3, 1] == await Flow.of(1, 2, 3, 2, 3, 1).distinct(max_keys=2, evict=True).to_list()


async def test_distinct_remembers_for_one_subscription() -> None:
    flow = Flow.of(1, 1).distinct()

    assert [1] == await flow.to_list() == await flow.to_list()


@pytest.mark.parametrize(("most", "error"), [(0, ValueError), (None, TypeError), (1.5, TypeError)])
def test_distinct_needs_a_bound(most: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_keys"):
        Flow.of(1).distinct(max_keys=most)


# -- distinct_until_changed


async def test_distinct_until_changed_gives_an_element_that_comes_again_later() -> None:
    assert [1, 2, 1, None, 1] == await Flow.of(1, 2, 2, 1, 1, None, None, 1).distinct_until_changed().to_list()


async def test_distinct_until_changed_compares_keys() -> None:
    assert ["a", "bb", "c"] == await Flow.of("a", "b", "bb", "c").distinct_until_changed(len).to_list()


async def test_distinct_until_changed_asks_the_comparer_with_the_last_that_was_given() -> None:
    def near(before: int, now: int) -> bool:
        return abs(before - now) < 3

    assert [0, 3, 6] == await Flow.range(8).distinct_until_changed(comparer=near).to_list()


# -- of_type and ignore_elements


async def test_of_type_keeps_instances() -> None:
    assert [1, True] == await Flow.of(1, "a", True, None, 2.0).of_type(int).to_list()


@pytest.mark.parametrize("kind", ["int", 3, None])
def test_of_type_takes_a_type(kind: Any) -> None:
    with pytest.raises(TypeError, match="of_type"):
        Flow.of(1).of_type(kind)


async def test_ignore_elements_reads_everything_and_gives_nothing() -> None:
    read = Read()

    assert [] == await Flow.from_iterable(read).ignore_elements().to_list()
    assert read.count == 1000


async def test_ignore_elements_lets_a_failure_through() -> None:
    with pytest.raises(OSError, match="down"):
        await FAILING.ignore_elements().to_list()


async def test_ignore_elements_asks_for_everything() -> None:
    assert [UNBOUNDED] == await asked(lambda flow: flow.ignore_elements(), 1)


# -- all of them


@pytest.mark.parametrize("n", [-1, 1.5, "1", True])
@pytest.mark.parametrize("method", ["take_last", "skip_last"])
def test_an_argument_that_is_no_count_is_refused_when_the_flow_is_built(method: str, n: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=method):
        getattr(Flow.of(1), method)(n)


@pytest.mark.parametrize(
    "flow",
    [
        Flow.of(1, 1).take_last(2),
        Flow.of(1, 1).skip_last(2),
        Flow.of(1, 1).take_while(bool),
        Flow.of(1, 1).take_until(bool),
        Flow.of(1, 1).skip_while(bool),
        Flow.of(1, 1)[1:],
        Flow.of(1, 1).distinct(abs),
        Flow.of(1, 1).distinct_until_changed(abs),
        Flow.of(1, 1).of_type(int),
        Flow.of(1, 1).ignore_elements(),
    ],
    ids=repr,
)
def test_a_stage_travels_to_workers(flow: Flow[Any]) -> None:
    stage = flow.__nodes__.steps[0].operator

    assert stage == pickle.loads(pickle.dumps(stage))
