"""start_with, default_if_empty and switch_if_empty: what comes before a flow, and in the place of an empty one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, schedulers
from tests.arbiter.sessions import Sessions
from tests.subscribers import ByHand, Recorder, idle, others

# -- start_with


async def test_the_items_come_first() -> None:
    assert [8, 9, 1, 2] == await Flow.of(1, 2).start_with(8, 9).to_list()
    assert [None] == await Flow.empty().start_with(None).to_list()
    assert [1] == await Flow.of(1).start_with().to_list()


async def test_the_items_come_through_what_follows_in_the_order_of_the_chain() -> None:
    flow = Flow.of(1).start_with(2).map(str).start_with("x")

    assert ["x", "2", "1"] == await flow.to_list() == [item async for item in flow]


async def test_what_stands_before_the_items_is_applied_to_the_elements_of_the_source_only() -> None:
    flow = Flow.of(1, 2).map(lambda n: n * 10).start_with(3).flat_map_iterable(lambda n: [n, n])

    assert [3, 3, 10, 10, 20, 20] == await flow.to_list()


async def test_nothing_is_read_before_the_items_have_been_emitted() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for n in range(9):
            read.append(n)
            yield n

    assert [8, 9] == await Flow.from_iterable(numbers()).start_with(8, 9).take(2).to_list()
    assert [] == read


async def test_the_items_are_part_of_what_is_wanted() -> None:
    source, recorder = ByHand(), Recorder(1)
    Flow.from_publisher(source).start_with(8, 9).subscribe(recorder)
    await idle()
    assert ([8], []) == (recorder.items, source.requests)

    recorder.request(3)
    await idle()
    assert ([8, 9], [2]) == (recorder.items, source.requests)


async def test_unbounded_demand_stays_unbounded() -> None:
    source = ByHand()
    Flow.from_publisher(source).start_with(8).subscribe(Recorder(UNBOUNDED))
    await idle()

    assert [UNBOUNDED] == source.requests


@pytest.mark.parametrize("source", [Flow.error(OSError()), Flow.empty().concat(Flow.error(OSError()))], ids=repr)
async def test_a_failure_stays_behind_the_items(source: Flow[Any]) -> None:
    recorder = Recorder(1)
    source.start_with(8, 9).subscribe(recorder)
    await idle()
    assert ["subscribe", "next"] == recorder.kinds

    recorder.request(2)
    await idle()
    assert ["subscribe", "next", "next", "error"] == recorder.kinds


async def test_completes_at_once_with_the_last_item_where_nothing_follows() -> None:
    recorder = Recorder(1)
    Flow.empty().start_with(8).subscribe(recorder)
    await idle()

    assert ["subscribe", "next", "complete"] == recorder.kinds


async def test_what_follows_runs_where_it_did() -> None:
    names: list[str] = []

    with schedulers.thread("here") as scheduler:
        flow = Flow.of(1).publish_on(scheduler).start_with(0).scan(max, 0)
        await flow.map(lambda _: names.append(threading.current_thread().name)).to_list()

    assert 1 == len(set(names))
    assert names[0] != threading.current_thread().name


async def test_a_failing_stage_behind_the_items_is_located() -> None:
    with pytest.raises(ZeroDivisionError) as failed:
        await Flow.of(1).start_with(0).map(lambda n: 1 // n).to_list()

    assert failed.value.__notes__[0].startswith("in map(")


# -- default_if_empty


@pytest.mark.parametrize(("items", "expected"), [([], [7]), ([1], [1]), ([None], [None])])
async def test_the_default_stands_for_no_element(items: list[Any], expected: list[Any]) -> None:
    assert expected == await Flow.from_iterable(items).default_if_empty(7).to_list()


async def test_the_default_waits_for_demand_and_completes() -> None:
    recorder = Recorder()
    Flow.empty().default_if_empty(7).subscribe(recorder)
    await idle()
    assert ["subscribe"] == recorder.kinds

    recorder.request(1)
    await idle()
    assert [("next", 7), ("complete", None)] == recorder.signals[1:]


async def test_a_flow_with_elements_completes_at_once_behind_the_last() -> None:
    recorder = Recorder(1)
    Flow.of(1).default_if_empty(7).subscribe(recorder)
    await idle()

    assert ["subscribe", "next", "complete"] == recorder.kinds


async def test_a_flow_that_fails_is_not_empty() -> None:
    with pytest.raises(OSError, match="down"):
        await Flow.error(OSError("down")).default_if_empty(7).to_list()


async def test_what_was_stopped_before_an_element_is_empty() -> None:
    assert [7] == await Flow.of(1).take_while(lambda n: n < 0).default_if_empty(7).to_list()


# -- switch_if_empty


async def test_the_other_flow_stands_for_an_empty_one() -> None:
    assert [8, 9] == await Flow.of(1).filter(lambda n: n > 1).switch_if_empty(Flow.of(8, 9)).to_list()


async def test_the_other_flow_is_not_subscribed_to_where_there_are_elements() -> None:
    other = Sessions()

    assert [1] == await Flow.of(1).switch_if_empty(Flow.from_publisher(other)).to_list()
    assert [] == other.all


async def test_both_may_be_empty() -> None:
    assert [] == await Flow.empty().switch_if_empty(Flow.empty()).to_list()


async def test_the_other_flow_is_asked_for_what_was_wanted_once() -> None:
    first, other = ByHand(), ByHand()
    recorder = Recorder(3)
    Flow.from_publisher(first).switch_if_empty(Flow.from_publisher(other)).subscribe(recorder)
    await idle()
    recorder.request(2)
    await idle()
    assert [3, 2] == first.requests

    first.complete()
    await idle()
    assert [5] == other.requests


async def test_the_failure_of_the_first_is_the_end() -> None:
    with pytest.raises(OSError, match="down"):
        await Flow.error(OSError("down")).switch_if_empty(Flow.of(1)).to_list()


async def test_each_subscription_switches_for_itself() -> None:
    flow = Flow.empty().switch_if_empty(Flow.of(1))

    assert [1] == await flow.to_list() == await flow.to_list()


def test_an_argument_that_is_no_flow_is_refused_when_the_flow_is_built() -> None:
    with pytest.raises(TypeError, match="switch_if_empty"):
        Flow.of(1).switch_if_empty([1])


# -- the loop has its turns


@pytest.mark.parametrize(
    "flow",
    [
        Flow.of(-1).start_with(*range(400)),
        Flow.range(400).take_last(400),
        Flow.of(1, 2).take(1).flat_map_iterable(lambda _: (time.sleep(0.002 * (n == 0)) or n for n in range(400))),
    ],
    ids=["start_with", "take_last", "flat_map_iterable"],
)
@pytest.mark.parametrize("passing", [True, False])
async def test_what_a_stage_gives_by_itself_leaves_the_loop_its_turns(flow: Flow[int], passing: bool) -> None:
    def slow(_: int) -> bool:
        time.sleep(1e-4)
        return passing

    async with others() as turns:
        listed = await flow.filter(slow).to_list()

    assert len(listed) in ({400, 401} if passing else {0})
    assert len(turns) > 10
