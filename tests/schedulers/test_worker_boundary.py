"""The boundary to workers, against workers that the test drives: order, bounds, sizes, ends, discards."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from reactive_aio import Flow, hooks, schedulers
from reactive_aio.operators.scheduling._worker_boundary import TARGET, Pace
from reactive_aio.spec import UNBOUNDED
from tests.schedulers.by_hand import ByHand
from tests.subscribers import ByHand as Publisher
from tests.subscribers import Recorder, idle


def same(item: Any) -> Any:
    return item


def fail_at(n: int) -> Any:
    def fail(item: int) -> int:
        if item == n:
            raise OSError(f"no {n}")
        return item

    return fail


@contextmanager
def hooked() -> Generator[tuple[list[Any], list[BaseException]]]:
    """Collect what is discarded and what is dropped."""
    discarded: list[Any] = []
    dropped: list[BaseException] = []
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        yield discarded, dropped


async def begun(flow: Flow[Any], request: int = 1_000_000) -> Recorder:
    recorder = Recorder(request)
    flow.subscribe(recorder)
    await idle()
    return recorder


async def one_more_chunk(publisher: Publisher, workers: ByHand, turns: int = 60) -> None:
    """Publish the requested elements, and have the oldest chunk worked on."""
    publisher.next(*range(publisher.sent, sum(publisher.requests)))
    await idle(turns)
    workers.do(min(workers.chunks))
    await idle(turns)


async def test_results_come_in_the_order_of_the_elements_whoever_is_first() -> None:
    workers = ByHand(2)
    recorder = await begun(Flow.range(2).publish_on(workers).map(str))

    workers.do(1)
    await idle()
    assert recorder.items == []
    workers.do(0)
    await idle()

    assert recorder.items == ["0", "1"]
    assert recorder.kinds[-1] == "complete"


async def test_a_chunk_starts_with_one_element_and_one_for_each_worker() -> None:
    workers = ByHand(3)
    await begun(Flow.range(100).publish_on(workers).map(same))

    assert workers.given == [[0], [1], [2]]


class Full(ByHand):
    """Workers that take no chunk behind the first."""

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        if chunk:
            raise MemoryError(f"chunk {chunk}")
        super().submit(chunk, items, index)


async def test_a_chunk_that_can_not_be_submitted_fails_the_flow_behind_the_results_before_it() -> None:
    workers = Full(2)
    recorder = await begun(Flow.range(100).publish_on(workers).map(same))
    assert recorder.kinds == ["subscribe"]

    workers.do(0)
    await idle()

    assert recorder.items == [0]
    assert [MemoryError] == [type(error) for error in [recorder.error]]
    assert workers.given == [[0]]


async def test_chunks_double_while_they_are_quick_up_to_their_share_of_the_prefetch() -> None:
    workers = ByHand(2)
    await begun(Flow.range(1_000).publish_on(workers, prefetch=64).map(same))

    for chunk in range(20):
        workers.do(chunk)
        await idle()

    assert [len(items) for items in workers.given[:8]] == [1, 1, 2, 2, 2, 4, 8, 16]
    assert max(len(items) for items in workers.given) == 64 // 4


async def test_a_chunk_of_slow_elements_is_no_longer_than_its_time() -> None:
    workers = ByHand(1)
    await begun(Flow.range(1_000).publish_on(workers, prefetch=1_000).map(same))
    workers.seconds = 0.0
    for chunk in range(6):
        workers.do(chunk)
        await idle()
    large = len(workers.given[-1])

    workers.seconds = 10 * TARGET
    for chunk in range(6, 10):
        workers.do(chunk)
        await idle()

    assert large > 8
    assert len(workers.given[-1]) == 1


@pytest.mark.usefixtures("still")
async def test_by_default_chunks_of_quick_functions_outgrow_the_256_that_are_outstanding_at_first() -> None:
    workers, publisher = ByHand(2), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers).map(same))
    outstanding = [sum(publisher.requests)]
    for _ in range(100):
        await one_more_chunk(publisher, workers)
        outstanding.append(sum(publisher.requests) - len(recorder.items))

    assert (256, 4096) == (outstanding[0], max(outstanding))
    assert 1024 == max(map(len, workers.given))
    assert [*range(len(recorder.items))] == recorder.items


@pytest.mark.usefixtures("still")
async def test_by_default_slow_functions_have_256_outstanding_also_if_they_have_been_quick() -> None:
    workers, publisher = ByHand(2), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers).map(same), request=UNBOUNDED)
    for chunk in range(900):
        workers.seconds = 10 * TARGET * (chunk >= 50)
        await one_more_chunk(publisher, workers, turns=10)

    assert {1} == set(map(len, workers.given[-10:]))
    assert 192 < sum(publisher.requests) - len(recorder.items) <= 256


def test_few_elements_are_shared_among_idle_workers() -> None:
    pace = Pace(workers=4, least=512, most=512)
    for _ in range(6):
        pace.learn(64, 0.0)

    assert pace.share(waiting=10, under_way=0) == 3
    assert pace.share(waiting=7, under_way=1) == 3
    assert pace.share(waiting=4, under_way=4) == 4
    assert pace.share(waiting=1_000, under_way=0) == 64


async def test_what_is_there_goes_at_once_without_waiting_for_a_chunk_to_fill() -> None:
    workers, publisher = ByHand(2), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=64).map(same))

    for n in range(5):
        publisher.next(n)
        await idle()
        workers.do(n)
        await idle()
        assert recorder.items[-1] == n


@pytest.mark.parametrize("prefetch", [1, 2, 3, 7, 64])
@pytest.mark.usefixtures("still")
async def test_never_more_than_prefetch_are_outstanding_however_it_goes(prefetch: int) -> None:
    workers, publisher = ByHand(2), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=prefetch).map(same), request=0)
    sent = 0
    for _ in range(200):
        requested = sum(publisher.requests)
        assert requested - len(recorder.items) <= prefetch
        while sent < requested:
            publisher.next(sent)
            sent += 1
        await idle(5)
        if workers.chunks:
            workers.do(max(workers.chunks))  # the latest first: the worst for what has to wait
        else:
            recorder.request(prefetch + 1)
        await idle(5)

    assert len(recorder.items) > prefetch
    assert recorder.items == list(range(len(recorder.items)))


@pytest.mark.parametrize("prefetch", [1, 4, 7])
@pytest.mark.parametrize("ahead", [0, 4], ids=["where it is moved to", "behind a boundary"])
async def test_no_more_is_read_ahead_on_another_thread_than_is_declared(ahead: int, prefetch: int) -> None:
    made: list[int] = []

    def source() -> Generator[int]:
        for n in range(1_000):
            made.append(n)
            yield n

    workers = ByHand(2)
    async with schedulers.thread("reader") as reader:
        flow = Flow.from_iterable(source()).subscribe_on(reader)
        if ahead:
            flow = flow.publish_on(schedulers.thread("next"), prefetch=ahead)
        recorder = Recorder(1_000)
        flow.publish_on(workers, prefetch=prefetch).map(same).subscribe(recorder)
        for delivered in range(30):
            while not workers.chunks:
                await asyncio.sleep(0)
            await Flow.of(1).subscribe_on(reader).count()  # a turn of the thread, in which it would read on
            assert len(made) <= delivered + ahead + prefetch
            while len(recorder.items) == delivered:
                if workers.chunks:
                    workers.do(min(workers.chunks), 1)
                await idle()
        recorder.cancel()
        while workers.released is None:
            await asyncio.sleep(0)
        workers.go()


async def test_without_demand_nothing_is_worked_on_beyond_the_prefetch() -> None:
    workers, publisher = ByHand(2), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=4).map(same), request=0)
    publisher.next(*range(4))
    await idle()
    for chunk in range(4):
        workers.do(chunk)
        await idle()

    assert publisher.requests == [4]
    assert recorder.items == []
    recorder.request(3)
    await idle()
    assert recorder.items == [0, 1, 2]


async def test_prefetch_1_is_stop_and_wait() -> None:
    workers, publisher = ByHand(2), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=1).map(same))
    for n in range(3):
        assert publisher.requests == [1] * (n + 1)
        publisher.next(n)
        await idle()
        workers.do(n)
        await idle()

    assert recorder.items == [0, 1, 2]


async def test_at_most_two_chunks_a_worker_are_under_way() -> None:
    workers = ByHand(2)
    await begun(Flow.range(10_000).publish_on(workers, prefetch=256).map(same))
    for _ in range(50):
        assert 0 < len(workers.chunks) <= 4
        workers.do(min(workers.chunks))
        await idle(50)


async def test_what_the_first_small_chunks_leave_over_does_not_make_small_ones_for_ever() -> None:
    workers = ByHand(2)
    await begun(Flow.range(100_000).publish_on(workers, prefetch=1024).map(same))
    for number in range(60):
        workers.do(number)
        await idle()

    assert {len(items) for items in workers.given[20:60]} == {256}


@pytest.mark.parametrize(
    ("count", "prefetch", "portion"), [(2, 1024, 256), (3, 1024, 170), (8, 256, 64), (1, 8, 4), (4, 2, 1)]
)
async def test_whole_chunks_are_requested_about_a_quarter_of_the_prefetch_at_a_time(
    count: int, prefetch: int, portion: int
) -> None:
    workers, publisher = ByHand(count), Publisher()
    await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=prefetch).map(same))
    for _ in range(200):
        await one_more_chunk(publisher, workers)

    assert publisher.requests[0] == prefetch
    assert len(publisher.requests) > 3
    assert all(n % portion == 0 for n in publisher.requests[1:])


async def test_a_free_worker_gets_its_next_chunk_before_results_are_delivered() -> None:
    workers = ByHand(1, seconds=1.0)
    given: list[int] = []
    recorder = await begun(
        Flow.range(3).publish_on(workers).take(3).do_on_next(lambda _: given.append(len(workers.given)))
    )
    workers.do(0)
    await idle()

    assert recorder.items == [0]
    assert given == [2]


async def test_slow_elements_are_handed_out_one_for_each_worker() -> None:
    workers = ByHand(2, seconds=1.0)
    await begun(Flow.range(10_000).publish_on(workers, prefetch=256).map(same))
    for chunk in range(20):
        assert len(workers.chunks) == 2
        workers.do(chunk)
        await idle()


async def test_a_failure_comes_behind_what_came_before_it_with_operator_line_and_element() -> None:
    workers = ByHand(2)
    with hooked() as (discarded, _):
        recorder = await begun(Flow.range(9).publish_on(workers, prefetch=8).map(fail_at(5)).map(str))
        for chunk in range(5):
            if chunk in workers.chunks:
                workers.do(chunk)
            await idle()

    assert recorder.items == ["0", "1", "2", "3", "4"]
    assert type(recorder.error) is OSError
    (note,) = recorder.error.__notes__
    assert note.startswith(f"in map(fail), chained at {__file__}:")
    assert "on element #5 of publish_on(by_hand(2), prefetch=8), chained at" in note
    assert discarded == [6, 7, 8]


async def test_behind_a_chunk_that_has_failed_no_element_is_worked_on() -> None:
    workers, publisher = ByHand(2), Publisher()
    with hooked() as (discarded, dropped):
        recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=16).map(fail_at(1)))
        publisher.next(*range(8))
        await idle()
        workers.do(1)
        await idle()
        assert ([[0], [1]], 1) == (workers.given, publisher.cancels), "it does not wait for the chunk before"
        publisher.next(8)  # which was on its way
        await idle()
        assert [2, 3, 4, 5, 6, 7, 8] == discarded
        workers.do(0)
        await idle()

    assert ([0], (["no 1"], [])) == (recorder.items, ([str(recorder.error)], dropped))
    assert 2 == len(workers.given)


async def test_the_failures_of_later_chunks_are_told_to_the_hook() -> None:
    def fail(n: int) -> int:
        raise OSError(n)

    workers = ByHand(3)
    with hooked() as (discarded, dropped):
        recorder = await begun(Flow.range(3).publish_on(workers).map(fail))
        for chunk in (2, 1, 0):
            workers.do(chunk)
            await idle()

    assert recorder.items == []
    assert recorder.error.args == (0,)
    assert [error.args for error in dropped] == [(1,), (2,)]
    assert discarded == []


async def test_what_later_chunks_have_made_is_discarded() -> None:
    workers = ByHand(3)
    with hooked() as (discarded, _):
        await begun(Flow.range(3).publish_on(workers).map(fail_at(0)).map(str))
        for chunk in (2, 0):
            workers.do(chunk)
            await idle()

    assert discarded == [1, "2"]


async def test_a_cancel_discards_every_element_that_was_taken_once() -> None:
    workers = ByHand(2)
    with hooked() as (discarded, _):
        recorder = await begun(Flow.range(100).publish_on(workers, prefetch=8).map(same), request=1)
        for chunk in range(4):
            if chunk in workers.chunks:
                workers.do(chunk)
            await idle()
        recorder.cancel()
        await idle()

    assert recorder.items == [0]
    assert sorted(discarded) == [1, 2, 3, 4, 5, 6, 7]
    assert workers.released is not None


async def test_what_comes_after_a_cancel_goes_to_the_hooks() -> None:
    workers = ByHand(2)
    with hooked() as (discarded, dropped):
        recorder = await begun(Flow.range(2).publish_on(workers).map(fail_at(0)))
        recorder.cancel()
        await idle()
        workers.do(0)
        await idle()

    assert discarded == [0, 1]
    assert [str(error) for error in dropped] == ["no 0"]
    assert recorder.kinds == ["subscribe"]


async def test_a_failure_of_the_flow_before_comes_behind_its_elements() -> None:
    workers = ByHand(2)
    recorder = await begun(Flow.range(2).concat(Flow.error(OSError("upstream"))).publish_on(workers).map(same))
    assert recorder.kinds == ["subscribe"]
    for chunk in (1, 0):
        workers.do(chunk)
    await idle()

    assert recorder.items == [0, 1]
    assert str(recorder.error) == "upstream"


async def test_a_chunk_that_multiplies_its_elements_waits_for_demand() -> None:
    workers = ByHand(1)
    recorder = await begun(
        Flow.range(1).publish_on(workers, prefetch=4).flat_map_iterable(lambda n: range(100)), request=3
    )
    workers.do(0)
    await idle()
    assert recorder.items == [0, 1, 2]
    assert workers.told == []

    recorder.request(2)
    await idle()

    assert recorder.items == [0, 1, 2, 3, 4]
    assert workers.told == [0]


async def test_results_come_in_parts_before_a_chunk_is_over() -> None:
    workers, publisher = ByHand(1), Publisher()
    recorder = await begun(
        Flow.from_publisher(publisher).publish_on(workers, prefetch=8).flat_map_iterable(lambda n: [n] * 3)
    )
    publisher.next(7)
    await idle()

    workers.do(0, 2)
    await idle()

    assert recorder.items == [7, 7]


async def test_workers_that_are_lost_fail_the_flow() -> None:
    workers = ByHand(2)
    with hooked() as (_, dropped):
        recorder = await begun(Flow.range(9).publish_on(workers).map(same))
        workers.reports.lost(OSError("gone"))
        workers.reports.lost(OSError("gone again"))
        await idle()

    assert str(recorder.error) == "gone"
    assert [str(error) for error in dropped] == ["gone again"]


async def test_a_terminal_returns_when_the_workers_have_let_the_region_go() -> None:
    import asyncio

    workers = ByHand(1)
    terminal = asyncio.ensure_future(Flow.range(1).publish_on(workers).map(same).to_list())
    await idle()
    workers.do(0)
    await idle(100)
    assert workers.released is not None
    assert not terminal.done()

    workers.go()

    assert await terminal == [0]


def test_workers_run_no_source() -> None:
    with pytest.raises(TypeError, match=r"subscribe_on\(by_hand\(2\)\): workers apply functions.*publish_on"):
        Flow.range(3).subscribe_on(ByHand(2))


def test_an_async_function_is_refused_as_everywhere() -> None:
    async def fetch(n: int) -> int:
        return n

    with pytest.raises(TypeError, match="async def"):
        Flow.range(3).publish_on(ByHand(2)).map(fetch)


@pytest.mark.parametrize(("prefetch", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_prefetch_is_a_count(prefetch: Any, error: Any) -> None:
    with pytest.raises(error, match="prefetch"):
        Flow.range(3).publish_on(ByHand(2), prefetch=prefetch)


async def test_the_very_end_of_the_workers_is_waited_for_by_who_awaits_the_flow_and_not_by_the_region() -> None:
    # The region may hear of it on the thread of the worker itself, where its loop is closed.
    joined: list[str] = []
    workers = ByHand(2)
    recorder = await begun(Flow.range(2).publish_on(workers).map(str))
    recorder.cancel()
    await idle()
    assert workers.released is not None

    workers.released(lambda: joined.append("by the region"))
    await idle()

    assert [] == joined
