"""The ends: what they return and raise, and that everything has been cleaned up by then."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NoReturn

import pytest

from reactive_aio import EmptyFlowError, Flow, SourceCancelledError, SourceConsumedError, hooks, schedulers
from reactive_aio._fusion import ELEMENT
from reactive_aio._plan import Capabilities
from reactive_aio.extend import flow_of
from reactive_aio.operators.sourcing.iterable import Of
from tests.subscribers import idle

Closer = Callable[[], AsyncIterator[int]]


def closing(log: list[str], pause: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0)) -> AsyncIterator[int]:
    """Numbers without end from an async generator that takes its time to clean up."""

    async def numbers() -> AsyncIterator[int]:
        n = 0
        try:
            while True:
                yield n
                n += 1
        finally:
            await pause()
            await pause()
            log.append("closed")

    return numbers()


# -- what they give


async def test_the_ends_give_what_their_names_say() -> None:
    flow = Flow.range(1, 5)

    assert await flow.to_list() == [1, 2, 3, 4]
    assert await flow.first() == 1
    assert await flow.last() == 4
    assert await flow.count() == 4
    assert await flow.reduce(lambda a, b: a * b) == 24
    assert await flow.reduce(lambda text, n: text + str(n), "n") == "n1234"
    seen: list[int] = []
    await flow.for_each(seen.append)
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize("end", [Flow.first, Flow.last, lambda flow: flow.reduce(max)])
async def test_an_end_without_an_element_says_which_flow_was_empty(end: Callable[[Flow[int]], Awaitable[int]]) -> None:
    with pytest.raises(EmptyFlowError, match=r"Flow\.range\(0, 0\)\.filter\(bool\)"):
        await end(Flow.range(0).filter(bool))


async def test_a_default_stands_in_for_the_missing_element() -> None:
    assert await Flow.empty().first(default=7) == 7
    assert await Flow.empty().last(default=None) is None
    assert await Flow.empty().reduce(max, 0) == 0


async def test_first_cancels_the_source() -> None:
    log: list[str] = []

    assert await Flow.from_async_iterable(closing(log)).first() == 0
    assert log == ["closed"]


# -- nothing outlives its stream


@pytest.mark.parametrize("ending", ["take", "error", "cancel", "break", "open", "first"])
@pytest.mark.parametrize("placed", ["fused", "boundary", "thread"])
async def test_all_cleanup_has_finished_when_an_end_returns(ending: str, placed: str) -> None:
    log: list[str] = []
    before = {*asyncio.all_tasks(), *threading.enumerate()}
    started = threading.Event()
    flow = Flow.from_async_iterable(closing(log)).map(lambda n: started.set() or n)
    if placed == "boundary":
        flow = flow.publish_on(schedulers.current(), prefetch=2)
    elif placed == "thread":
        flow = flow.publish_on(schedulers.thread("t"), prefetch=2).map(lambda n: n)

    if ending == "take":
        assert await flow.take(2).to_list() == [0, 1]
    elif ending == "first":
        assert await flow.first() == 0
    elif ending == "error":
        with pytest.raises(ZeroDivisionError):
            await flow.map(lambda n: 1 // (1 - n)).to_list()
    elif ending == "cancel":
        task = asyncio.ensure_future(flow.count())
        while not started.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    elif ending == "break":
        async for n in flow:
            if n == 2:
                break
        async with asyncio.timeout(60):  # the iterator's finaliser cancels at once; the cleanup takes some turns
            while not log:
                await asyncio.sleep(0)
    else:
        async with flow.open() as items:
            async for n in items:
                if n == 2:
                    break

    assert log == ["closed"]
    if ending != "break":
        assert {*asyncio.all_tasks(), *threading.enumerate()} <= before


async def test_a_second_cancel_does_not_cut_the_cleanup_short() -> None:
    log: list[str] = []
    gate = asyncio.Event()
    flow = Flow.from_async_iterable(closing(log, gate.wait))
    task = asyncio.ensure_future(flow.count())
    await idle()

    task.cancel()
    await idle()
    task.cancel()
    await idle()
    assert not task.done()

    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["closed"]


async def test_a_generator_source_is_closed_before_the_end_returns() -> None:
    log: list[str] = []

    def numbers() -> object:
        try:
            yield from range(100)
        finally:
            log.append("closed")

    await Flow.from_iterable(numbers()).take(1).to_list()
    assert log == ["closed"]


async def test_a_subscriber_is_forgotten_after_the_end() -> None:
    from tests.subscribers import Recorder

    recorder = Recorder(request=10)
    Flow.range(3).map(str).subscribe(recorder)
    await idle()
    kept = recorder.subscription
    gone = weakref.ref(recorder)
    del recorder

    assert kept is not None
    assert gone() is None


# -- one task and one context for a source


async def test_an_async_generator_lives_in_one_task_and_one_context() -> None:
    tasks: set[object] = set()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    async def source() -> AsyncIterator[int]:
        token = variable.set("inside")
        try:
            for n in range(5):
                tasks.add(asyncio.current_task())
                assert variable.get() == "inside"
                yield n
        finally:
            tasks.add(asyncio.current_task())
            variable.reset(token)  # raises in any other context

    assert await Flow.from_async_iterable(source()).take(3).to_list() == [0, 1, 2]
    assert len(tasks) == 1


async def test_a_timeout_inside_a_source_is_an_error_of_the_stream() -> None:
    async def source() -> AsyncIterator[int]:
        async with asyncio.timeout(0.01):
            yield 1
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await Flow.from_async_iterable(source()).to_list()


async def test_a_timeout_of_a_source_never_reaches_a_slow_consumer(virtual_time: object) -> None:
    async def source() -> AsyncIterator[int]:
        async with asyncio.timeout(0.001):
            yield 1
            yield 2

    items = aiter(Flow.from_async_iterable(source()))
    assert await anext(items) == 1
    await asyncio.sleep(0.01)  # longer than the source's own time, which runs out while it is not asked
    with pytest.raises(TimeoutError):
        await anext(items)


@pytest.mark.parametrize("place", ["here", "thread"])
async def test_the_subscribers_context_is_current_in_every_function(place: str) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="lost")
    variable.set("kept")
    flow = Flow.range(3).map(lambda n: variable.get())
    if place == "thread":
        flow = flow.subscribe_on(schedulers.thread("t"))

    assert await flow.to_list() == ["kept"] * 3
    assert [value async for value in flow] == ["kept"] * 3
    assert await Flow.defer(lambda: Flow.of(variable.get())).first() == "kept"


async def test_what_a_function_sets_does_not_leak_to_the_subscriber() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=-1)

    await Flow.range(3).map(variable.set).to_list()
    async for _ in Flow.range(3).map(variable.set):
        pass

    assert variable.get() == -1


# -- no error vanishes


async def test_a_failing_cleanup_is_the_error_of_a_stream_that_would_have_completed() -> None:
    def source() -> object:
        try:
            yield 1
        finally:
            raise OSError("flush failed")

    with pytest.raises(OSError, match="flush failed"):
        await Flow.from_iterable(source()).take(1).to_list()


async def test_a_failing_cleanup_behind_an_early_end_fails_the_end_that_is_awaited() -> None:
    dropped: list[BaseException] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            raise OSError("flush failed")

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(OSError, match="flush failed"):
        await Flow.from_async_iterable(source()).first()

    assert dropped == []


@pytest.mark.parametrize("end", ["to_list", "async for"])
async def test_a_cancellation_raised_by_a_function_is_a_typed_error_and_no_hang(end: str) -> None:
    def cancelled(n: int) -> int:
        raise asyncio.CancelledError

    for flow in (
        Flow.of(1).map(cancelled),
        Flow.error(asyncio.CancelledError()),
        Flow.of(1).concat(Flow.of(2).map(cancelled)),
    ):
        with pytest.raises(SourceCancelledError):
            await (flow.to_list() if end == "to_list" else _iterated(flow))


async def _iterated(flow: Flow[int]) -> list[int]:
    return [n async for n in flow]


async def test_the_failure_of_for_each_cancels_and_waits_for_the_others() -> None:
    log: list[str] = []
    started = asyncio.Event()

    async def work(n: int) -> None:
        if n == 0:
            await started.wait()
            raise ValueError("first")
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append(f"worker {n} stopped")

    with pytest.raises(ValueError, match="first"):
        await Flow.range(10).for_each(work, max_concurrency=3)

    assert sorted(log) == ["worker 1 stopped", "worker 2 stopped"]


async def test_for_each_refuses_a_coroutine_that_nobody_would_await() -> None:
    async def store(_: int) -> None:
        raise AssertionError("nobody awaits it")

    with pytest.raises(
        TypeError, match=r"<lambda> returned a coroutine.*pass for_each the `async def` itself"
    ) as failed:
        await Flow.range(3).for_each(lambda n: store(n + 1))

    assert ["on element #0" in note for note in failed.value.__notes__] == [True]


async def test_for_each_takes_a_function_that_returns_a_value() -> None:
    done: set[int] = set()

    def store(n: int) -> int:
        done.add(n)
        return len(done)

    await Flow.range(3).for_each(store)

    assert {0, 1, 2} == done


async def test_for_each_runs_no_more_than_its_concurrency_and_reads_no_further() -> None:
    read: list[int] = []
    live = peak = 0

    def numbers() -> object:
        for n in range(50):
            read.append(n)
            yield n

    async def work(n: int) -> None:
        nonlocal live, peak
        live += 1
        peak = max(peak, live)
        assert len(read) <= n + 1 + 4
        await idle(100)
        live -= 1

    await Flow.from_iterable(numbers()).for_each(work, max_concurrency=4)

    assert peak == 4
    assert len(read) == 50


async def test_a_failure_is_raised_or_told_to_the_hook_whenever_the_wait_is_cancelled() -> None:
    async def failing() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        failed.append("failed")
        raise OSError("down")
        yield

    turns, ended, seen = 0, False, set[tuple[int, int]]()
    while not ended:
        failed: list[str] = []
        told: list[BaseException] = []
        with hooks.using(on_error_dropped=told.append):
            task = asyncio.ensure_future(Flow.from_async_iterable(failing()).first())
        await idle(turns)
        turns, ended = turns + 1, not task.cancel()
        await asyncio.wait([task])
        raised = int(not task.cancelled() and isinstance(task.exception(), OSError))
        seen.add((len(told), raised))
        assert len(told) + raised == len(failed)

    assert seen == {(0, 0), (1, 0), (0, 1)}


@pytest.mark.parametrize("end", [Flow.first, Flow.to_list])
async def test_a_value_is_given_or_discarded_whenever_the_wait_is_cancelled(end: Callable[..., Awaitable[Any]]) -> None:
    async def one() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        made.append(5)
        yield 5

    turns, ended, discards = 0, False, 0
    while not ended:
        made: list[int] = []
        discarded: list[Any] = []
        with hooks.using(on_discard=discarded.append):
            task = asyncio.ensure_future(end(Flow.from_async_iterable(one())))
        await idle(turns)
        turns, ended = turns + 1, not task.cancel()
        await asyncio.wait([task])
        given = [] if task.cancelled() else [task.result()] if end is not Flow.to_list else task.result()
        discards += len(discarded)
        assert [*given, *discarded] == made

    assert discards > 0


# -- sources that are read once


async def test_an_iterator_is_refused_to_a_second_subscriber() -> None:
    flow = Flow.from_iterable(iter([1, 2]))

    assert await flow.to_list() == [1, 2]
    with pytest.raises(SourceConsumedError, match="function that makes"):
        await flow.to_list()


async def test_an_async_iterator_is_refused_to_a_second_subscriber() -> None:
    flow = Flow.from_async_iterable(closing([]))

    assert await flow.first() == 0
    with pytest.raises(SourceConsumedError, match="function that makes"):
        await flow.first()


async def test_create_waits_for_demand_at_each_emit() -> None:
    reached: list[int] = []

    async def producer(emit: Callable[[int], Awaitable[None]]) -> None:
        for n in range(10):
            await emit(n)
            reached.append(n)

    items = aiter(Flow.create(producer))
    assert await anext(items) == 0
    await idle()
    assert reached == [0]
    assert await anext(items) == 1
    await items.aclose()


async def test_a_producer_that_is_cancelled_by_somebody_else_is_a_typed_error() -> None:
    async def producer(emit: Callable[[int], Awaitable[None]]) -> None:
        await emit(1)
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(SourceCancelledError):
        await Flow.create(producer).to_list()


# -- from ordinary code


@pytest.mark.parametrize("place", ["here", "behind a boundary"])
def test_an_interrupt_comes_out_and_the_sources_are_closed(place: str) -> None:
    log: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            log.append("closed")

    def interrupted(n: int) -> int:
        if n == 3:
            raise KeyboardInterrupt
        return n

    flow = Flow.from_iterable(numbers())
    if place != "here":
        flow = flow.publish_on(schedulers.current(), prefetch=2)

    with pytest.raises(KeyboardInterrupt):
        flow.map(interrupted).run_sync()
    assert log == ["closed"]


def test_run_sync_gives_the_elements_or_what_the_end_gives() -> None:
    assert Flow.range(3).run_sync() == [0, 1, 2]
    assert Flow.range(3).run_sync(Flow.count) == 3
    assert Flow.range(3).run_sync(lambda flow: flow.reduce(max)) == 2


async def test_run_sync_works_beside_a_running_loop() -> None:
    assert Flow.range(3).run_sync() == [0, 1, 2]


def test_subscribing_without_a_loop_says_what_to_do() -> None:
    from tests.subscribers import Recorder

    with pytest.raises(RuntimeError, match="subscribe_on"):
        Flow.range(3).subscribe(Recorder())


async def test_a_failure_in_planning_a_flow_is_not_taken_for_the_want_of_a_loop() -> None:
    from tests.subscribers import Recorder

    class Unplannable(Of[int]):
        capabilities = Capabilities("somewhere", frozenset({ELEMENT}))

        def lower(self, stage: object) -> NoReturn:
            raise RuntimeError("of its own")

    with pytest.raises(RuntimeError, match=r"^of its own$"):
        flow_of(Unplannable((1,))).map(str).subscribe(Recorder())
