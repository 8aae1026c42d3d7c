"""Hubs: what is emitted by calls, to several subscribers, as far as there is room."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import suppress
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, Hub, HubClosedError, Offer, State, hooks
from reactive_aio.operators.sharing.log import Log
from reactive_aio.testing import run_virtual
from tests.subscribers import ByHand, Recorder, idle


def reads(hub: Hub[Any], request: int = 0) -> Recorder:
    recorder = Recorder(request)
    hub.subscribe(recorder)
    return recorder


def idles(hub: Hub[Any]) -> int:
    """Return how many elements have gone by."""
    return hub._emission.unwanted


# -- who is given what


async def test_an_exception_that_leaves_the_block_of_an_ended_hub_is_not_reported_as_well() -> None:
    dropped: list[BaseException] = []

    async def block() -> None:
        async with Hub[int](idle="drop") as hub:
            hub.complete()
            await hub.emit(1)

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(HubClosedError):
        await block()

    assert dropped == []


async def test_what_is_emitted_goes_to_all_who_are_there() -> None:
    hub: Hub[int] = Hub(idle="drop")
    one, two = reads(hub, UNBOUNDED), reads(hub, UNBOUNDED)
    await idle()
    for n in range(3):
        await hub.emit(n)
    await idle()

    assert [[0, 1, 2], [0, 1, 2]] == [one.items, two.items]


async def test_one_who_comes_later_is_given_the_replay() -> None:
    hub: Hub[int] = Hub(idle="drop", replay=2)
    for n in range(5):
        assert hub.offer(n)
    late = reads(hub, UNBOUNDED)
    await idle()

    assert [3, 4] == late.items


async def test_what_waits_for_somebody_to_come_is_for_the_first() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=3)
    assert [Offer.TAKEN] * 3 + [Offer.FULL] == [hub.offer(n) for n in range(4)]
    first = reads(hub, UNBOUNDED)
    await idle()
    second = reads(hub, UNBOUNDED)
    await idle()

    assert ([0, 1, 2], []) == (first.items, second.items)


async def test_what_goes_by_is_discarded_and_counted() -> None:
    lost: list[object] = []
    with hooks.using(on_discard=lost.append):
        hub: Hub[int] = Hub(idle="drop", lag=1)
        assert Offer.UNWANTED is hub.offer(1)
        await hub.emit(2)

    assert (2, [1, 2]) == (idles(hub), lost)


def test_only_what_is_taken_is_true() -> None:
    assert [True, False, False, False] == [
        bool(each) for each in (Offer.TAKEN, Offer.FULL, Offer.CLOSED, Offer.UNWANTED)
    ]


# -- room


async def test_an_offer_finds_no_room_when_the_slowest_is_too_far_behind() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=2)
    reads(hub, UNBOUNDED)
    slow = reads(hub)
    await idle()
    assert [Offer.TAKEN, Offer.TAKEN, Offer.FULL] == [hub.offer(n) for n in range(3)]

    slow.request(1)
    await idle()
    assert [Offer.TAKEN, Offer.FULL] == [hub.offer(n) for n in range(2, 4)]


async def test_an_emitter_waits_for_the_slowest_and_goes_on_when_that_has_left() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=1)
    reads(hub, UNBOUNDED)
    slow = reads(hub)
    await idle()
    await hub.emit(1)
    emitting = asyncio.ensure_future(hub.emit(2))
    await idle()
    assert not emitting.done()

    slow.cancel()
    await emitting


async def test_emitters_are_served_in_turn() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=1)
    reader = reads(hub)
    await idle()
    await hub.emit(0)
    emitting = [asyncio.ensure_future(hub.emit(n)) for n in range(1, 6)]
    await idle()
    assert Offer.FULL is hub.offer(9)

    reader.request(UNBOUNDED)
    await asyncio.gather(*emitting)
    await idle()
    assert list(range(6)) == reader.items


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("when", range(8))
async def test_an_emitter_that_is_cancelled_has_emitted_nothing_and_its_permit_goes_to_the_next(
    when: int, twice: bool
) -> None:
    hub: Hub[str] = Hub(idle="drop", lag=1)
    reader = reads(hub)
    await idle()
    await hub.emit("first")
    one = asyncio.ensure_future(hub.emit("one"))
    await idle()
    two = asyncio.ensure_future(hub.emit("two"))
    await idle()
    reader.request(UNBOUNDED)
    for _ in range(when):
        await asyncio.sleep(0)
    cancelled = one.cancel()
    if twice:
        one.cancel()
    with suppress(asyncio.CancelledError):
        await one
    await two
    await idle()

    assert (["first", "two"] if cancelled else ["first", "one", "two"]) == reader.items


async def test_one_who_waits_when_the_hub_ends_is_refused() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    await hub.emit(1)
    emitting = asyncio.ensure_future(hub.emit(2))
    await idle()
    hub.complete()

    with pytest.raises(HubClosedError):
        await emitting
    assert [1] == await hub.flow.to_list()


async def test_a_thread_waits_for_room() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)

    def submit() -> None:
        for n in range(100):
            hub.submit(n, timeout=30.0)
        hub.complete()

    items, _ = await asyncio.gather(hub.flow.to_list(), asyncio.to_thread(submit))
    assert list(range(100)) == items


async def test_a_thread_waits_no_longer_than_it_says() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    hub.offer(1)

    def submit() -> None:
        with pytest.raises(TimeoutError):
            hub.submit(2, timeout=0.0)

    await asyncio.to_thread(submit)
    hub.complete()
    assert [1] == await hub.flow.to_list()


async def test_a_thread_may_wait_for_longer_than_a_lock_can() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    hub.offer(1)
    submitting = asyncio.create_task(asyncio.to_thread(hub.submit, 2, timeout=1e300))
    while not (hub._emission._waiting or submitting.done()):
        await asyncio.sleep(0)
    assert [1] == await hub.flow.take(1).to_list()
    await submitting


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (Hub[int](idle="drop"), "not Hub: pass its `flow`"),
        (State(1), "not State: pass its `flow`"),
        (ByHand(), r"not ByHand: make one with Flow\.from_publisher"),
        (1, r"not int: make one with Flow\.from_iterable"),
    ],
)
def test_what_is_no_flow_is_refused_with_advice(value: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        Flow.of(1).merge(value)


async def test_to_wait_on_the_thread_of_an_event_loop_is_refused() -> None:
    with pytest.raises(RuntimeError, match="await emit"):
        Hub[int](idle="drop").submit(1)


async def test_one_who_emits_for_nobody_lets_the_loop_have_its_turn() -> None:
    hub: Hub[int] = Hub(idle="drop")
    stop = asyncio.get_running_loop().call_soon(lambda: None)

    async def emits() -> None:
        while True:
            await hub.emit(1)

    task = asyncio.ensure_future(emits())
    await idle()
    task.cancel()
    assert idles(hub) > 0
    stop.cancel()


async def test_one_who_is_cancelled_in_that_turn_has_emitted_nothing() -> None:
    lost: list[object] = []
    with hooks.using(on_discard=lost.append):
        hub: Hub[int] = Hub(idle="drop")
        emitting = asyncio.ensure_future(hub.emit(1))
        await asyncio.sleep(0)
        emitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await emitting

    assert (0, []) == (idles(hub), lost)


# -- feeding


async def test_flows_are_fed_in_turn_and_the_failure_of_one_is_not_that_of_the_hub() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=2)
    reader = reads(hub, UNBOUNDED)
    await idle()
    failing = Flow.range(3).concat(Flow.error(OSError("down")))
    results = await asyncio.gather(
        hub.feed(Flow.range(10, 20)), hub.feed(failing), hub.feed(Flow.range(20, 30)), return_exceptions=True
    )
    await idle()

    assert [None, "down", None] == [each and str(each) for each in results]
    assert [0, 1, 2, *range(10, 30)] == sorted(reader.items)
    assert "next" == reader.kinds[-1]


async def test_a_flow_that_is_fed_is_asked_for_what_there_is_room_for() -> None:
    asked: list[int] = []
    hub: Hub[int] = Hub(idle="wait", lag=3)
    feeding = asyncio.ensure_future(hub.feed(Flow.range(100).do_on_request(asked.append)))
    await idle()
    assert 4 == sum(asked)  # one waits in front of the hub

    hub.complete()
    with pytest.raises(HubClosedError):
        await feeding


# -- the end


async def test_the_end_is_behind_what_is_kept() -> None:
    hub: Hub[int] = Hub(idle="drop")
    fast, slow = reads(hub, UNBOUNDED), reads(hub)
    await idle()
    hub.offer(1)
    hub.complete()
    await idle()
    assert ("complete", "subscribe") == (fast.kinds[-1], slow.kinds[-1])

    slow.request(1)
    await idle()
    assert "complete" == slow.kinds[-1]


async def test_behind_the_end_nothing_is_taken() -> None:
    dropped: list[BaseException] = []
    failure = OSError("late")
    with hooks.using(on_error_dropped=dropped.append):
        hub: Hub[int] = Hub(idle="wait", replay=1)
        hub.offer(1)
        hub.complete()
        hub.complete()
        hub.error(failure)

    assert (Offer.CLOSED, [failure]) == (hub.offer(2), dropped)
    with pytest.raises(HubClosedError):
        await hub.emit(2)
    assert [[1], [1]] == [await hub.flow.to_list(), await hub.flow.to_list()]


async def test_a_hub_fails_with_what_its_block_raises() -> None:
    hub: Hub[int] = Hub(idle="wait")
    failure = OSError("down")
    with pytest.raises(OSError, match="down"):
        async with hub:
            raise failure

    reader = reads(hub, 1)
    await idle()
    assert failure is reader.error


# -- threads


async def test_what_is_taken_while_the_hub_ends_is_delivered() -> None:
    for _ in range(100):
        hub: Hub[int] = Hub(idle="wait", lag=1000)
        taken: list[int] = []

        def offer(hub: Hub[int] = hub, taken: list[int] = taken) -> None:
            n = 0
            while hub.offer(n):
                taken.append(n)
                n += 1

        thread = threading.Thread(target=offer)
        thread.start()
        reading = asyncio.ensure_future(hub.flow.to_list())
        await asyncio.sleep(0)
        hub.complete()
        thread.join()
        assert taken == await reading


async def test_an_element_may_offer_another_when_it_is_collected_in_the_middle_of_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub: Hub[Any] = Hub(idle="drop", lag=16)
    told: list[Offer] = []

    class Last:
        def __init__(self) -> None:
            self.me = self  # a cycle, for the garbage collector

        def __del__(self) -> None:
            told.append(hub.offer("from a finalizer"))
            hub.error(OSError("from a finalizer")) if len(told) == 20 else None

    def collecting(name: str) -> None:
        changes = getattr(Log, name)

        def changed(log: Log, *args: Any) -> Any:
            gc.collect()
            return changes(log, *args)

        monkeypatch.setattr(Log, name, changed)

    reader = reads(hub, UNBOUNDED)
    await idle()
    for name in ("put", "take", "want"):
        collecting(name)
    gc.freeze()  # what there was is not to be gone through again and again
    try:
        for _ in range(200):
            if hub.offer(Last()) is Offer.CLOSED:
                break
            reader.signals.clear()
            await asyncio.sleep(0)
    finally:
        gc.unfreeze()
    await idle()

    assert Offer.FULL in told
    assert "from a finalizer" == str(reader.error)


def test_a_subscriber_is_told_on_its_own_loop_and_no_signal_comes_inside_a_call() -> None:
    inside: list[bool] = []

    async def main() -> None:
        hub: Hub[int] = Hub(idle="drop")
        emitting = False

        class Watching(Recorder):
            def on_next(self, item: Any) -> None:
                inside.append(emitting)

        hub.subscribe(Watching(UNBOUNDED))
        await idle()
        for n in range(3):
            emitting = True
            hub.offer(n)
            emitting = False
        await idle()

    run_virtual(main())
    assert [False] * 3 == inside


def test_an_idle_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="choose one of 'wait', 'drop'"):
        Hub(idle="keep")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_a_finalizer_may_look_at_a_hub_in_the_middle_of_a_change() -> None:
    hub: Hub[int] = Hub(idle="wait")
    hub.offer(1)
    emission: Any = hub._emission
    with emission.mutex:
        seen = hub.snapshot()
    assert seen.made == 1
