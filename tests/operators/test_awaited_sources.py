"""Async iterators as sources: fused with the stages that follow, in one task and one context, and nothing is read ahead."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, suppress
from contextvars import ContextVar
from itertools import count, pairwise
from types import coroutine
from typing import Any

import anyio
import pytest

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio._core import budgets
from reactive_aio.errors import SourceCancelledError
from tests.subscribers import Recorder, idle


async def test_over_a_boundary_no_element_waits_for_the_next() -> None:
    gate = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2
        await gate.wait()

    recorder = Recorder(UNBOUNDED)
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current()).subscribe(recorder)
    await idle()

    assert [1, 2] == recorder.items
    recorder.cancel()


async def test_no_more_than_the_prefetch_is_made() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    recorder = Recorder()
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=6).subscribe(recorder)
    await idle()

    assert [*range(6)] == made
    recorder.cancel()


WAITS: dict[str, Callable[[int], bool]] = {
    "each": lambda n: True,
    "some": lambda n: n % 3 == 0,
    "none": lambda n: False,
}


@pytest.mark.parametrize("waits", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("every", [1, 2], ids=["without a stage", "behind a filter"])
async def test_exactly_what_was_requested_is_made_wherever_the_iterator_suspends(
    waits: Callable[[int], bool], every: int
) -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            if waits(n):
                await asyncio.sleep(0)
            made.append(n)
            yield n

    recorder, flow = Recorder(), Flow.from_async_iterable(numbers())
    wanted = flow if every == 1 else flow.filter(lambda n: n % every == 0)
    wanted.publish_on(schedulers.current(), prefetch=20).subscribe(recorder)
    await idle()
    assert [*range(19 * every + 1)] == made

    recorder.request(15)  # three quarters, so that as many are asked for again
    await idle()
    assert [*range(0, 15 * every, every)] == recorder.items
    assert [*range(34 * every + 1)] == made
    recorder.cancel()


@pytest.mark.parametrize("place", ["before a boundary", "merged"])
async def test_effects_interleave_where_a_stage_follows(place: str) -> None:
    effects: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(3):
            effects.append(f"made {n}")
            yield n

    flow = Flow.from_async_iterable(numbers()).map(lambda n: effects.append(f"mapped {n}"))
    await (flow.publish_on(schedulers.current()) if place != "merged" else flow.merge(Flow.empty())).to_list()

    assert [f"{verb} {n}" for n in range(3) for verb in ("made", "mapped")] == effects


async def test_what_stops_early_before_the_boundary_is_exactly_lazy() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    flow = Flow.from_async_iterable(numbers()).take_until(lambda n: n == 2)

    assert [0, 1, 2] == await flow.merge(Flow.empty()).to_list()
    assert [0, 1, 2] == made


async def test_a_generator_keeps_its_task_and_its_context() -> None:
    place: ContextVar[str] = ContextVar("place")
    tasks: set[Any] = set()

    async def numbers() -> AsyncIterator[int]:
        place.set("inside")
        try:
            for n in range(100):
                tasks.add(asyncio.current_task())
                assert "inside" == place.get()
                yield n
        finally:
            tasks.add(asyncio.current_task())
            assert "inside" == place.get()

    flow = Flow.from_async_iterable(numbers()).merge(Flow.never())

    assert [*range(50)] == await flow.take(50).to_list()
    assert 1 == len(tasks)


async def test_a_timeout_of_the_generator_s_own_is_its_own_while_nobody_asks(virtual_time: object) -> None:
    async def numbers() -> AsyncIterator[Any]:
        try:
            async with asyncio.timeout(0.001):
                yield 1
                await asyncio.Event().wait()
        except TimeoutError:
            yield "timed out"

    recorder = Recorder()
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=1).subscribe(recorder)
    await asyncio.sleep(0.01)
    recorder.request(UNBOUNDED)
    await recorder.over.wait()

    assert [1, "timed out"] == recorder.items


async def test_cancelled_what_was_made_is_told_to_the_hook_and_the_generator_ends() -> None:
    discarded, ended = list[object](), list[str]()

    async def numbers() -> AsyncIterator[int]:
        try:
            for n in range(10**6):
                yield n
        finally:
            ended.append("ended")

    recorder = Recorder()
    with hooks.using(on_discard=discarded.append):
        Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=20).subscribe(recorder)
    await idle()
    recorder.cancel()
    await idle()

    assert [*range(20)] == discarded
    assert ["ended"] == ended


# -- the ways in which an element is had: in the owner's task, and on the spot

Suspends = Callable[[], Awaitable[object]]


@coroutine
def bare() -> Generator[None, None, None]:
    yield


async def a_future() -> None:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, None)
    await future


async def ready() -> None:
    pass


WAYS: dict[str, Suspends] = {"ready": ready, "bare": bare, "a future": a_future}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", range(4))
async def test_iterating_gives_all_wherever_the_source_suspends_first(way: str, first: int) -> None:
    """Each way of suspending, from each step on: the hand-over to the owner comes at every place."""

    async def numbers() -> AsyncIterator[int]:
        for n in range(6):
            if n >= first:
                await WAYS[way]()
            yield n
            if n >= first:
                await WAYS[way]()

    assert [*range(6)] == [n async for n in Flow.from_async_iterable(numbers())]


@pytest.mark.parametrize("way", WAYS)
async def test_start_steps_and_cleanup_are_in_one_task_and_one_context(way: str) -> None:
    seen: list[tuple[object, object]] = []
    inside: ContextVar[int] = ContextVar("inside")

    def look() -> None:
        seen.append((asyncio.current_task(), inside.get()))

    async def numbers() -> AsyncGenerator[int, None]:
        inside.set(1)
        try:
            for n in range(50):
                look()
                await WAYS[way]()
                look()
                yield n
        finally:
            look()
            await asyncio.sleep(0)
            look()

    me = asyncio.current_task()
    async for n in Flow.from_async_iterable(numbers()).map(lambda n: look() or n):
        assert asyncio.current_task() is me
        assert inside not in contextvars.copy_context()
        if n == 30:
            break
    await idle()
    async with Flow.from_async_iterable(numbers()).open() as items:
        async for n in items:
            if n == 3:
                break

    assert 2 == len({task for task, _ in seen})
    assert me not in {task for task, _ in seen}
    assert {1} == {value for _, value in seen}


@pytest.mark.parametrize("way", WAYS)
async def test_a_wait_that_is_cancelled_loses_nothing(way: str) -> None:
    gates = [asyncio.Event() for _ in range(4)]

    async def numbers() -> AsyncIterator[int]:
        for n, gate in enumerate(gates):
            await WAYS[way]()
            await gate.wait()
            yield n

    got: list[int] = []
    async with Flow.from_async_iterable(numbers()).open() as items:
        for gate in gates:
            for _ in range(3):
                waiting = asyncio.ensure_future(anext(items))
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
            gate.set()
            got.append(await anext(items))

    assert [0, 1, 2, 3] == got


@pytest.mark.parametrize("turns", range(6))
async def test_a_wait_is_cancelled_at_each_turn_of_a_source_that_lets_others_run(turns: int) -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(5):
            for _ in range(3):
                await asyncio.sleep(0)
            yield n

    got: list[int] = []
    async with Flow.from_async_iterable(numbers()).open() as items:
        got.append(await anext(items))
        got.append(await anext(items))
        waiting = asyncio.ensure_future(anext(items))
        await idle(turns)
        waiting.cancel()
        (done,), _ = await asyncio.wait([waiting])
        if not done.cancelled():
            got.append(done.result())
        got += [n async for n in items]

    assert [*range(5)] == got


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("end", ["for each", "in batches", "open"])
async def test_a_source_that_waits_for_turns_alone_is_cancelled(end: str, turns: int) -> None:
    closed = False

    async def polling() -> AsyncIterator[int]:
        nonlocal closed
        try:
            yield 1
            for _ in range(1_000):  # and not for ever, so that a test that fails ends
                await asyncio.sleep(0)
        finally:
            closed = True

    async def handle(_: object) -> None:
        pass

    async def reading() -> None:
        flow = Flow.from_async_iterable(polling())
        if end == "for each":
            await flow.for_each(handle)
        elif end == "in batches":
            await flow.for_each_batch(handle, 2)
        else:
            async with flow.open() as items:
                async for item in items:
                    await handle(item)

    task = asyncio.create_task(reading())
    await idle()
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not closed
    task.cancel()
    await idle()

    assert closed
    assert task.cancelled()


@pytest.mark.parametrize(("ready", "prefetch"), [(4, 2), (9, 1), (9, 2)])
async def test_the_cleanup_of_a_source_that_is_left_by_a_failure_goes_on_behind_its_waits(
    ready: int, prefetch: int
) -> None:
    async def failing() -> AsyncIterator[int]:
        for n in range(ready):
            yield n
        raise OSError

    cleaned = False

    async def polling() -> AsyncIterator[int]:
        nonlocal cleaned
        try:
            for n in range(9):
                await asyncio.sleep(0)
                yield n
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            cleaned = True

    merged = Flow.from_async_iterable(failing).merge(Flow.from_async_iterable(polling), prefetch=prefetch)
    end = asyncio.create_task(merged.to_list())
    await idle(200)

    assert end.done()
    assert isinstance(end.exception(), OSError)
    assert cleaned


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scope", ["asyncio", "anyio"])
async def test_a_timeout_of_the_source_around_a_yield_is_its_own(way: str, scope: str, virtual_time: object) -> None:
    async def numbers() -> AsyncIterator[Any]:
        yield 0
        await WAYS[way]()
        yield 1
        try:
            if scope == "asyncio":
                async with asyncio.timeout(0.001):
                    yield 2
                    await asyncio.Event().wait()
            else:
                with anyio.fail_after(0.001):
                    yield 2
                    await asyncio.Event().wait()
        except TimeoutError:
            yield "timed out"

    got: list[Any] = []
    async for item in Flow.from_async_iterable(numbers()):
        got.append(item)
        if item == 2:
            await asyncio.sleep(0.01)  # while nobody asks

    assert [0, 1, 2, "timed out"] == got
    task = asyncio.current_task()
    assert task is not None
    assert 0 == task.cancelling()


@pytest.mark.parametrize("way", WAYS)
async def test_a_timeout_of_the_consumer_ends_its_wait_and_not_the_source(way: str) -> None:
    gate = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        await WAYS[way]()
        yield 1
        await WAYS[way]()
        await gate.wait()
        yield 2

    async with Flow.from_async_iterable(numbers()).open() as items:
        assert 1 == await anext(items)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(items), 0.001)
        with pytest.raises(TimeoutError), anyio.fail_after(0.001):
            await anext(items)
        gate.set()
        assert 2 == await anext(items)


@pytest.mark.parametrize("way", WAYS)
async def test_the_region_is_left_while_the_source_waits_and_its_cleanup_runs_to_its_end(way: str) -> None:
    seen: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await WAYS[way]()
            yield 2
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            for _ in range(3):
                await WAYS[way]()
            seen.append("cleaned up")

    async with Flow.from_async_iterable(numbers()).open() as items:
        assert [1, 2] == [await anext(items), await anext(items)]
        waiting = asyncio.ensure_future(anext(items))
        await idle()
    await asyncio.wait([waiting])

    assert ["cancelled", "cleaned up"] == seen


@pytest.mark.parametrize("end", ["sum", "for_each", "async for", "iterating with a function"])
async def test_others_have_their_turn_about_each_millisecond(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by 0.1 ms with each element: others have had a turn when ten have come, or twenty."""
    now = [0.0]
    monkeypatch.setattr(budgets, "clock", lambda: now[0])
    turns: list[int] = []
    made = [0]

    async def numbers() -> AsyncIterator[int]:
        for n in range(200):
            made[0] = n
            now[0] += 1e-4
            yield n

    async def other() -> None:
        while True:
            turns.append(made[0])
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    flow = Flow.from_async_iterable(numbers()).map(lambda n: n)
    if end == "sum":
        await flow.sum()
    elif end == "for_each":
        await flow.for_each(lambda _: None)
    elif end == "async for":
        async for _ in flow:
            pass
    else:

        async def nothing(_: int) -> None:
            pass

        await flow.for_each(nothing)
    beside.cancel()

    gaps = [later - sooner for sooner, later in pairwise(turns)]
    assert 9 <= len({*turns})
    assert max(gaps) <= 21


