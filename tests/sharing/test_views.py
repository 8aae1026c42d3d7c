"""Plans and snapshots show shared flows and hubs."""

from __future__ import annotations

import textwrap

from reactive_aio import UNBOUNDED, Flow, Hub, SharedSnapshot, SubscriberSnapshot
from tests.subscribers import Recorder, idle


def test_a_plan_shows_the_shared_part_once_and_what_is_between() -> None:
    flow = Flow.range(9).map(str).share(lag=16, replay=1).filter(bool).take(3)

    expected = """
        R1  the subscriber's loop   range(0, 9) -> map(str)
         |  shared, lag 16, replay 1
        R2  the subscriber's loop   filter(bool) -> take(3)
        """
    assert textwrap.dedent(expected).strip() == flow.describe()
    assert "range(0, 9) map(str) | filter(bool) take(3)" == flow.describe("line").splitlines()[0]


def test_a_plan_shows_how_a_run_begins_and_ends() -> None:
    shared = Flow.range(9).share(start=4, restart="never", linger=5.0, evict_after=2.0, prefetch=8)

    assert (
        " |  shared, lag 256, start 4, restart never, linger 5.0, evict_after 2.0, prefetch 8"
        == shared.describe().splitlines()[1]
    )
    assert "share(lag=256, start=4, restart='never', linger=5.0, evict_after=2.0, prefetch=8)" in repr(shared)


def test_a_plan_shows_a_hub_as_a_source() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=8)

    assert "R1  the subscriber's loop   hub(lag=8) -> map(str)" == hub.flow.map(str).describe()


async def test_a_snapshot_shows_what_is_kept_and_who_is_behind() -> None:
    shared = Flow.range(100).share(lag=10)
    assert SharedSnapshot(0, 0, ()) == shared.snapshot()

    fast, slow = Recorder(UNBOUNDED), Recorder(3)
    shared.subscribe(fast)
    shared.subscribe(slow)
    await idle()

    expected = SharedSnapshot(13, 10, (SubscriberSnapshot(0, UNBOUNDED), SubscriberSnapshot(10, 0)))
    assert expected == shared.snapshot()


async def test_the_snapshot_of_a_subscriber_shows_what_is_kept_for_it() -> None:
    shared = Flow.range(100).share(lag=10)
    fast = Recorder(UNBOUNDED)
    async with shared.open() as items:
        assert 0 == await anext(items)
        shared.subscribe(fast)
        await idle()

        (region,) = items.snapshot().regions
        assert region.overflow is not None
        assert (10, 10) == (region.overflow.size, region.overflow.buffered)


async def test_the_snapshot_of_a_hub_shows_what_waits_for_somebody_to_come() -> None:
    hub: Hub[int] = Hub(idle="wait")
    hub.offer(1)

    assert SharedSnapshot(1, 1, ()) == hub.snapshot()
