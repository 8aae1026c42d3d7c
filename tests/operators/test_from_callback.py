"""from_callback: what comes by callbacks, from any thread, whether it is wanted or not."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import BackpressureOverflowError, Emitter, Flow, OverflowSnapshot, hooks, schedulers
from tests.subscribers import Recorder, idle


@define
class Bell:
    """Something that can be listened to, and rung from anywhere."""

    emitters: list[Emitter[Any]] = field(factory=list)
    left: int = 0

    def listen(self, emitter: Emitter[Any]) -> Callable[[], None]:
        self.emitters.append(emitter)
        return self.leave

    def leave(self) -> None:
        self.left += 1

    def ring(self, *items: Any) -> list[bool]:
        return [self.emitters[-1].next(item) for item in items]


async def subscribed(bell: Bell, request: int = 0, **options: Any) -> Recorder:
    recorder = Recorder(request)
    Flow.from_callback(bell.listen, **options).subscribe(recorder)
    await idle()
    return recorder


async def test_elements_come_under_demand_and_wait_for_it() -> None:
    bell = Bell()
    recorder = await subscribed(bell)

    assert [True, True, True] == bell.ring("a", "b", "c")
    await idle()
    assert [] == recorder.items

    recorder.request(2)
    await idle()
    assert ["a", "b"] == recorder.items
    recorder.request(2)
    await idle()
    bell.ring("d", "e")
    await idle()
    assert ["a", "b", "c", "d"] == recorder.items


async def test_each_subscription_registers_and_unregisters_by_itself() -> None:
    bell = Bell()
    first, second = await subscribed(bell, 9), await subscribed(bell, 9)
    assert 2 == len(bell.emitters)

    first.cancel()
    await idle()
    assert 1 == bell.left
    bell.ring("a")
    bell.emitters[-1].complete()
    await idle()

    assert ["subscribe", "next", "complete"] == second.kinds
    assert 2 == bell.left


@pytest.mark.parametrize("end", ["complete", "error"])
async def test_the_end_stays_behind_what_waits(end: str) -> None:
    bell = Bell()
    recorder = await subscribed(bell)
    bell.ring("a")
    if end == "complete":
        bell.emitters[0].complete()
    else:
        bell.emitters[0].error(OSError("down"))
    await idle()
    assert ["subscribe"] == recorder.kinds

    recorder.request(1)
    await idle()
    assert ["subscribe", "next", end] == recorder.kinds
    assert 1 == bell.left


async def test_without_room_the_flow_fails_by_default() -> None:
    bell, discarded = Bell(), list[Any]()
    with hooks.using(on_discard=discarded.append):
        recorder = await subscribed(bell, max_size=2)

    assert [True, True, False, False] == bell.ring("a", "b", "c", "d")
    assert ["c", "d"] == discarded
    recorder.request(9)
    await idle()

    assert ["a", "b"] == recorder.items
    assert isinstance(recorder.error, BackpressureOverflowError)
    assert "came when 2 were waiting" in str(recorder.error)
    assert "from_callback(listen, 2, 'error'), chained at" in str(recorder.error)


@pytest.mark.parametrize(
    ("overflow", "taken", "given", "lost"),
    [("drop_latest", [True, True, False, False], [1, 2], [3, 4]), ("drop_oldest", [True] * 4, [3, 4], [1, 2])],
)
async def test_or_drops(overflow: Any, taken: Any, given: Any, lost: Any) -> None:
    bell, discarded = Bell(), list[Any]()
    with hooks.using(on_discard=discarded.append):
        recorder = await subscribed(bell, max_size=2, overflow=overflow)

    assert taken == bell.ring(1, 2, 3, 4)
    assert lost == discarded
    recorder.request(9)
    await idle()

    assert given == recorder.items


async def test_equal_elements_that_push_each_other_out_count_as_taken() -> None:
    bell = Bell()
    await subscribed(bell, max_size=1, overflow="drop_oldest")

    assert [True, True] == bell.ring("same", "same")


async def test_what_comes_after_the_end_is_discarded_and_errors_are_dropped_by_the_hook() -> None:
    bell, discarded, dropped = Bell(), list[Any](), list[Any]()
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        recorder = await subscribed(bell, 9)
    bell.emitters[0].complete()
    late = OSError("late")

    assert [False] == bell.ring("late")
    bell.emitters[0].error(late)
    bell.emitters[0].complete()
    await idle()

    assert ["subscribe", "complete"] == recorder.kinds
    assert ["late"] == discarded
    assert [late] == dropped


async def test_what_waits_when_it_is_cancelled_is_discarded_and_a_failure_does_not_vanish() -> None:
    bell, discarded, dropped = Bell(), list[Any](), list[Any]()
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        recorder = await subscribed(bell)
    failure = OSError("down")
    bell.ring("a")
    bell.emitters[0].error(failure)
    recorder.cancel()
    await idle()

    assert (["a"], [failure]) == (discarded, dropped)


async def test_an_exception_of_register_fails_the_flow() -> None:
    def register(_: Emitter[int]) -> None:
        raise OSError("no bell")

    with pytest.raises(OSError, match="no bell"):
        await Flow.from_callback(register).to_list()


async def test_an_emitter_that_was_handed_over_before_that_takes_nothing() -> None:
    handed: list[Emitter[str]] = []

    def register(emitter: Emitter[str]) -> None:
        handed.append(emitter)
        raise OSError("no bell")

    with pytest.raises(OSError, match="no bell"):
        await Flow.from_callback(register).to_list()

    assert not handed[0].next("ring")


async def test_an_exception_of_unregistering_fails_a_flow_that_had_completed() -> None:
    def register(emitter: Emitter[int]) -> Callable[[], None]:
        emitter.next(1)
        emitter.complete()

        def leave() -> None:
            raise OSError("still ringing")

        return leave

    with pytest.raises(OSError, match="still ringing"):
        await Flow.from_callback(register).to_list()


# -- what is awaited


@define(eq=False)
class Door(Bell):
    """A bell that takes time to listen to, and to leave."""

    opened: asyncio.Event = field(factory=asyncio.Event)
    closed: asyncio.Event = field(factory=asyncio.Event)
    seen: list[tuple[object, str]] = field(factory=list[tuple[object, str]])
    log: list[str] = field(factory=list[str])

    async def enter(self, emitter: Emitter[Any]) -> Callable[[], Any]:
        self.emitters.append(emitter)
        self._seen("entering")
        await self.opened.wait()
        USER.set("guest")
        self.seen.clear()
        self._seen("entered")
        return self.go

    async def go(self) -> None:
        self._seen("going")
        await self.closed.wait()
        self._seen("gone")

    def _seen(self, what: str) -> None:
        self.log.append(what)
        self.seen.append((asyncio.current_task(), USER.get()))


USER: ContextVar[str] = ContextVar("user", default="nobody")


async def test_an_awaited_registration_and_what_undoes_it_have_one_task_and_one_context() -> None:
    door, recorder = Door(), Recorder(9)
    Flow.from_callback(door.enter).subscribe(recorder)
    await idle()
    door.ring("early")
    door.opened.set()
    await idle()
    door.ring("later")
    door.emitters[0].complete()
    await idle()
    assert ["early", "later"] == recorder.items
    assert not recorder.over.is_set()
    door.closed.set()
    await recorder.over.wait()

    assert "complete" == recorder.kinds[-1]
    assert ["entering", "entered", "going", "gone"] == door.log
    ((task, user),) = set(door.seen)
    assert task is not None
    assert "guest" == user
    assert "nobody" == USER.get()


async def test_a_terminal_that_is_cancelled_returns_when_what_undoes_it_has_been_awaited() -> None:
    door = Door()
    door.opened.set()
    task = asyncio.ensure_future(Flow.from_callback(door.enter).to_list())
    await idle()
    task.cancel()
    await idle()
    assert ["entering", "entered", "going"] == door.log
    assert not task.done()
    assert [False] == door.ring("late")
    door.closed.set()
    with suppress(asyncio.CancelledError):
        await task

    assert "gone" == door.log[-1]


async def test_a_registration_that_is_awaited_still_is_cancelled() -> None:
    door = Door()
    task = asyncio.ensure_future(Flow.from_callback(door.enter).to_list())
    await idle()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    assert task.cancelled()
    assert ["entering"] == door.log


async def test_a_flow_that_completes_before_it_has_registered_is_undone_all_the_same() -> None:
    door = Door()
    task = asyncio.ensure_future(Flow.from_callback(door.enter).to_list())
    await idle()
    door.ring(1)
    door.emitters[0].complete()
    await idle()
    assert not task.done()
    door.opened.set()
    door.closed.set()

    assert [1] == await task
    assert "gone" == door.log[-1]


async def test_a_registration_that_fails_fails_the_flow_at_once() -> None:
    handed, discarded = list[Emitter[int]](), list[Any]()

    async def register(emitter: Emitter[int]) -> None:
        handed.append(emitter)
        emitter.next(1)
        await asyncio.sleep(0)
        raise OSError("no bell")

    recorder = Recorder()
    with hooks.using(on_discard=discarded.append):
        Flow.from_callback(register).subscribe(recorder)
        await recorder.over.wait()

    assert "no bell" == str(recorder.error)
    assert [1] == discarded
    assert not handed[0].next(2)


@pytest.mark.parametrize("awaited", [False, True])
async def test_an_async_function_that_undoes_it_is_awaited_before_the_end(awaited: bool) -> None:
    log: list[str] = []

    async def leave() -> None:
        await asyncio.sleep(0)
        log.append("left")
        raise OSError("still ringing")

    def register(emitter: Emitter[int]) -> Callable[[], Any]:
        emitter.next(1)
        return leave

    async def register_later(emitter: Emitter[int]) -> Callable[[], Any]:
        return register(emitter)

    flow = Flow.from_callback(register_later if awaited else register)
    with pytest.raises(OSError, match="still ringing"):
        await flow.take(1).to_list()

    assert ["left"] == log


async def test_its_exception_behind_a_failure_is_noted_on_that() -> None:
    dropped: list[BaseException] = []

    async def leave() -> None:
        raise KeyError("second")

    def register(emitter: Emitter[int]) -> Callable[[], Any]:
        emitter.error(OSError("first"))
        return leave

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(OSError, match="first") as caught:
        await Flow.from_callback(register).to_list()

    place, further = caught.value.__notes__
    assert place.startswith("in from_callback(register, 256, 'error'), chained at ")
    assert further == "a further failure: KeyError: 'second'"
    assert ["KeyError('second')"] == [repr(error) for error in dropped]


@pytest.mark.parametrize("given", [3, asyncio.sleep], ids=["int", "coroutine"])
async def test_what_undoes_nothing_is_refused(given: Any) -> None:
    handed: list[Emitter[int]] = []

    def register(emitter: Emitter[int]) -> Any:
        handed.append(emitter)
        return given(0) if callable(given) else given

    with pytest.raises(TypeError, match=r"register must return None or a function that undoes it, not (int|coroutine)"):
        await Flow.from_callback(register).to_list()

    assert not handed[0].next(1)


# -- what is refused


async def test_an_argument_that_is_no_exception_is_refused_where_it_is_handed_over() -> None:
    bell = Bell()
    await subscribed(bell)

    with pytest.raises(TypeError, match=r"error\(\) takes an exception, not str"):
        bell.emitters[0].error("down")


async def test_register_and_unregister_run_in_the_context_of_the_subscriber() -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")
    seen: list[str] = []

    def register(emitter: Emitter[int]) -> Callable[[], None]:
        seen.append(user.get())
        user.set("changed")
        emitter.complete()
        return lambda: seen.append(user.get())

    user.set("subscriber")
    await Flow.from_callback(register).to_list()

    assert ["subscriber", "subscriber"] == seen
    assert "subscriber" == user.get()


async def test_a_snapshot_shows_what_waits_and_counts_what_was_dropped() -> None:
    bell = Bell()
    async with Flow.from_callback(bell.listen, max_size=3, overflow="drop_oldest").open() as items:
        await idle()
        bell.ring(*range(10))
        assert OverflowSnapshot(size=3, buffered=3, dropped=7) == items.snapshot().regions[0].overflow
        assert 7 == await anext(items)
        assert 7 == items.snapshot().dropped


async def test_threads_may_emit_all_at_once_and_each_keeps_its_order() -> None:
    threads, each = 8, 500

    def register(emitter: Emitter[tuple[int, int]]) -> Callable[[], None]:
        left = threading.Semaphore(0)

        def run(thread: int) -> None:
            for n in range(each):
                assert emitter.next((thread, n))
            left.release()

        def finish() -> None:
            for _ in range(threads):
                left.acquire()
            emitter.complete()

        running = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
        running.append(threading.Thread(target=finish))
        for thread in running:
            thread.start()

        def join() -> None:
            for thread in running:
                thread.join()

        return join

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        items = await Flow.from_callback(register, max_size=threads * each).to_list()
    finally:
        sys.setswitchinterval(interval)

    assert threads * each == len(items)
    for thread in range(threads):
        assert list(range(each)) == [n for emitter, n in items if emitter == thread]


async def test_every_element_of_a_thread_that_is_too_fast_is_given_or_discarded() -> None:
    discarded: list[int] = []

    def register(emitter: Emitter[int]) -> Callable[[], None]:
        def run() -> None:
            for n in range(20_000):
                emitter.next(n)
            emitter.complete()

        thread = threading.Thread(target=run)
        thread.start()
        return thread.join

    flow = Flow.from_callback(register, max_size=10, overflow="drop_latest").publish_on(
        schedulers.current(), prefetch=4
    )
    with hooks.using(on_discard=discarded.append):
        async with flow.open() as items:
            given = [n async for n in items]
            dropped = items.snapshot().dropped

    assert given == sorted(given)
    assert dropped == len(discarded)
    assert list(range(20_000)) == sorted([*given, *discarded])


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Flow.from_callback(3), TypeError, "takes a function, not int"),
        (lambda: Flow.from_callback(print, max_size=0), ValueError, "size must be at least 1"),
        (lambda: Flow.from_callback(print, overflow="block"), ValueError, "choose one of"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("call", ["next", "error", "complete"])
async def test_a_finalizer_may_call_the_emitter_in_the_middle_of_another_call(call: str) -> None:
    emitters: list[Emitter[int]] = []

    class Gone(int):
        """Calls the emitter when it goes, which is in the middle of a call that drops it."""

        def __del__(self) -> None:
            getattr(emitters[0], call)(*{"next": [2], "error": [OSError("gone")], "complete": []}[call])

    flow = Flow.from_callback(emitters.append, max_size=1, overflow="drop_oldest")
    end = asyncio.ensure_future(flow.materialize().to_list())
    await idle()
    emission: Any = emitters[0]
    with emission._mutex:  # as in the middle of a call, where any allocation may collect garbage
        Gone(1)
    if call == "next":
        emitters[0].complete()

    told = str(await end)
    assert {"next": "Next(item=2)", "error": "gone", "complete": "Completed()"}[call] in told


async def test_an_async_function_that_is_cancelled_before_it_begins_to_undo_leaves_no_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    loop, here, cancelled = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()

    def cancel_all_others() -> None:
        for task in asyncio.all_tasks() - {here}:
            task.cancel()
        cancelled.set()

    def undo() -> Coroutine[Any, Any, None]:
        loop.call_soon(cancel_all_others)
        return asyncio.sleep(0)

    def register(emitter: Emitter[int]) -> Callable[[], Any]:
        return undo

    recorder = Recorder()
    Flow.from_callback(register).subscribe(recorder)
    await idle()
    recorder.cancel()
    await cancelled.wait()
    await idle()
    gc.collect()

    assert [] == list(recwarn)