async def test_an_iterator_of_any_kind_is_read() -> None:
    class ByFuture:
        """Its steps are futures, and it has no ``aclose``."""

        def __init__(self) -> None:
            self.left = 3

        def __aiter__(self) -> ByFuture:
            return self

        def __anext__(self) -> asyncio.Future[int]:
            self.left -= 1
            future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            if self.left < 0:
                raise StopAsyncIteration
            future.set_result(self.left)
            return future

    class ByAwaitable:
        """Its steps have nothing but ``__await__``."""

        def __init__(self) -> None:
            self.left = 3

        def __aiter__(self) -> ByAwaitable:
            return self

        def __anext__(self) -> Step:
            self.left -= 1
            return Step(self.left)

    class Step:
        def __init__(self, value: int) -> None:
            self.value = value

        def __await__(self) -> Generator[Any, None, int]:
            yield
            if self.value < 0:
                raise StopAsyncIteration
            return self.value

    for made in (ByFuture, ByAwaitable):
        assert [2, 1, 0] == await Flow.from_async_iterable(made()).to_list()
        assert [2, 1, 0] == [n async for n in Flow.from_async_iterable(made())]


async def test_elements_that_look_like_what_is_awaited_are_elements() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    items = [None, future, (None,), (), future]

    async def give() -> AsyncIterator[object]:
        for item in items:
            yield item
            await asyncio.sleep(0)

    assert items == await Flow.from_async_iterable(give()).to_list()
    assert items == [item async for item in Flow.from_async_iterable(give())]


