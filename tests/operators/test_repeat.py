"""repeat: so many runs in all, each a subscription of its own."""

from __future__ import annotations

import asyncio

import pytest

from reactive_aio import UNBOUNDED, Flow
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


async def test_repeat_emits_so_many_runs_in_all() -> None:
    assert [1, 2] == await Flow.of(1, 2).repeat(1).to_list()
    assert [1, 2, 1, 2, 1, 2] == await Flow.of(1, 2).repeat(3).to_list()


async def test_repeat_zero_is_empty_and_subscribes_to_nothing() -> None:
    publisher = Sessions()

    assert [] == await Flow.from_publisher(publisher).repeat(0).to_list()
    assert [] == publisher.all


async def test_repeat_without_a_number_goes_on_until_downstream_has_enough() -> None:
    assert [1, 2, 1, 2, 1] == await Flow.of(1, 2).repeat().take(5).to_list()


async def test_the_number_of_runs_holds_for_each_subscription() -> None:
    flow = Flow.of("a").repeat(2)

    assert ["a", "a"] == await flow.to_list()
    assert ["a", "a"] == await flow.to_list()


async def test_repeat_of_repeat_multiplies() -> None:
    assert 12 == await Flow.of(0).repeat(3).repeat(4).count()


async def test_repeat_ends_with_the_first_failure() -> None:
    runs = iter([Flow.of(1), Flow.of(2).concat(Flow.error(OSError("down"))), Flow.of(3)])
    subscriber = Recorder(UNBOUNDED)

    Flow.defer(lambda: next(runs)).repeat(3).subscribe(subscriber)
    await subscriber.over.wait()

    assert [1, 2] == subscriber.items
    assert "down" == str(subscriber.error)
    assert [3] == await next(runs).to_list()


async def test_a_run_is_asked_for_what_the_one_before_has_left_of_the_demand() -> None:
    publisher, subscriber = Sessions(), Recorder(5)
    Flow.from_publisher(publisher).repeat(3).subscribe(subscriber)
    await idle()
    publisher.last.next(1, 2)
    publisher.last.complete()
    await idle()
    publisher.last.complete()
    await idle()
    publisher.last.next(3)
    subscriber.request(4)
    await idle()
    publisher.last.next(4, 5, 6, 7, 8, 9)
    await idle()

    assert [[5], [3], [3, 4]] == publisher.requests
    assert [1, 2, 3, 4, 5, 6, 7, 8, 9] == subscriber.items


async def test_demand_that_comes_between_two_runs_is_asked_for_once() -> None:
    publisher, subscriber = Sessions(on_subscribe=lambda session: None), Recorder(2)
    Flow.from_publisher(publisher).repeat(2).subscribe(subscriber)
    await idle()
    subscriber.request(3)
    await idle()
    publisher.last.subscriber.on_subscribe(publisher.last)
    await idle()

    assert [[5]] == publisher.requests


async def test_unbounded_demand_is_unbounded_in_each_run() -> None:
    publisher, subscriber = Sessions(), Recorder(UNBOUNDED)
    Flow.from_publisher(publisher).repeat(2).subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    publisher.last.complete()
    await idle()

    assert [[UNBOUNDED], [UNBOUNDED]] == publisher.requests


async def test_each_run_has_a_subscriber_of_its_own() -> None:
    publisher, subscriber = Sessions(), Recorder()
    Flow.from_publisher(publisher).repeat(4).subscribe(subscriber)
    for _ in range(4):
        await idle()
        publisher.last.complete()
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds
    assert 4 == len({id(session.subscriber) for session in publisher.all})


async def test_cancel_ends_the_current_run_and_no_other_begins() -> None:
    publisher, subscriber = Sessions(), Recorder(1)
    Flow.from_publisher(publisher).repeat().subscribe(subscriber)
    await idle()
    publisher.last.complete()
    await idle()
    subscriber.cancel()
    await idle()
    publisher.last.complete()
    await idle()

    assert [0, 1] == [session.cancels for session in publisher.all]
    assert ["subscribe"] == subscriber.kinds


async def test_an_endless_repeat_of_nothing_can_be_cancelled() -> None:
    waiting = asyncio.create_task(Flow.empty().repeat().to_list())
    await idle()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    ("times", "refused"), [(-1, ValueError), (1.0, TypeError), ("2", TypeError), (True, TypeError)]
)
def test_repeat_refuses_what_is_no_number_of_runs(times: int, refused: type[Exception]) -> None:
    with pytest.raises(refused, match="repeat"):
        Flow.of(1).repeat(times)
