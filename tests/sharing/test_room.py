"""Hubs: the room in them, while subscribers come and go and callers wait, or stop waiting in an unusual way."""

from __future__ import annotations

import asyncio

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
