"""window: flows of a given number of elements. Each element is kept until it is read, and is read once."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import UNBOUNDED, Flow, SourceCancelledError, SourceConsumedError, hooks
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


async def listed(windows: Flow[Flow[Any]]) -> list[list[Any]]:
    """Read one window after another."""
    return [await window.to_list() async for window in windows]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(1, 7), st.booleans())
def test_windows_have_the_elements_that_buffers_have(elements: int, size: int, apart: bool) -> None:
    flow = Flow.from_publisher(Flow.range(elements)) if apart else Flow.range(elements)

    assert asyncio.run(flow.buffer(size).to_list()) == asyncio.run(listed(flow.window(size)))


def test_a_window_is_emitted_with_its_first_element_and_its_elements_come_as_they_do() -> None:
    async def main() -> list[Any]:
        loop, seen = asyncio.get_running_loop(), list[Any]()
        started = loop.time()
        async for window in Flow.interval(1).take(5).window(3):
            seen.append(("window", round(loop.time() - started)))
            seen += [(n, round(loop.time() - started)) async for n in window]
        return seen

    assert [("window", 1), (0, 1), (1, 2), (2, 3), ("window", 4), (3, 4), (4, 5)] == run_virtual(main())


async def test_as_many_elements_are_asked_for_as_the_wanted_windows_take() -> None:
    publisher, subscriber = Sessions(), Recorder(2)
    Flow.from_publisher(publisher).window(3).subscribe(subscriber)
    await idle()
    subscriber.request(1)
    subscriber.request(UNBOUNDED)
    await idle()

    assert 6 == publisher.requests[0][0]
    assert UNBOUNDED == publisher.requests[0][-1]


async def test_a_window_that_nobody_reads_holds_up_nothing_and_can_be_read_later() -> None:
    windows = await Flow.range(7).window(3).to_list()

    assert [[6], [3, 4, 5], [0, 1, 2]] == [await window.to_list() for window in reversed(windows)]


async def test_a_window_gives_no_more_than_its_reader_wants() -> None:
    [window] = await Flow.range(5).window(5).to_list()
    reader = Recorder(2)
    window.subscribe(reader)
    await idle()
    assert [0, 1] == reader.items

    reader.request(2)
    await idle()
    assert [0, 1, 2, 3] == reader.items

    reader.request(1)
    await idle()
    assert "complete" == reader.kinds[-1]


async def test_a_window_can_be_subscribed_to_once() -> None:
    [window] = await Flow.of(1).window(1).to_list()
    assert [1] == await window.to_list()

    with pytest.raises(SourceConsumedError, match="window 0 was subscribed to a second time"):
        await window.to_list()


async def test_a_window_can_be_read_from_another_event_loop() -> None:
    windows = await Flow.range(2000).window(1000).to_list()

    read = [await asyncio.to_thread(window.map(str).run_sync) for window in windows]

    assert [str(n) for n in range(2000)] == read[0] + read[1]


async def test_a_window_can_be_read_from_another_event_loop_while_it_fills() -> None:
    publisher, subscriber = Sessions(), Recorder(1)
    Flow.from_publisher(publisher).window(3).subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    await idle()
    first = asyncio.Event()
    here = asyncio.get_running_loop()
    reading = subscriber.items[0].do_on_next(lambda _: here.call_soon_threadsafe(first.set))
    read = asyncio.create_task(asyncio.to_thread(reading.run_sync))
    await first.wait()
    publisher.last.next(2, 3)

    assert [1, 2, 3] == await read


def test_windows_that_are_full_can_be_read_when_the_loop_that_filled_them_has_ended() -> None:
    windows = Flow.range(3).window(2).run_sync()

    assert [[0, 1], [2]] == [window.run_sync() for window in windows]


async def test_what_was_kept_of_a_window_that_is_let_go_of_unread_goes_to_the_discard_hook() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        windows = await Flow.range(4).window(2).to_list()
        assert [] == discarded
        del windows[0]
        gc.collect()
        assert [0, 1] == discarded

    assert [2, 3] == await windows[0].to_list()


async def test_what_is_left_of_a_window_that_its_reader_leaves_goes_to_the_discard_hook_and_the_next_one_comes() -> (
    None
):
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        firsts = [await window.first() async for window in Flow.range(7).window(3)]

    assert [0, 3, 6] == firsts
    assert [1, 2, 4, 5] == discarded


async def test_elements_that_come_for_a_window_that_its_reader_has_left_go_to_the_discard_hook() -> None:
    publisher, subscriber, reader = Sessions(), Recorder(9), Recorder(9)
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(publisher).window(3).subscribe(subscriber)
        await idle()
        publisher.last.next(1)
        await idle()
        subscriber.items[0].subscribe(reader)
        await idle()
        reader.cancel()
        await idle()
        publisher.last.next(2, 3, 4)
        await idle()

    assert [2, 3] == discarded
    assert 2 == len(subscriber.items)
    assert [1] == reader.items


async def test_the_failure_of_the_flow_is_that_of_the_windows_and_of_the_one_at_hand_behind_its_elements() -> None:
    publisher, subscriber, reader = Sessions(), Recorder(9), Recorder(9)
    Flow.from_publisher(publisher).window(3).subscribe(subscriber)
    await idle()
    publisher.last.next(1, 2)
    publisher.last.error(OSError("down"))
    await idle()
    subscriber.items[0].subscribe(reader)
    await idle()

    assert "down" == str(subscriber.error)
    assert [1, 2] == reader.items
    assert "down" == str(reader.error)


async def test_a_failure_is_heard_of_once_where_one_task_reads_the_windows_and_others_their_elements() -> None:
    dropped: list[BaseException] = []
    flow = Flow.range(4).concat(Flow.from_async_iterable(failing_later()))

    async def read_all() -> None:
        async with asyncio.TaskGroup() as tasks:
            async for window in flow.window(3):
                tasks.create_task(window.to_list())

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(ExceptionGroup) as failure:
        await read_all()

    assert ["down"] == [str(error) for error in failure.value.exceptions]
    assert [] == dropped


async def failing_later() -> Any:
    """Fail after a while."""
    await idle()
    raise OSError("down")
    yield


async def test_when_the_windows_are_cancelled_the_one_that_is_being_read_goes_on_to_its_end() -> None:
    publisher, subscriber, reader = Sessions(), Recorder(2), Recorder(9)
    Flow.from_publisher(publisher).window(3).subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    await idle()
    subscriber.items[0].subscribe(reader)
    subscriber.cancel()
    await idle()
    assert 0 == publisher.last.cancels

    publisher.last.next(2, 3, 4)
    await idle()
    assert [1, 2, 3] == reader.items
    assert "complete" == reader.kinds[-1]
    assert 1 == publisher.last.cancels


async def test_when_the_windows_are_cancelled_the_flow_is_when_the_last_reader_leaves() -> None:
    publisher, subscriber, reader = Sessions(), Recorder(2), Recorder(9)
    Flow.from_publisher(publisher).window(3).subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    await idle()
    subscriber.items[0].subscribe(reader)
    await idle()
    subscriber.cancel()
    await idle()
    reader.cancel()
    await idle()

    assert 1 == publisher.last.cancels


async def test_when_the_windows_are_cancelled_one_that_nobody_reads_fails_behind_what_it_has() -> None:
    publisher, subscriber, reader = Sessions(), Recorder(2), Recorder(9)
    Flow.from_publisher(publisher).window(3).subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    await idle()
    subscriber.cancel()
    await idle()
    assert 1 == publisher.last.cancels

    subscriber.items[0].subscribe(reader)
    await idle()
    assert [1] == reader.items
    assert isinstance(reader.error, SourceCancelledError)
    assert "window(3)" in str(reader.error)
    assert "before anybody read the window 0" in str(reader.error)


@pytest.mark.parametrize("somebody", [True, False])
async def test_a_failure_that_comes_behind_the_cancel_is_heard_by_who_reads_the_window_or_else_by_the_hook_once(
    somebody: bool,
) -> None:
    publisher, subscriber, reader = Sessions(), Recorder(2), Recorder(9)
    failure, dropped = OSError("behind the cancel"), list[BaseException]()
    with hooks.using(on_error_dropped=dropped.append):
        Flow.from_publisher(publisher).window(3).subscribe(subscriber)
        await idle()
        publisher.last.next(1)
        await idle()
        subscriber.cancel()
        await asyncio.sleep(0)
        publisher.last.error(failure)
        await asyncio.sleep(0)
        if somebody:
            subscriber.items[0].subscribe(reader)
        await idle()

    heard = reader.error if somebody else None
    assert (([], failure) if somebody else ([failure], None)) == (dropped, heard)


async def test_the_first_windows_of_many_can_be_taken_and_read() -> None:
    endless = Flow.of(1).repeat()

    assert [[1, 1, 1], [1, 1, 1]] == await listed(endless.window(3).take(2))


async def test_what_follows_a_window_is_as_behind_any_flow() -> None:
    assert ["0-1", "2-3"] == [await window.map(str).reduce("{}-{}".format) async for window in Flow.range(4).window(2)]


def test_a_size_below_one_is_refused_when_the_flow_is_built() -> None:
    with pytest.raises(ValueError, match=r"window\(size=0\): size must be at least 1"):
        Flow.of(1).window(0)
