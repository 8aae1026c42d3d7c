"""Hubs and shared flows: the elements that no subscriber gets go to `hooks.on_discard`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from reactive_aio import Flow, Hub, HubClosedError, hooks
from reactive_aio.testing import run_virtual
from tests.sharing.driven import Hot, reads
from tests.subscribers import idle

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def lost() -> Iterator[list[object]]:
    found: list[object] = []
    with hooks.using(on_discard=found.append):
        yield found


async def leave_unread(hot: Hot) -> None:
    """Have somebody subscribe who requests three elements, and leaves when they are made."""
    reader = reads(hot.shared, 3)
    await idle()
    hot.publisher.next(1, 2, 3)
    reader.cancel()
    await idle()


async def test_an_element_that_a_replay_keeps_for_later_is_not_discarded(lost: list[object]) -> None:
    hub: Hub[int] = Hub(idle="drop", replay=2)
    first = reads(hub.flow)
    await idle()
    for n in range(4):
        hub.offer(n)
    first.cancel()
    await idle()

    assert [0, 1] == lost
    assert [2, 3] == await hub.flow.take(2).to_list()
    assert [0, 1] == lost


async def test_an_element_that_falls_out_of_the_replay_unread_is_discarded(lost: list[object]) -> None:
    hub: Hub[int] = Hub(idle="drop", replay=2)
    for n in range(5):
        await hub.emit(n)

    assert [0, 1, 2] == lost


async def test_an_element_that_one_subscriber_has_had_is_not_discarded(lost: list[object]) -> None:
    hub: Hub[int] = Hub(idle="drop", replay=1)
    reading = asyncio.ensure_future(hub.flow.take(2).to_list())
    await idle()
    for n in range(4):
        await hub.emit(n)

    assert [0, 1] == await reading
    assert [2] == lost


async def test_elements_that_only_one_had_to_get_are_discarded_when_it_leaves(lost: list[object]) -> None:
    hub: Hub[int] = Hub(idle="drop", lag=5)
    slow = reads(hub.flow, 1)
    await idle()
    for n in range(3):
        hub.offer(n)
    late = reads(hub.flow, 10)
    await idle()
    hub.offer(3)
    await idle()
    assert ([0], [3], []) == (slow.items, late.items, lost)

    slow.cancel()
    await idle()
    assert [1, 2] == lost


async def test_elements_of_another_that_is_still_there_are_kept(lost: list[object]) -> None:
    hub: Hub[int] = Hub(idle="drop", lag=5)
    slow, slower = reads(hub.flow), reads(hub.flow)
    await idle()
    for n in range(3):
        hub.offer(n)
    slow.cancel()
    await idle()
    slower.request(2)
    await idle()
    assert ([0, 1], []) == (slower.items, lost)

    slower.cancel()
    await idle()
    assert [2] == lost


def test_a_replay_that_is_too_old_is_discarded_unread(lost: list[object]) -> None:
    async def main() -> None:
        hot = Hot.of(replay=5, replay_for=1, restart="never")
        reader = reads(hot.shared, 3)
        await idle()
        hot.publisher.next(1, 2)
        hot.publisher.complete()
        reader.cancel()
        await idle()
        assert [] == lost
        await asyncio.sleep(2)

    run_virtual(main())
    assert [1, 2] == lost


async def test_an_ended_run_keeps_its_replay_for_a_later_subscriber_and_no_more(lost: list[object]) -> None:
    hot = Hot.of(replay=1, restart="never")
    reader = reads(hot.shared, 3)
    await idle()
    hot.publisher.next(1, 2, 3)
    hot.publisher.complete()
    reader.cancel()
    await idle()

    assert [1, 2] == lost
    assert [3] == await hot.shared.to_list()


async def test_elements_that_are_kept_for_nobody_are_discarded_with_the_end_of_the_block(lost: list[object]) -> None:
    hot = Hot.of(replay=1, restart="never")
    async with hot.shared:
        await leave_unread(hot)
        assert [] == lost

    assert [1, 2, 3] == lost


@pytest.mark.parametrize("begins", ["in the block", "before it"])
async def test_the_end_of_the_block_reports_to_the_hooks_of_the_run(begins: str) -> None:
    of_share, of_block = list[object](), list[object]()
    with hooks.using(on_discard=of_share.append, on_error_dropped=of_share.append):
        hot = Hot.of(restart="never")
    first = reads(hot.shared, 1) if begins == "before it" else None
    await idle()
    with hooks.using(on_discard=of_block.append, on_error_dropped=of_block.append):
        async with hot.shared:
            await leave_unread(hot)
            if first is not None:
                first.cancel()
            failure = OSError("nobody hears it")
            hot.publisher.error(failure)
            await idle()

    told, untold = (of_block, of_share) if first is None else (of_share, of_block)
    assert (failure, []) == (told.pop(0), untold)
    assert told == ([1, 2, 3] if first is None else [2, 3])


async def test_elements_that_are_kept_are_discarded_when_the_next_subscriber_begins_anew(lost: list[object]) -> None:
    hot = Hot.of()
    async with hot.shared:
        await leave_unread(hot)
        hot.publisher.complete()
        await idle()
        assert [1, 2, 3] == lost


async def test_a_subscriber_that_reads_ahead_discards_its_own_elements(lost: list[object]) -> None:
    hub: Hub[int] = Hub(idle="drop")
    own: list[object] = []
    other = reads(hub.flow, 9)
    with hooks.using(on_discard=own.append):
        ahead = reads(hub.flow.buffer(9), 1)
    await idle()
    for n in range(3):
        hub.offer(n)
    await idle()
    ahead.cancel()
    await idle()

    assert ([0, 1, 2], [0, 1, 2], []) == (own, other.items, lost)


@pytest.mark.parametrize("ends", ["cancelled", "closed"])
async def test_an_element_that_waits_in_feed_is_discarded_when_that_ends(ends: str) -> None:
    hub, discarded = Hub[int](idle="wait", lag=2), list[object]()
    with hooks.using(on_discard=discarded.append):
        feeding = asyncio.ensure_future(hub.feed(Flow.range(9).map(int)))
    await idle()
    if ends == "cancelled":
        feeding.cancel()
    else:
        hub.complete()
    with pytest.raises(asyncio.CancelledError if ends == "cancelled" else HubClosedError):
        await feeding
    hub.complete()

    assert [2] == discarded
    assert [0, 1] == await hub.flow.to_list()
