"""A subscriber for which the others have to wait fails alone, or is reported. Nobody else is to blame."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, BackpressureOverflowError, Flow, Hub, SlowSubscriberError, hooks
from reactive_aio._core import budgets
from reactive_aio._core.budgets import Budget
from reactive_aio.operators.sharing.delivery import Delivery
from reactive_aio.operators.sharing.patience import PARTS, Watch
from reactive_aio.spec import Publisher
from reactive_aio.testing import run_virtual
from tests.sharing.driven import Hot
from tests.subscribers import ByHand, Recorder, idle


def read(shared: Publisher[Any], request: int = 0) -> Recorder:
    recorder = Recorder(request)
    shared.subscribe(recorder)
    return recorder


def now() -> float:
    return asyncio.get_running_loop().time()


def timers() -> int:
    loop: Any = asyncio.get_running_loop()
    return sum(not each.cancelled() for each in loop._scheduled)


async def seconds(recorder: Recorder) -> float:
    """Wait for the end, and give the time of it."""
    await recorder.over.wait()
    return now()


def test_who_has_not_taken_in_time_what_there_was_fails_alone_and_the_others_go_on_at_once() -> None:
    async def main() -> None:
        shared = Flow.range(100).share(lag=5, evict_after=3.0)
        fast, slow = read(shared, UNBOUNDED), read(shared)
        await asyncio.sleep(2.9)
        assert (5, ["subscribe"]) == (len(fast.items), slow.kinds)

        assert 3.0 == await seconds(slow)
        await idle()
        assert isinstance(slow.error, SlowSubscriberError)
        assert (100, "complete") == (len(fast.items), fast.kinds[-1])

    run_virtual(main())


def test_the_error_says_how_far_behind_it_was_and_what_helps() -> None:
    async def main() -> str:
        shared = Flow.range(100).share(lag=5, evict_after=3.0)
        read(shared, UNBOUNDED)
        slow = read(shared, 2)
        await seconds(slow)
        return str(slow.error)

    text = run_virtual(main())
    assert "held up the others for 3 s, and is 5 elements behind" in text
    assert f"share(lag=5, evict_after=3.0), chained at {__file__}" in text
    assert "on_backpressure_buffer(), _drop() or _latest()" in text


def test_all_who_are_too_slow_fail_at_the_same_time_wherever_they_are() -> None:
    async def main() -> None:
        shared = Flow.range(100).share(lag=5, evict_after=3.0)
        fast, slow, slower = read(shared, UNBOUNDED), read(shared, 4), read(shared, 1)
        assert [3.0, 3.0] == [await seconds(slow), await seconds(slower)]
        await idle()
        assert 100 == len(fast.items)

    run_virtual(main())


def test_who_takes_a_few_elements_now_and_then_is_too_slow() -> None:
    async def main() -> float:
        shared = Flow.range(1000).share(lag=20, evict_after=4.0)
        read(shared, UNBOUNDED)
        trickling = read(shared)
        while not trickling.over.is_set():
            await asyncio.sleep(0.9)
            trickling.request(1)
            await idle()
        return now()

    assert 4.0 <= run_virtual(main()) <= 5.5


def test_who_takes_in_time_what_there_was_is_not_too_slow_though_others_wait() -> None:
    async def main() -> tuple[int, int]:
        shared = Flow.range(200).share(lag=5, evict_after=4.0)
        fast, slower = read(shared, UNBOUNDED), read(shared)
        while not slower.over.is_set():
            await asyncio.sleep(1.9)
            slower.request(5)
            await idle()
        return len(fast.items), len(slower.items)

    assert (200, 200) == run_virtual(main())


def test_who_was_in_time_once_is_too_slow_when_it_stops() -> None:
    async def main() -> float:
        shared = Flow.range(200).share(lag=5, evict_after=4.0)
        read(shared, UNBOUNDED)
        stopping = read(shared)
        await asyncio.sleep(1.5)
        stopping.request(5)
        return await seconds(stopping)

    assert 5.5 <= run_virtual(main()) <= 6.5  # counted in parts of a second


def test_nobody_is_to_blame_while_nobody_else_wants_more() -> None:
    async def main() -> tuple[list[str], list[str]]:
        shared = Flow.range(100).share(lag=5, evict_after=3.0)
        fast, slow = read(shared, 5), read(shared)
        await asyncio.sleep(100)
        return fast.kinds[-1:], slow.kinds

    assert (["next"], ["subscribe"]) == run_virtual(main())


def test_nobody_is_to_blame_for_a_source_that_has_nothing_to_give() -> None:
    async def main() -> list[str]:
        publisher = ByHand()
        shared = Flow.from_publisher(publisher).share(lag=5, evict_after=3.0)
        read(shared, UNBOUNDED)
        behind = read(shared)
        await idle()
        publisher.next(1, 2, 3, 4)  # one less than the lag
        await asyncio.sleep(100)
        return behind.kinds

    assert ["subscribe"] == run_virtual(main())


def test_nobody_is_to_blame_behind_the_end() -> None:
    async def main() -> list[str]:
        shared = Flow.range(5).share(lag=5, evict_after=3.0)
        read(shared, UNBOUNDED)
        behind = read(shared)
        await asyncio.sleep(100)
        behind.request(5)
        await idle()
        return behind.kinds

    assert ["subscribe", *["next"] * 5, "complete"] == run_virtual(main())


def test_one_who_has_come_since_has_as_much_time() -> None:
    async def main() -> None:
        shared = Flow.range(100).share(lag=5, replay=5, evict_after=3.0)
        read(shared, UNBOUNDED)
        slow = read(shared)
        await asyncio.sleep(2.0)
        late = read(shared)
        assert 3.0 == await seconds(slow)
        assert ["subscribe"] == late.kinds
        assert 6.0 == await seconds(late)

    run_virtual(main())


def test_who_leaves_before_it_is_too_late_is_told_of_nothing() -> None:
    dropped: list[BaseException] = []

    async def main() -> list[str]:
        with hooks.using(on_error_dropped=dropped.append):
            shared = Flow.range(100).share(lag=5, evict_after=3.0)
            read(shared, UNBOUNDED)
            slow = read(shared)
            await asyncio.sleep(2.9)
            slow.cancel()
            await asyncio.sleep(10)
            return slow.kinds

    assert (["subscribe"], []) == (run_virtual(main()), dropped)


def test_the_last_of_the_others_leaves_in_the_meantime() -> None:
    async def main() -> list[Any]:
        shared = Flow.range(100).share(lag=5, evict_after=3.0)
        fast, slow = read(shared, UNBOUNDED), read(shared)
        await asyncio.sleep(2.9)
        fast.cancel()
        await asyncio.sleep(10)
        slow.request(7)
        await idle()
        return slow.items

    assert list(range(7)) == run_virtual(main())


@pytest.mark.parametrize(
    ("behind", "given"),
    [
        (lambda shared: shared.on_backpressure_latest(), [99]),
        (lambda shared: shared.on_backpressure_drop(), []),
        (lambda shared: shared.on_backpressure_buffer(3, overflow="drop_oldest"), [97]),
        (lambda shared: shared.on_backpressure_buffer(3, overflow="drop_latest"), [0]),
    ],
    ids=["latest", "drop", "drop_oldest", "drop_latest"],
)
def test_what_is_put_behind_the_shared_flow_holds_nobody_up(
    behind: Callable[[Flow[int]], Flow[int]], given: list[int]
) -> None:
    async def main() -> tuple[int, list[int]]:
        shared = Flow.range(100).share(lag=5, start=2, evict_after=3.0)
        fast, slow = read(shared, UNBOUNDED), read(behind(shared))
        await asyncio.sleep(10)
        slow.request(1)
        await idle()
        return len(fast.items), slow.items

    assert (100, given) == run_virtual(main())


def test_a_buffer_behind_the_shared_flow_that_is_full_fails_alone() -> None:
    async def main() -> tuple[int, BaseException]:
        shared = Flow.range(100).share(lag=5, start=2)
        fast, slow = read(shared, UNBOUNDED), read(shared.on_backpressure_buffer(3))
        await idle()
        slow.request(3)
        await slow.over.wait()
        return len(fast.items), slow.error

    count, error = run_virtual(main())
    assert (100, BackpressureOverflowError) == (count, type(error))


def test_a_loop_that_is_blocked_does_not_have_its_readers_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked, turns, send = [True], list[Callable[[], None]](), Delivery.send

    def sends(delivery: Delivery, call: Callable[..., object], *args: object) -> None:
        """Have the loop of the readers do nothing that it is asked to do, as long as it is blocked."""
        if blocked[0]:
            turns.append(lambda: send(delivery, call, *args))
        else:
            send(delivery, call, *args)

    monkeypatch.setattr(Delivery, "send", sends)

    async def main() -> None:
        shared = Flow.range(100).share(lag=5, evict_after=4.0)
        fast, slow = read(shared, UNBOUNDED), read(shared)
        await asyncio.sleep(1000.5)
        assert (5, ["subscribe"], 1) == (len(fast.items), slow.kinds, len(turns))

        blocked[0] = False
        turns.pop()()
        assert 1004.0 == await seconds(slow)

    run_virtual(main())


def test_one_who_waits_for_a_turn_of_a_busy_loop_is_not_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        free, turn_of = asyncio.Event(), Budget.turn

        async def turn(budget: Budget) -> float:
            """Come when the event loop is no longer busy, in the task of the reader."""
            if asyncio.current_task() is not slow:
                return await turn_of(budget)
            await free.wait()
            return budgets.clock() + 1.0

        monkeypatch.setattr(Budget, "turn", turn)
        hub: Hub[int] = Hub(idle="drop", lag=5, evict_after=4.0)
        fast, taken = read(hub, UNBOUNDED), list[int]()

        async def take() -> None:
            async for item in hub.flow:
                taken.append(item)
                await asyncio.sleep(100 * item)

        monkeypatch.setattr(budgets, "TURN", 0.0)  # so that the task has to wait for its turn
        slow = asyncio.ensure_future(take())
        await idle()
        feeding = asyncio.ensure_future(hub.feed(Flow.range(100)))
        await asyncio.sleep(1000.5)
        assert (7, [0]) == (len(fast.items), taken)  # the next one has been taken for it

        free.set()
        await asyncio.sleep(5)
        assert ([0, 1], 100) == (taken, len(fast.items))
        with pytest.raises(SlowSubscriberError):
            await slow
        await feeding

    run_virtual(main())


@pytest.mark.parametrize(("wanted", "parts"), [(0, PARTS), (1, None)])
async def test_time_counts_for_one_who_asks_for_nothing_and_not_for_one_who_has_not_been_given(
    wanted: int, parts: int | None
) -> None:
    hot = Hot.of(lag=5)
    read(hot.shared, wanted)
    await idle()
    (reader,) = hot.readers
    watch = Watch(mark=1, joined=1)
    found: list[int] = []
    for part in range(1, 2 * PARTS):
        watch.seen.add(reader.delivery)
        found += [part] * bool(watch.count([reader]))

    assert parts == next(iter(found), None)


# -- of a hub


def test_who_has_not_taken_in_time_what_was_emitted_fails_alone_and_the_emitter_goes_on_at_once() -> None:
    async def main() -> None:
        hub: Hub[int] = Hub(idle="drop", lag=5, evict_after=3.0)
        fast, slow = read(hub, UNBOUNDED), read(hub, 1)
        await asyncio.wait_for(hub.feed(Flow.range(100)), 100.0)
        assert 3.0 == now()

        await idle()
        assert ([0], SlowSubscriberError) == (slow.items, type(slow.error))
        assert (list(range(100)), 1) == (fast.items, hub.subscribers)

    run_virtual(main())


def test_an_emitter_is_no_subscriber_who_has_to_wait() -> None:
    async def main() -> list[str]:
        hub: Hub[int] = Hub(idle="drop", lag=5, evict_after=3.0)
        alone = read(hub, 1)
        feeding = asyncio.ensure_future(hub.feed(Flow.range(100)))
        await asyncio.sleep(1000)
        feeding.cancel()
        return alone.kinds

    assert ["subscribe", "next"] == run_virtual(main())


def test_the_time_goes_on_though_the_loop_has_been_left_by_whose_clock_it_is_counted() -> None:
    async def main() -> float:
        hub: Hub[int] = Hub(idle="drop", lag=5, evict_after=3.0)
        slow, first = read(hub), Recorder(UNBOUNDED)
        await idle()
        elsewhere = asyncio.new_event_loop()

        async def come() -> None:
            hub.subscribe(first)
            for n in range(5):
                hub.offer(n)
            await idle()

        async def leave() -> None:
            first.cancel()
            await idle()

        await asyncio.to_thread(elsewhere.run_until_complete, come())
        read(hub, UNBOUNDED)
        await idle()
        await asyncio.to_thread(elsewhere.run_until_complete, leave())
        elsewhere.close()
        return await asyncio.wait_for(seconds(slow), 100.0)

    assert 3.0 == run_virtual(main())


def test_who_reads_on_a_loop_that_has_been_closed_counts_as_left_when_others_have_to_wait() -> None:
    async def main() -> None:
        hub: Hub[int] = Hub(idle="drop", lag=2, evict_after=4.0)
        loop = asyncio.new_event_loop()

        async def subscribe() -> None:
            read(hub)
            await idle()

        await asyncio.to_thread(loop.run_until_complete, subscribe())
        loop.close()
        there = read(hub, UNBOUNDED)
        await asyncio.wait_for(hub.feed(Flow.range(5)), 100.0)
        await idle()
        assert (list(range(5)), 1) == (there.items, hub.subscribers)

    run_virtual(main())


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_no_timer_is_left_behind_a_hub(end: str) -> None:
    async def main() -> float:
        hub: Hub[int] = Hub(idle="drop", lag=5, evict_after=1000.0)
        both = read(hub, UNBOUNDED), read(hub)
        await idle()
        assert [True] * 5 == [bool(hub.offer(n)) for n in range(5)]
        await asyncio.sleep(1)
        assert 1 == timers()
        if end == "complete":
            hub.complete()
        for each in both if end == "cancel" else ():
            each.cancel()
        await idle()
        return timers()

    assert 0 == run_virtual(main())


# -- where nobody is evicted


def warnings_of(caplog: pytest.LogCaptureFixture, main: Coroutine[Any, Any, object]) -> list[str]:
    with caplog.at_level(logging.WARNING, "reactive_aio"):
        run_virtual(main)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("waited", "lines"), [(4.9, 0), (5.1, 1), (1000.0, 1)])
def test_one_line_in_the_log_tells_of_five_seconds(caplog: pytest.LogCaptureFixture, waited: float, lines: int) -> None:
    async def main() -> None:
        shared = Flow.range(100).share(lag=5)
        for request in (UNBOUNDED, 0):
            read(shared, request)
        await asyncio.sleep(waited)

    told = warnings_of(caplog, main())
    assert lines == len(told)
    assert all(f"share(lag=5), chained at {__file__}" in line and "for 5 s" in line for line in told)


@pytest.mark.usefixtures("still")
def test_where_nobody_is_evicted_it_goes_on_as_soon_as_the_slow_one_does() -> None:
    async def main() -> tuple[int, int]:
        shared = Flow.range(100).share(lag=5)
        fast, slow = read(shared, UNBOUNDED), read(shared)
        await asyncio.sleep(1000)
        slow.request(UNBOUNDED)
        await idle()
        return len(fast.items), len(slow.items)

    assert (100, 100) == run_virtual(main())


def test_no_timer_is_left_behind_the_end() -> None:
    async def main() -> float:
        shared = Flow.range(100).share(lag=5, evict_after=1000.0)
        both = read(shared, UNBOUNDED), read(shared)
        await asyncio.sleep(1)
        for each in both:
            each.cancel()
        await idle()
        return timers()

    assert 0 == run_virtual(main())


@pytest.mark.parametrize("refused", [0, -1.0, float("inf")])
def test_seconds_that_are_none_are_refused(refused: float) -> None:
    with pytest.raises(ValueError, match="evict_after"):
        Flow.of(1).share(evict_after=refused)
    with pytest.raises(ValueError, match="evict_after"):
        Hub(idle="drop", evict_after=refused)
