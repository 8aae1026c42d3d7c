"""The promises of the boundary: what it holds, when it asks, and how ends and failures cross it."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from attrs import define, frozen

from reactive_aio import Flow, SchedulerClosedError, hooks, schedulers
from reactive_aio.schedulers import Attachment, Scheduler
from reactive_aio.schedulers.base import Released
from tests.subscribers import ByHand, Recorder, idle


@pytest.mark.parametrize("prefetch", [1, 2, 3, 4, 16, 256, 4096])
@pytest.mark.parametrize("n", [0, 1, 2, 255, 256, 257, 1000])
async def test_elements_cross_in_order_and_none_is_lost(prefetch: int, n: int) -> None:
    assert await Flow.range(n).publish_on(schedulers.current(), prefetch=prefetch).to_list() == list(range(n))


@pytest.mark.parametrize("prefetch", [1, 3, 256])
async def test_elements_cross_threads_in_order_and_none_is_lost(prefetch: int) -> None:
    flow = Flow.range(2_000).publish_on(schedulers.thread("a"), prefetch=prefetch).map(lambda n: n + 1)
    flow = flow.publish_on(schedulers.thread("b"), prefetch=prefetch).map(lambda n: n - 1)

    assert await flow.to_list() == list(range(2_000))


async def test_no_more_than_prefetch_is_read_ahead_of_the_subscriber() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        n = 0
        while True:
            read.append(n)
            yield n
            n += 1

    recorder = Recorder(request=2)
    Flow.from_iterable(numbers()).publish_on(schedulers.current(), prefetch=8).map(str).subscribe(recorder)
    await idle(50)

    assert recorder.items == ["0", "1"]
    assert len(read) <= 2 + 8


async def test_prefetch_is_requested_at_once_and_then_by_three_quarters() -> None:
    source = ByHand()
    recorder = Recorder()
    Flow.from_publisher(source).publish_on(schedulers.current(), prefetch=8).subscribe(recorder)
    await idle()
    assert source.requests == [8]

    source.next(*range(8))
    recorder.request(5)
    await idle()
    assert source.requests == [8]

    recorder.request(1)
    await idle()
    assert source.requests == [8, 6]


async def test_prefetch_of_one_is_stop_and_wait() -> None:
    source = ByHand()
    recorder = Recorder()
    Flow.from_publisher(source).publish_on(schedulers.current(), prefetch=1).subscribe(recorder)
    await idle()
    source.next(0)
    await idle()
    assert source.requests == [1]

    recorder.request(1)
    await idle()
    assert source.requests == [1, 1]


async def test_an_error_stays_behind_the_elements() -> None:
    source = ByHand()
    recorder = Recorder(request=1)
    Flow.from_publisher(source).publish_on(schedulers.current()).subscribe(recorder)
    await idle()
    source.next(1, 2)
    source.error(OSError("down"))
    await idle()
    assert recorder.kinds == ["subscribe", "next"]

    recorder.request(1)
    await idle()
    assert recorder.kinds == ["subscribe", "next", "next", "error"]


async def test_cancel_crosses_and_discards_what_is_queued() -> None:
    source = ByHand()
    recorder = Recorder(request=1)
    discarded: list[object] = []
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(source).publish_on(schedulers.current()).subscribe(recorder)
    await idle()
    source.next(1, 2, 3)
    await idle()
    recorder.cancel()
    await idle()

    assert source.cancels == 1
    assert recorder.items == [1]
    assert discarded == [2, 3]


@pytest.mark.usefixtures("still")
async def test_many_requests_from_a_thread_cost_one_wake_up() -> None:
    loop = asyncio.get_running_loop()
    recorder = Recorder()
    Flow.range(1_000).subscribe(recorder)
    await idle()
    wakes = 0
    original = loop.call_soon_threadsafe

    def counted(*args: object, **kwargs: object) -> object:
        nonlocal wakes
        wakes += 1
        return original(*args, **kwargs)

    class Spy:
        """The loop, with its wake-ups counted: uvloop's can't be patched."""

        call_soon = staticmethod(loop.call_soon)
        call_soon_threadsafe = staticmethod(counted)

    recorder.subscription.loop = Spy()

    def ask() -> None:
        for _ in range(100):
            recorder.request(1)

    # Joined without giving the loop a turn, so that all requests come while it is busy.
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    await idle()

    assert recorder.items == list(range(100))
    assert wakes == 1


async def test_functions_run_where_the_plan_says() -> None:
    where: dict[str, set[str]] = {"first": set(), "second": set(), "end": set()}

    def note(name: str) -> object:
        def fn(n: int) -> int:
            where[name].add(threading.current_thread().name)
            return n

        return fn

    flow = Flow.range(100).map(note("first")).subscribe_on(schedulers.thread("one"))
    flow = flow.publish_on(schedulers.thread("two"), prefetch=16).map(note("second"))
    await flow.for_each(note("end"))

    assert where == {"first": {"one"}, "second": {"two"}, "end": {threading.current_thread().name}}


async def test_of_several_subscribe_on_the_one_nearest_to_the_source_counts() -> None:
    where: set[str] = set()
    flow = Flow.range(3).map(lambda n: where.add(threading.current_thread().name))

    await flow.subscribe_on(schedulers.thread("near")).subscribe_on(schedulers.thread("far")).to_list()

    assert where == {"near"}


async def test_threads_end_with_the_flow() -> None:
    before = set(threading.enumerate())

    await Flow.range(10).publish_on(schedulers.thread("brief")).to_list()
    assert set(threading.enumerate()) <= before

    with pytest.raises(ZeroDivisionError):
        await Flow.range(10).publish_on(schedulers.thread("brief")).map(lambda n: 1 // n).to_list()
    assert set(threading.enumerate()) <= before

    async with Flow.range(10).publish_on(schedulers.thread("brief"), prefetch=2).open() as items:
        async for _ in items:
            break
    assert set(threading.enumerate()) <= before


async def test_the_end_of_a_thread_needs_no_turn_of_the_loop_it_was_started_from() -> None:
    # That loop may be a thread's that ends itself just then, as when one thread's region reads another's.
    before = set(threading.enumerate())
    told = threading.Event()
    joins: list[Callable[[], None] | None] = []

    def released(join: Callable[[], None] | None = None) -> None:
        joins.append(join)
        told.set()

    schedulers.thread("brief").attach(lambda error: None).detach(released)

    assert told.wait(30), "the end of the thread waited for this loop"
    assert joins[0] is not None
    joins[0]()
    assert set(threading.enumerate()) <= before


@pytest.mark.stress
async def test_threads_started_from_threads_end_with_them() -> None:
    before = set(threading.enumerate())

    for _ in range(300):
        inner = Flow.of(2).publish_on(schedulers.thread("inner"))
        flow = Flow.of(1).concat(inner, Flow.of(3)).subscribe_on(schedulers.thread("outer"))
        assert [1, 2, 3] == await asyncio.wait_for(flow.to_list(), 30)
        assert set(threading.enumerate()) <= before


async def test_an_open_thread_scheduler_serves_many_flows_on_one_thread() -> None:
    before = set(threading.enumerate())
    where: set[int] = set()

    async with schedulers.thread("kept") as kept:
        for _ in range(3):
            await Flow.range(3).publish_on(kept).map(lambda n: where.add(threading.get_ident())).to_list()
    assert len(where) == 1

    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("where", ["publish_on", "subscribe_on"])
async def test_a_thread_whose_loop_can_not_be_made_is_a_failure_of_the_flow(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object, *, of_a_test: bool) -> asyncio.AbstractEventLoop:
        raise OSError("too many open files")

    before = set(threading.enumerate())
    monkeypatch.setattr(type(schedulers.thread("none")), "_new_loop", refused)

    with pytest.raises(OSError, match="too many open files"):
        await getattr(Flow.range(3), where)(schedulers.thread("none")).to_list()
    assert set(threading.enumerate()) <= before


async def test_a_closed_thread_scheduler_is_refused_with_a_typed_error() -> None:
    scheduler = schedulers.thread("closed")
    scheduler.close()

    with pytest.raises(SchedulerClosedError, match="closed"):
        await Flow.range(3).publish_on(scheduler).to_list()

    recorder = Recorder()
    Flow.range(3).publish_on(scheduler).subscribe(recorder)
    await idle()
    assert recorder.kinds == ["subscribe", "error"]


@pytest.mark.parametrize("where", ["publish_on", "subscribe_on"])
async def test_closing_a_thread_in_the_middle_gives_a_typed_error(where: str) -> None:
    scheduler = schedulers.thread("short").open()
    flow = getattr(Flow.from_iterable(iter(int, 1)), where)(scheduler)

    async def close_after_a_thousand() -> None:
        async with flow.open() as items:
            count = 0
            async for _ in items:
                count += 1
                if count == 1_000:
                    await asyncio.to_thread(scheduler.close)

    with pytest.raises(SchedulerClosedError, match="short"):
        await close_after_a_thousand()


async def test_a_loop_that_stops_in_the_middle_gives_a_typed_error() -> None:
    foreign = asyncio.new_event_loop()
    thread = threading.Thread(target=foreign.run_forever)
    thread.start()
    flow = Flow.never().subscribe_on(schedulers.loop(foreign))
    waiting = asyncio.ensure_future(flow.to_list())
    await asyncio.sleep(0)

    foreign.call_soon_threadsafe(foreign.stop)
    thread.join()
    with pytest.raises(SchedulerClosedError):
        await asyncio.wait_for(waiting, 60)
    foreign.close()


async def test_a_closed_loop_is_refused_with_a_typed_error() -> None:
    foreign = asyncio.new_event_loop()
    foreign.close()

    with pytest.raises(SchedulerClosedError, match="closed"):
        await Flow.range(3).publish_on(schedulers.loop(foreign)).to_list()


async def test_a_foreign_loop_runs_the_region() -> None:
    foreign = asyncio.new_event_loop()
    thread = threading.Thread(target=foreign.run_forever, name="foreign")
    thread.start()
    try:
        flow = Flow.range(500).publish_on(schedulers.loop(foreign)).map(lambda n: threading.current_thread().name)
        assert set(await flow.to_list()) == {"foreign"}
    finally:
        foreign.call_soon_threadsafe(foreign.stop)
        thread.join()
        foreign.close()


async def test_ten_million_elements_need_no_more_memory_than_ten_thousand() -> None:
    async def peak(n: int) -> int:
        tracemalloc.start()
        flow = Flow.range(n).publish_on(schedulers.current()).publish_on(schedulers.current())
        assert await flow.count() == n
        _, top = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return top

    await peak(1_000)
    assert await peak(300_000) < 2 * await peak(10_000) + 100_000


async def test_a_foreign_subscriber_hears_from_the_loop_of_the_last_region() -> None:
    heard: set[str] = set()
    over = threading.Event()

    class Listener(Recorder):
        def on_subscribe(self, subscription: object) -> None:
            heard.add(threading.current_thread().name)
            subscription.request(10)

        def on_next(self, item: int) -> None:
            heard.add(threading.current_thread().name)

        def on_complete(self) -> None:
            heard.add(threading.current_thread().name)
            over.set()

    Flow.range(10).publish_on(schedulers.thread("elsewhere")).subscribe(Listener())
    await asyncio.to_thread(over.wait, 10)

    assert heard == {"elsewhere"}


@pytest.mark.usefixtures("still")
async def test_what_has_had_enough_completes_though_a_failure_waits_behind_the_rest() -> None:
    dropped: list[BaseException] = []
    flow = Flow.range(10).map(lambda n: 1 // (3 - n)).publish_on(schedulers.current(), prefetch=16)

    with hooks.using(on_error_dropped=dropped.append):
        assert 0 == await flow.first()

    assert [ZeroDivisionError] == [type(error) for error in dropped]


@pytest.mark.parametrize("depth", [1, 5, 10, 20, 50])
async def test_a_thread_ends_only_when_the_deepest_flow_that_is_read_there_has_been_cleaned_up(depth: int) -> None:
    # Each level hears of the cancel a turn of the thread's loop after the one above it.
    deep = Flow.of(1).concat(Flow.never())
    for _ in range(depth):
        deep = Flow[int].empty().concat(deep).map(int)

    assert 1 == await asyncio.wait_for(deep.subscribe_on(schedulers.thread("deep")).first(), 60)


@define(eq=False)
class Noted:
    """A scheduler that notes when its region leaves it, and the region's hold on it (an Attachment)."""

    scheduler: Scheduler
    left: list[str]
    attachment: Attachment | None = None

    @property
    def name(self) -> str:
        return self.scheduler.name

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self.attachment is not None
        return self.attachment.loop

    def is_here(self) -> bool:
        return self.scheduler.is_here()

    def attach(self, lost: Callable[[BaseException], None]) -> Noted:
        return Noted(self.scheduler, self.left, self.scheduler.attach(lost))

    def detach(self, released: Released) -> None:
        assert self.attachment is not None
        self.left.append(self.name)
        self.attachment.detach(released)


