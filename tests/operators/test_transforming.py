"""The synchronous operators that make other elements of the elements, each at its edges."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import add
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Completed, Failed, Flow, Next, SynchronousSink, hooks
from tests.subscribers import ByHand, Recorder, idle


async def asked(build: Callable[[Flow[int]], Flow[Any]], request: int, *items: int) -> list[int]:
    """Return what an operator asks of its source when so much is asked of it, before and after some elements."""
    source = ByHand()
    build(Flow.from_publisher(source)).subscribe(Recorder(request))
    await idle()
    source.next(*items)
    await idle()
    return source.requests


# -- map_not_none


async def test_map_not_none_drops_none_and_nothing_else() -> None:
    assert [0, "", []] == await Flow.of(0, None, "", []).map_not_none(lambda item: item).to_list()


# -- scan


@pytest.mark.parametrize(("items", "expected"), [([], []), ([1], [1]), ([1, 2, 3], [1, 3, 6])])
async def test_scan_begins_with_the_first_element(items: list[int], expected: list[int]) -> None:
    assert expected == await Flow.from_iterable(items).scan(add).to_list()


@pytest.mark.parametrize(("items", "expected"), [([], [10]), ([1, 2, 3], [10, 11, 13, 16])])
async def test_scan_begins_with_the_value_given(items: list[int], expected: list[int]) -> None:
    assert expected == await Flow.from_iterable(items).scan(add, 10).to_list()


async def test_scan_takes_none_for_a_value() -> None:
    def pair(before: object, now: int) -> object:
        return before, now

    assert [None, (None, 1)] == await Flow.of(1).scan(pair, None).to_list()


async def test_scan_gives_the_value_given_before_anything_is_read() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for n in range(9):
            read.append(n)
            yield n

    assert [7] == await Flow.from_iterable(numbers()).scan(add, 7).take(1).to_list()
    assert [] == read


async def test_scan_asks_for_no_element_where_the_value_given_is_enough() -> None:
    recorder, source = Recorder(1), ByHand()
    Flow.from_publisher(source).scan(add, 7).subscribe(recorder)
    await idle()
    assert ([7], []) == (recorder.items, source.requests)

    recorder.request(2)
    await idle()
    assert [2] == source.requests


async def test_scan_waits_for_demand_with_the_value_given_though_the_source_is_empty() -> None:
    recorder = Recorder()
    Flow.empty().scan(add, 7).subscribe(recorder)
    await idle()
    assert ["subscribe"] == recorder.kinds

    recorder.request(1)
    await idle()
    assert [("next", 7), ("complete", None)] == recorder.signals[1:]


async def test_scan_gives_the_value_given_before_the_failure_of_the_source() -> None:
    recorder = Recorder(5)
    Flow.error(OSError("down")).scan(add, 7).subscribe(recorder)
    await idle()

    assert ["subscribe", "next", "error"] == recorder.kinds


async def test_the_value_of_a_scan_goes_through_the_scan_behind_it() -> None:
    flow = Flow.of(1, 2).scan(add, 10).scan(add, 100)

    assert [100, 110, 121, 134] == await flow.to_list() == [item async for item in flow]


async def test_the_failure_of_a_stage_behind_the_value_of_a_scan_is_located() -> None:
    with pytest.raises(ZeroDivisionError) as failed:
        await Flow.of(1).scan(add, 0).map(lambda n: 1 // n).to_list()

    assert failed.value.__notes__[0].startswith("in map(")


async def test_each_subscription_scans_for_itself() -> None:
    flow = Flow.of(1, 2).scan(add, 0)

    assert [0, 1, 3] == await flow.to_list() == await flow.to_list()


# -- index and pairwise


async def test_index_counts_from_where_it_is_told_to() -> None:
    assert [(-1, "a"), (0, "b")] == await Flow.of("a", "b").index(-1).to_list()


@pytest.mark.parametrize("start", [1.0, "1", None, True])
def test_index_counts_in_whole_numbers(start: Any) -> None:
    with pytest.raises(TypeError, match="index"):
        Flow.of(1).index(start)


@pytest.mark.parametrize("items", [[], [1], [1, 2], [1, None, 3]])
async def test_pairwise_gives_what_itertools_gives(items: list[Any]) -> None:
    assert list(pairwise(items)) == await Flow.from_iterable(items).pairwise().to_list()


@pytest.mark.parametrize(("items", "expected"), [([], []), ([1], [1]), ([1, 1], []), ([1, 2, 3], [])])
@pytest.mark.parametrize("ends", ["done", "failed", "cancelled"])
async def test_pairwise_discards_the_first_element_without_a_second_one(
    items: list[int], expected: list[int], ends: str
) -> None:
    discarded: list[object] = []
    source, recorder = ByHand(), Recorder(UNBOUNDED)

    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(source).pairwise().subscribe(recorder)
        await idle()
        source.next(*items)
        await idle()
        {"done": source.complete, "failed": lambda: source.error(OSError()), "cancelled": recorder.cancel}[ends]()
        await idle()

    assert expected == discarded


async def test_pairwise_asks_once_for_the_element_in_front() -> None:
    assert [3] == await asked(lambda flow: flow.pairwise(), 2, 0, 1, 2)
    assert [UNBOUNDED] == await asked(lambda flow: flow.pairwise(), UNBOUNDED)


# -- handle


async def test_handle_emits_what_is_given_to_the_sink() -> None:
    def odd(n: int, sink: SynchronousSink[str]) -> None:
        if n % 2:
            sink.next(str(n))

    assert ["1", "3"] == await Flow.range(5).handle(odd).to_list()


async def test_handle_takes_none_for_an_element() -> None:
    assert [None] == await Flow.of(1).handle(lambda _, sink: sink.next(None)).to_list()


async def test_handle_completes_at_once_behind_what_was_given() -> None:
    def first(n: int, sink: SynchronousSink[int]) -> None:
        sink.next(n)
        sink.complete()

    recorder, source = Recorder(1), ByHand()
    Flow.from_publisher(source).handle(first).subscribe(recorder)
    await idle()
    source.next(1)
    await idle()

    assert ["subscribe", "next", "complete"] == recorder.kinds
    assert 1 == source.cancels


async def test_handle_replaces_an_element_for_which_nothing_is_emitted() -> None:
    assert 3 == sum(await asked(lambda flow: flow.handle(lambda _, __: None), 2, 0))


async def test_handle_emits_one_element_for_one() -> None:
    def twice(n: int, sink: SynchronousSink[int]) -> None:
        sink.next(n)
        sink.next(n)

    with pytest.raises(RuntimeError, match="flat_map_iterable"):
        await Flow.of(1).handle(twice).to_list()


# -- materialize and dematerialize


async def test_materialize_ends_with_completed() -> None:
    assert [Next(1), Next(None), Completed()] == await Flow.of(1, None).materialize().to_list()


async def test_materialize_ends_with_the_failure() -> None:
    error = OSError("down")

    assert [Next(1), Failed(error)] == await Flow.of(1).concat(Flow.error(error)).materialize().to_list()


async def test_the_last_signal_waits_for_demand() -> None:
    recorder = Recorder(1)
    Flow.of(1).materialize().subscribe(recorder)
    await idle()
    assert [("next", Next(1))] == recorder.signals[1:]

    recorder.request(1)
    await idle()
    assert [("next", Completed()), ("complete", None)] == recorder.signals[2:]


async def test_dematerialize_undoes_materialize() -> None:
    failing = Flow.of(1, 2).concat(Flow.error(OSError("down")))
    recorder = Recorder(9)
    failing.materialize().dematerialize().subscribe(recorder)
    await idle()

    assert [1, 2] == recorder.items
    assert isinstance(recorder.error, OSError)
    assert [1, 2] == await Flow.of(1, 2).materialize().dematerialize().to_list()


async def test_dematerialize_cancels_at_the_last_signal() -> None:
    recorder, source = Recorder(9), ByHand()
    Flow.from_publisher(source).dematerialize().subscribe(recorder)
    await idle()
    source.next(Next(1), Completed())
    await idle()

    assert ["subscribe", "next", "complete"] == recorder.kinds
    assert 1 == source.cancels


async def test_dematerialize_refuses_what_is_no_signal() -> None:
    with pytest.raises(TypeError, match="not int"):
        await Flow.of(1).dematerialize().to_list()


# -- all of them


@pytest.mark.parametrize("method", ["map_not_none", "scan", "handle"])
def test_an_argument_that_is_no_ordinary_function_is_refused_when_the_flow_is_built(method: str) -> None:
    async def later(*_: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=f"{method}.*async def"):
        getattr(Flow.of(1), method)(later)
    with pytest.raises(TypeError, match=f"{method}.*function, not int"):
        getattr(Flow.of(1), method)(3)


@pytest.mark.parametrize(
    "flow",
    [
        Flow.of(1).map_not_none(abs),
        Flow.of(1).scan(add, 1),
        Flow.of(1).index(),
        Flow.of(1).handle(print),
        Flow.of(1).pairwise(),
        Flow.of(Completed()).dematerialize(),
    ],
    ids=repr,
)
def test_a_stage_travels_to_workers(flow: Flow[Any]) -> None:
    stage = flow.__nodes__.steps[0].operator

    assert stage == pickle.loads(pickle.dumps(stage))


def test_arguments_are_shown_as_they_were_given() -> None:
    assert "Flow.of(1).scan(add).scan(add, 0).index(1)" == repr(Flow.of(1).scan(add).scan(add, 0).index(1))


def test_an_operator_that_forgets_to_return_its_flow_is_refused() -> None:
    with pytest.raises(TypeError, match=r"through\(<lambda>\): the operator returned None. Return the new flow"):
        Flow.range(3).through(lambda flow: None)


async def test_a_batch_may_be_larger_than_python_can_count() -> None:
    assert [[0, 1, 2]] == await Flow.range(3).map_batches(lambda batch: [batch], size=1 << 63).to_list()