async def collected(flow: Flow[Any]) -> list[Any]:
    return [item async for item in flow]


@pytest.mark.parametrize("turns", ["long", "short"])
async def test_a_failure_names_the_element_by_its_place_though_the_source_has_suspended(
    turns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if turns == "short":
        monkeypatch.setattr(budgets, "clock", count(1.0).__next__)

    async def numbers() -> AsyncIterator[int]:
        for n in range(10):
            await asyncio.sleep(0)
            yield n

    for end in ("to_list", "async for"):
        flow = Flow.from_async_iterable(numbers()).map(lambda n: 1 // (7 - n))
        with pytest.raises(ZeroDivisionError) as raised:
            await (flow.to_list() if end == "to_list" else collected(flow))
        assert "on element #7" in raised.value.__notes__[0]


async def test_a_stage_that_holds_elements_lets_go_of_them_when_it_is_left_in_the_middle_of_a_wait() -> None:
    discarded: list[object] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(3):
            yield n
            await asyncio.sleep(0)
        await asyncio.Event().wait()

    recorder = Recorder(UNBOUNDED)
    with hooks.using(on_discard=discarded.append):
        Flow.from_async_iterable(numbers()).buffer(5).subscribe(recorder)
    await idle(20)
    recorder.cancel()
    await idle()

    assert [0, 1, 2] == discarded


async def test_a_generator_that_answers_its_cancel_with_an_element_is_closed() -> None:
    seen: list[str] = []

    async def stubborn() -> AsyncIterator[int]:
        try:
            yield 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield 2
            seen.append("went on")
        finally:
            seen.append("closed")

    async with aclosing(aiter(Flow.from_async_iterable(stubborn()))) as items:
        assert 1 == await anext(items)
        waiting = asyncio.ensure_future(anext(items))
        await idle()
    await asyncio.wait([waiting])

    assert ["closed"] == seen


@pytest.mark.parametrize("pauses", [False, True], ids=["at once", "behind a wait"])
async def test_a_cancelled_error_of_the_cleanup_itself_is_raised_by_the_end(pauses: bool) -> None:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            if pauses:
                await asyncio.sleep(0)
            raise asyncio.CancelledError

    with pytest.raises(SourceCancelledError):
        await Flow.from_async_iterable(numbers).take(1).to_list()


async def test_a_cancelled_error_of_the_cleanup_behind_a_failure_goes_to_the_hook() -> None:
    dropped: list[type[BaseException]] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 0
        finally:
            raise asyncio.CancelledError

    with hooks.using(on_error_dropped=lambda error: dropped.append(type(error))), pytest.raises(ZeroDivisionError):
        await Flow.from_async_iterable(numbers).map(lambda n: 1 // n).to_list()

    assert [SourceCancelledError] == dropped


async def test_a_failure_behind_elements_that_nobody_takes_goes_to_the_hook_and_does_not_fail_the_end() -> None:
    dropped: list[BaseException] = []
    failure = OSError("behind")

    async def numbers() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        yield 5
        yield 6
        raise failure

    # The inner region has a list of what is there without a wait, and by then the source has failed.
    flow = Flow.defer(lambda: Flow.from_async_iterable(numbers())).take_while(lambda n: n < 6)
    with hooks.using(on_error_dropped=dropped.append):
        assert [5] == await flow.to_list()
        await idle()

    assert [failure] == dropped


async def test_a_failure_of_the_cleanup_alone_fails_the_end_though_the_flow_has_all_that_it_wants() -> None:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 5
            yield 6
            await asyncio.Event().wait()
        finally:
            raise OSError("cleanup")

    flow = Flow.defer(lambda: Flow.from_async_iterable(numbers())).take_while(lambda n: n < 6)
    with pytest.raises(OSError, match="cleanup"):
        await flow.to_list()


@pytest.mark.parametrize("length", [14, 100])
async def test_an_iterator_that_swallows_a_cancel_in_the_middle_of_a_list_loses_nothing_and_makes_no_more(
    length: int,
) -> None:
    tasks: list[asyncio.Task[Any] | None] = []
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        tasks.append(asyncio.current_task())
        for n in range(length):
            if n == 12:
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
            made.append(n)
            yield n

    recorder = Recorder(8)
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=20).subscribe(recorder)
    await idle()
    assert tasks[0] is not None
    tasks[0].cancel()
    await idle()
    assert [*range(min(length, 20))] == made

    recorder.request(6)
    await idle()
    assert [*range(14)] == recorder.items
    recorder.cancel()