async def test_a_thread_stays_until_what_feeds_it_has_ended_so_that_no_late_failure_is_lost() -> None:
    left: list[str] = []
    dropped: list[BaseException] = []
    reached, complete = threading.Event(), threading.Event()
    late = OSError("late")

    @frozen
    class Numbers:
        def __iter__(self) -> Iterator[int]:
            yield 1
            reached.set()
            complete.wait()
            raise late

    feeds, fed = Noted(schedulers.thread("feeds"), left), Noted(schedulers.thread("is fed"), left)
    flow = Flow.from_iterable(Numbers()).subscribe_on(feeds).publish_on(fed)
    with hooks.using(on_error_dropped=dropped.append):
        # Else the source might be left before it comes to its failure.
        await flow.do_on_next(lambda _: reached.wait()).take(1).do_on_complete(complete.set).for_each(str)

    assert feeds.name == left[0]
    assert [late] == dropped


async def test_a_failure_that_finds_the_loop_of_the_next_region_closed_is_told_to_the_hook() -> None:
    dropped: list[BaseException] = []
    late = OSError("late")
    foreign = asyncio.new_event_loop()
    running = threading.Thread(target=foreign.run_forever)
    running.start()

    def close(n: int) -> int:
        if n == 2:
            foreign.call_soon_threadsafe(foreign.stop)
            running.join()
            foreign.close()
            raise late
        return n

    flow = Flow.of(1, 2).subscribe_on(schedulers.thread("feeds")).map(close).publish_on(schedulers.loop(foreign))
    with hooks.using(on_error_dropped=dropped.append), pytest.raises(SchedulerClosedError):
        await flow.map(str).to_list()

    assert [late] == dropped


async def test_a_closed_thread_tells_its_regions_while_its_loop_runs_and_again_behind_its_last_turn() -> None:
    running: list[bool] = []
    worker = schedulers.thread("closed").open()
    attachment = worker.attach(lambda _: running.append(attachment.loop.is_running()))
    worker.close()

    assert [True, False] == running
