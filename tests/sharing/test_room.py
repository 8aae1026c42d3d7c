"""Hubs: the room in them, while subscribers come and go and callers wait, or stop waiting in an unusual way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import Hub, Offer
from tests.subscribers import Recorder, idle


def reads(hub: Hub[int], request: int = 0) -> Recorder:
    recorder = Recorder(request)
    hub.subscribe(recorder)
    return recorder


@pytest.mark.parametrize("replay", [0, 1, 3])
async def test_all_who_wait_go_on_when_the_last_subscriber_leaves(replay: int) -> None:
    hub: Hub[int] = Hub(idle="drop", replay=replay, lag=1)
    reader = reads(hub)
    await idle()
    assert Offer.TAKEN is hub.offer(0)
    emitting = [asyncio.ensure_future(hub.emit(n)) for n in (1, 2, 3)]
    await idle()
    reader.cancel()
    await idle()

    assert all(each.done() for each in emitting)
    assert Offer.FULL is not hub.offer(4)


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("replay", [0, 1])
async def test_no_more_is_kept_for_one_who_comes_while_others_leave(replay: int, lag: int) -> None:
    hub: Hub[int] = Hub(idle="drop", replay=replay, lag=lag)
    reader = reads(hub)
    await idle()
    for n in range(lag):
        assert Offer.TAKEN is hub.offer(n)
    emitting = [asyncio.ensure_future(hub.emit(n)) for n in range(lag, 100)]
    await idle()
    reader.cancel()
    late = reads(hub)
    await idle()
    assert hub.snapshot().kept <= lag + replay
    assert any(not each.done() for each in emitting)

    late.request(1000)
    await idle(1000)
    assert list(range(late.items[0], 100)) == late.items


async def has_room(hub: Hub[int]) -> bool:
    """Return whether all that is emitted from now on gets through, if somebody requests all."""
    reader = reads(hub, 1000)
    emitting = [asyncio.ensure_future(hub.emit(n)) for n in range(100, 110)]
    await idle(200)
    for each in emitting:
        each.cancel()
    return list(range(100, 110)) == reader.items[-10:] and Offer.TAKEN is hub.offer(9)


@pytest.mark.parametrize("granted", [False, True])
async def test_the_permit_of_a_coroutine_that_is_closed_goes_to_the_next(granted: bool) -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    hub.offer(0)
    waiting = hub.emit(1)
    waiting.send(None)
    if granted:
        reads(hub, 1000)
        await idle()
    waiting.close()

    assert await has_room(hub)


async def test_a_coroutine_may_be_closed_by_a_finalizer_in_the_middle_of_a_change() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    hub.offer(0)
    waiting = hub.emit(1)
    waiting.send(None)
    with hub._emission.mutex:
        waiting.close()

    assert await has_room(hub)


async def test_the_permit_of_a_thread_that_is_interrupted_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    hub.offer(0)

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Event, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hub._emission.submit(1, None)
    assert await has_room(hub)


async def test_the_permit_of_a_task_is_free_when_its_event_loop_has_been_closed() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    hub.offer(0)
    loop = asyncio.new_event_loop()

    def begin() -> asyncio.Task[None]:
        async def main() -> asyncio.Task[None]:
            task = loop.create_task(hub.emit(1))
            await idle()
            return task

        return loop.run_until_complete(main())

    task = await asyncio.to_thread(begin)
    left: Any = task
    left._log_destroy_pending = False  # it is meant to be left
    reader = reads(hub, 1000)
    await idle()
    assert Offer.FULL is hub.offer(2), "the task may still go on"

    loop.close()
    assert Offer.TAKEN is hub.offer(3)
    await idle()
    assert [0, 3] == reader.items
