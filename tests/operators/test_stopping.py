"""Stopping a service: ``stop`` and ``grace`` of the ends that call a function."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Backoff, Emitter, Flow, hooks, schedulers
from reactive_aio._core.budgets import Budget, Later
from reactive_aio.testing import run_virtual
from tests.grid.points import HERE
from tests.grid.test_blocking import numbers_of
from tests.registry import AnyFlow, Entry, Settings

# -- every operator


@define(eq=False)
class Endless:
    """Sources that give a number each second, for ever; they count what they have given, and note when they are closed."""

    given: list[int] = field(factory=list[int])
    closed: list[bool] = field(factory=list[bool])

    def via(self, flow: AnyFlow) -> AnyFlow:
        return flow if numbers_of(flow) is None else Flow.from_async_iterable(self._give)

    async def _give(self) -> AsyncIterator[int]:
        at = len(self.given)
        self.given.append(0)
        self.closed.append(False)
        try:
            while True:
                await asyncio.sleep(1)
                self.given[at] += 1
                yield self.given[at] - 1
        finally:
            self.closed[at] = True


def finite(given: list[int]) -> Callable[[AnyFlow], AnyFlow]:
    """Have the sources give so many numbers, each of them what it gave before."""
    left = iter(given)

    async def give() -> AsyncIterator[int]:
        for n in range(next(left, 0)):
            await asyncio.sleep(1)
            yield n

    return lambda flow: flow if numbers_of(flow) is None else Flow.from_async_iterable(give)


ELEMENTS = 300


@pytest.mark.parametrize("entry", [entry for entry in HERE if entry.method != "exhaust_map"], ids=str)
def test_a_flow_that_is_stopped_has_done_what_its_sources_have_given(entry: Entry) -> None:
    async def stopped() -> tuple[Endless, list[Any]]:
        endless, taken, stop = Endless(), list[Any](), asyncio.Event()
        asyncio.get_running_loop().call_later(7.5, stop.set)
        await entry.make(ELEMENTS, endless.via, Settings()).for_each(taken.append, stop=stop, grace=10_000)
        return endless, taken

    async def ended(given: list[int]) -> list[Any]:
        return await entry.make(ELEMENTS, finite(given), Settings()).to_list()

    endless, taken = run_virtual(stopped())

    assert all(endless.closed)
    if entry.method not in GO_ON:
        assert run_virtual(ended(endless.given)) == taken


GO_ON = {
    "never",  # waits for ever where it is not stopped
    "on_error_return",  # begins with a failing flow when the endless one has ended, and not any more when it is stopped
    "on_error_complete",
}
"""Operators that have no end of their own in this test, or another one."""


# -- each kind of source


async def served(flow: AnyFlow, at: int) -> list[Any]:
    """Return the elements that a service takes if it is stopped at a certain one."""
    taken, stop = list[Any](), asyncio.Event()

    async def work(item: Any) -> None:
        taken.append(item)
        if len(taken) == at:
            stop.set()
            await asyncio.sleep(1)

    await flow.for_each(work, stop=stop)
    return taken


def endless() -> Iterator[int]:
    n = 0
    while True:
        yield n
        n += 1


async def endless_async() -> AsyncIterator[int]:
    for n in endless():
        await asyncio.sleep(0.25)
        yield n


@pytest.mark.parametrize(
    "flow",
    [
        Flow.from_iterable(endless),
        Flow.from_async_iterable(endless_async),
        Flow.interval(0.25),
        Flow.range(10**9),
        Flow.range(3).repeat(),
        Flow.range(3).repeat_when(lambda run, count: asyncio.sleep(0.25, True)),
        Flow.defer(lambda: Flow.interval(0.25)),
        Flow.using(lambda: nullcontext(0.25), Flow.interval),
        Flow.interval(0.25).retry(),
        Flow.merge(Flow.interval(0.25), Flow.never()),
        Flow.interval(0.25).take_until_other(Flow.never()),
        Flow.empty().switch_if_empty(Flow.interval(0.25)),
        Flow.error(OSError).on_error_resume_next(lambda error: Flow.interval(0.25)),
        Flow.never().timeout(1, fallback=Flow.interval(0.25)),
        Flow.of(1).switch_map(lambda _: Flow.interval(0.25)),
        Flow.interval(0.25).share(),
    ],
    ids=repr,
)
def test_a_source_without_an_end_gives_nothing_more(flow: AnyFlow) -> None:
    assert 5 == len(run_virtual(served(flow, at=5)))


def test_an_iterator_is_closed_where_it_has_been_left() -> None:
    closed: list[str] = []

    class Numbers(Iterator[int]):
        def __next__(self) -> int:
            return 1

        def close(self) -> None:
            closed.append("closed")

    run_virtual(served(Flow.from_iterable(Numbers), at=3))

    assert ["closed"] == closed


def test_a_flow_made_of_an_element_is_finished() -> None:
    async def three(n: int) -> AsyncIterator[int]:
        for part in range(3):
            await asyncio.sleep(0.25)
            yield 10 * n + part

    flow = Flow.interval(10).flat_map(lambda n: Flow.from_async_iterable(lambda: three(n)))

    assert [0, 1, 2, 10, 11, 12] == run_virtual(served(flow, at=4))


def test_what_waits_for_a_callback_s_flow_is_done() -> None:
    emitters: list[Emitter[int]] = []
    undone: list[bool] = []

    def register(emitter: Emitter[int]) -> Callable[[], None]:
        emitters.append(emitter)
        for n in range(5):
            emitter.next(n)
        return lambda: undone.append(True)

    taken = run_virtual(served(Flow.from_callback(register, max_size=10), at=2))

    assert [0, 1, 2, 3, 4] == taken
    assert [True] == undone
    assert emitters[0].next(5) is False


def test_what_is_under_way_is_done() -> None:
    """Elements are in a buffer, are awaited, and wait at a boundary."""
    given: list[int] = []
    closed: list[bool] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for n in endless():
                given.append(n)
                yield n
                await asyncio.sleep(0.1)
        finally:
            closed.append(True)

    async def doubled(n: int) -> int:
        await asyncio.sleep(1)
        return 2 * n

    flow = Flow.from_async_iterable(numbers).map_async(doubled, max_concurrency=3)
    flow = flow.publish_on(schedulers.current(), prefetch=4).buffer(4)
    taken = run_virtual(served(flow, at=3))

    assert [2 * n for n in given] == [n for items in taken for n in items]
    assert [True] == closed


async def test_sources_on_threads_are_told_too() -> None:
    told = threading.Event()

    def numbers() -> Iterator[int]:
        try:
            yield from endless()
        finally:
            told.set()

    flow = Flow.from_iterable(numbers).subscribe_on(schedulers.thread("numbers"))
    taken = await served(flow, at=10)

    assert list(range(len(taken))) == taken
    assert told.is_set()


# -- the ends


def test_the_last_batch_of_a_service_that_stops_has_what_is_left() -> None:
    async def main() -> list[list[int]]:
        batches, stop = list[list[int]](), asyncio.Event()
        asyncio.get_running_loop().call_later(3.1, stop.set)
        await Flow.interval(0.5).for_each_batch(batches.append, 4, stop=stop)
        return batches

    assert [[0, 1, 2, 3], [4, 5]] == run_virtual(main())


def test_an_ordinary_function_and_several_at_a_time_stop_as_well() -> None:
    async def main() -> tuple[list[int], list[int]]:
        plain, several = list[int](), list[int]()

        async def work(n: int) -> None:
            await asyncio.sleep(1.6)
            several.append(n)

        await Flow.interval(1).for_each(plain.append, stop=lambda: asyncio.sleep(3.5))
        await Flow.interval(1).for_each(work, max_concurrency=4, stop=lambda: asyncio.sleep(3.5))
        return plain, several

    plain, several = run_virtual(main())
    assert plain == several == [0, 1, 2]


def test_a_stop_that_comes_before_the_flow_has_it_end_without_an_element() -> None:
    async def main() -> list[int]:
        taken, stop = list[int](), asyncio.Event()
        stop.set()
        await asyncio.sleep(0)
        await Flow.interval(1).for_each(taken.append, stop=stop)
        return taken

    assert [] == run_virtual(main())


def test_a_flow_that_ends_by_itself_leaves_nobody_waiting_for_the_stop() -> None:
    async def main() -> int:
        await Flow.range(3).for_each(lambda n: None, stop=asyncio.Event())
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert 1 == run_virtual(main())


@define(eq=False)
class Watched:
    """A condition that never holds, and takes a second to clean up."""

    error: BaseException | None = None
    log: list[str] = field(factory=list[str])

    async def __call__(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            self.log.append("cleaned")
            if self.error is not None:
                raise self.error


def test_the_cleanup_of_the_condition_has_ended_when_the_end_does() -> None:
    async def main() -> tuple[list[str], int]:
        watched = Watched()
        await Flow.interval(1).take(1).for_each(print, stop=watched)
        return watched.log, len(asyncio.all_tasks())

    assert (["cleaned"], 1) == run_virtual(main())


def test_a_cancel_waits_for_the_cleanup_of_the_condition_and_the_hook_gets_what_it_raises() -> None:
    async def main() -> None:
        dropped = list[BaseException]()
        watched = Watched(OSError("watch"))
        with hooks.using(on_error_dropped=dropped.append):
            task = asyncio.create_task(Flow.never().for_each(print, stop=watched))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.sleep(0.5)
            task.cancel()
            await asyncio.wait((task,))
        assert task.cancelled()
        assert ["cleaned"] == watched.log
        assert [watched.error] == dropped

    run_virtual(main())


@pytest.mark.parametrize("error", [OSError("watch"), SystemExit(3)], ids=repr)
def test_an_exception_of_the_cleanup_of_the_condition_is_raised(error: BaseException) -> None:
    async def main() -> None:
        await Flow.interval(1).take(1).for_each(print, stop=Watched(error))

    with pytest.raises(type(error)) as found:
        run_virtual(main())
    assert error is found.value


def test_an_exception_of_the_condition_beside_a_failure_of_the_flow_is_a_note_and_goes_to_the_hook() -> None:
    async def main() -> None:
        dropped = list[BaseException]()
        watched = Watched(OSError("watch"))
        with hooks.using(on_error_dropped=dropped.append), pytest.raises(LookupError) as found:
            await Flow.error(LookupError("flow")).delay(1).for_each(print, stop=watched)
        assert ["a further failure: OSError: watch"] == found.value.__notes__[-1:]
        assert [watched.error] == dropped

    run_virtual(main())


def test_an_awaitable_that_nobody_has_come_to_await_is_closed() -> None:
    async def main() -> None:
        await Flow.range(3).for_each(lambda n: None, stop=asyncio.sleep(3600))

    run_virtual(main())
    gc.collect()


def test_what_is_not_done_within_the_grace_is_cancelled_and_said() -> None:
    cleaned: list[str] = []

    async def work(n: int) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.append("work")

    async def main() -> float:
        with pytest.raises(TimeoutError, match=r"for_each\(\) was still at work 5 s after the signal to stop"):
            await Flow.interval(1).for_each(work, stop=lambda: asyncio.sleep(2), grace=5)
        return asyncio.get_running_loop().time()

    assert 7 == pytest.approx(run_virtual(main()), abs=0.01)
    assert ["work"] == cleaned


def test_a_timeout_of_the_function_is_its_own() -> None:
    async def work(n: int) -> None:
        raise TimeoutError("its own")

    async def main() -> None:
        await Flow.range(3).for_each(work, stop=asyncio.Event())

    with pytest.raises(TimeoutError, match="its own"):
        run_virtual(main())


@pytest.mark.parametrize("error", [OSError("no signal"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_an_exception_of_the_stop_stops_the_flow_and_is_raised(error: BaseException) -> None:
    taken: list[int] = []

    async def stop() -> None:
        await asyncio.sleep(2.5)
        raise error

    async def main() -> None:
        with pytest.raises(type(error)) as found:
            await Flow.interval(1).for_each(taken.append, stop=stop)
        assert error is found.value

    run_virtual(main())
    assert [0, 1] == taken


def test_a_cancel_is_a_cancel_with_a_stop_too() -> None:
    async def main() -> bool:
        task = asyncio.create_task(Flow.never().for_each(print, stop=asyncio.Event()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait((task,))
        await asyncio.sleep(0)
        return task.cancelled() and len(asyncio.all_tasks()) == 1

    assert run_virtual(main())


async def test_what_can_t_say_when_to_stop_is_refused() -> None:
    with pytest.raises(TypeError, match=r"stop is an asyncio\.Event, an async function or an awaitable, not int"):
        await Flow.range(3).for_each(print, stop=3)
    with pytest.raises(ValueError, match="grace"):
        await Flow.range(3).for_each(print, stop=asyncio.Event(), grace=-1)


@pytest.mark.costly
async def test_a_service_that_reconnects_keeps_nothing_of_what_it_has_left() -> None:
    """The stop knows of the callbacks that are registered, and not of those that were."""
    seen: list[int] = []

    def register(emitter: Emitter[int]) -> None:
        emitter.next(1)
        emitter.error(OSError("gone"))
        gc.collect()
        seen.append(sum(type(each) is type(emitter) for each in gc.get_objects()))

    with pytest.raises(OSError, match="gone"):
        await Flow.from_callback(register, max_size=2).retry(6).for_each(print, stop=asyncio.Event())
    assert max(seen) < 5


# -- a combinator that waits


def refuse(attempts: list[float]) -> Any:
    attempts.append(asyncio.get_running_loop().time())
    raise ConnectionError("down")


def refused(attempts: list[float]) -> Iterator[int]:
    yield refuse(attempts)


async def never(*_: object) -> bool:
    await asyncio.Event().wait()
    return True


WAITING: dict[str, Callable[[list[float]], AnyFlow]] = {
    "retry of a call": lambda attempts: Flow.from_callable(lambda: refuse(attempts)).retry(Backoff(60)),
    "retry of a generator": lambda attempts: Flow.from_iterable(lambda: refused(attempts)).retry(Backoff(60)),
    "retry of callbacks": lambda attempts: Flow.from_callback(lambda _: refuse(attempts)).retry(Backoff(60)),
    "retry that resumes": lambda attempts: (
        Flow.of(1).concat(Flow.defer(lambda: refuse(attempts))).retry(Backoff(60), resume=Flow.of)
    ),
    "retry_when": lambda attempts: Flow.from_callable(lambda: refuse(attempts)).retry_when(never),
    "repeat_when": lambda attempts: Flow.of(1).repeat_when(never),
    "delay_subscription": lambda attempts: Flow.from_callable(lambda: refuse(attempts)).delay_subscription(60),
    "with_latest_from": lambda attempts: Flow.range(9).with_latest_from(Flow.never()),
    "rate_limit": lambda attempts: Flow.range(9).rate_limit(1, 60),
    "retry behind a merge": lambda attempts: Flow.of(1).merge(
        Flow.from_callable(lambda: refuse(attempts)).retry(Backoff(60))
    ),
    "retry on a thread": lambda attempts: (
        Flow.from_callable(lambda: refuse(attempts)).retry(Backoff(60)).publish_on(schedulers.current())
    ),
}


@pytest.mark.parametrize("name", WAITING)
def test_a_wait_ends_at_a_stop(name: str) -> None:
    attempts: list[float] = []

    async def main() -> float:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(1, stop.set)
        await WAITING[name](attempts).for_each(lambda _: None, stop=stop)
        return loop.time()

    assert run_virtual(main()) == 1
    assert all(at <= 1 for at in attempts)


def test_no_attempt_begins_after_a_stop() -> None:
    attempts: list[float] = []

    async def main() -> None:
        stop = asyncio.Event()

        async def fail_late() -> int:
            attempts.append(asyncio.get_running_loop().time())
            await asyncio.sleep(5)
            raise ConnectionError("down")

        asyncio.get_running_loop().call_later(1, stop.set)
        source = Flow.of(1).map_async(lambda _: fail_late())
        for again in (source.retry(9), source.retry_if(lambda *_: True), source.retry(Backoff(3))):
            await again.for_each(lambda _: None, stop=stop)

    run_virtual(main())
    assert len(attempts) == 1


async def test_a_flow_whose_stop_is_set_already_emits_nothing_even_if_a_turn_is_due() -> None:
    async def same(n: int) -> int:
        return n

    stop, seen = asyncio.Event(), list[int]()
    stop.set()
    Budget.of(asyncio.get_running_loop()).add(Later(lambda _: None, copy_context()))

    await Flow.of(1, 2, 3).map_async(same).for_each(seen.append, stop=stop)

    assert seen == []


@pytest.mark.parametrize("given_up", [lambda flow: flow.retry_if(lambda *_: False), lambda flow: flow.retry(0)])
def test_a_failure_after_a_stop_that_is_not_tried_again_is_raised(given_up: Callable[[AnyFlow], AnyFlow]) -> None:
    async def main() -> None:
        stop = asyncio.Event()

        async def fail_late(n: int) -> int:
            await asyncio.sleep(5)
            if n:
                raise ConnectionError("down")
            return n

        asyncio.get_running_loop().call_later(1, stop.set)
        flow = given_up(Flow.of(0, 0, 0, 1).map_async(fail_late)).publish_on(schedulers.current(), prefetch=8)
        await flow.for_each(lambda _: asyncio.sleep(3), stop=stop)

    with pytest.raises(ConnectionError, match="down"):
        run_virtual(main())
