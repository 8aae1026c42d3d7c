"""The promises for async iterators hold for each way in which the engine reads one.

An awaited end runs the flow in the owner's task. A combinator reads an iterator without steps, or with stateless ones, by a
subscription of its own kind, and one with other steps through a region. A subscriber and ``async for`` have a region as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from random import Random
from typing import Any

import anyio
import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio._core import budgets
from tests.subscribers import Recorder, idle

Read = Callable[[Flow[Any]], Awaitable[list[Any]]]


async def ended(flow: Flow[Any]) -> list[Any]:
    return await flow.to_list()


async def mapped(flow: Flow[Any]) -> list[Any]:
    return await flow.map(lambda item: item).to_list()


async def merged(flow: Flow[Any]) -> list[Any]:
    return await flow.merge(Flow.empty()).to_list()


async def concatenated(flow: Flow[Any]) -> list[Any]:
    return await Flow.of(0).concat_map(lambda _: flow).to_list()


async def flattened(flow: Flow[Any]) -> list[Any]:
    return await Flow.of(0).flat_map(lambda _: flow, prefetch=2).to_list()


async def flattened_behind_a_step(flow: Flow[Any]) -> list[Any]:
    return await Flow.of(0).flat_map(lambda _: flow.map(lambda item: item)).to_list()


async def flattened_behind_a_state(flow: Flow[Any]) -> list[Any]:
    return await Flow.of(0).flat_map(lambda _: flow.skip(0)).to_list()


async def iterated(flow: Flow[Any]) -> list[Any]:
    async with flow.open() as items:
        return [item async for item in items]


async def subscribed(flow: Flow[Any]) -> list[Any]:
    recorder = Recorder(UNBOUNDED)
    over = asyncio.get_running_loop().create_future()
    flow.do_finally(lambda *_: over.done() or over.set_result(None)).subscribe(recorder)
    try:
        await over
    finally:
        recorder.cancel()
        await idle()
    if "error" in recorder.kinds:
        raise recorder.error
    return recorder.items


READS: dict[str, Read] = {
    each.__name__: each
    for each in (
        ended,
        mapped,
        merged,
        concatenated,
        flattened,
        flattened_behind_a_step,
        flattened_behind_a_state,
        iterated,
        subscribed,
    )
}
AWAITED = {name: read for name, read in READS.items() if name != "subscribed"}
"""Those whose end raises what the cleanup raises."""


def each(reads: dict[str, Read] = READS) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("read", reads.values(), ids=reads)


def cancel_all_others() -> None:
    """Cancel all tasks but the current one, as `asyncio.run` does when it ends."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@each()
@pytest.mark.parametrize("pauses", [False, True], ids=["ready", "suspended"])
async def test_all_elements_come_in_order(read: Read, pauses: bool) -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(300):
            if pauses:
                await asyncio.sleep(0)
            yield n

    assert [*range(300)] == await read(Flow.from_async_iterable(numbers()))


@each()
async def test_an_iterator_has_a_task_and_a_context_of_its_own_from_the_first_step_to_its_cleanup(read: Read) -> None:
    var = ContextVar[str]("var", default="outer")
    seen: list[tuple[object, str]] = []

    def look() -> None:
        seen.append((asyncio.current_task(), var.get()))

    async def numbers() -> AsyncIterator[int]:
        look()
        var.set("inner")
        try:
            for n in range(5):
                await asyncio.sleep(0)
                look()
                yield n
        finally:
            look()

    await read(Flow.from_async_iterable(numbers()))

    (first, before), *others = seen
    assert "outer" == before
    assert [(first, "inner")] * 6 == others
    assert asyncio.current_task() is not first
    assert "outer" == var.get()


@each()
@pytest.mark.parametrize("scope", ["asyncio", "anyio"])
async def test_a_timeout_of_the_iterator_around_its_yields_is_its_own(read: Read, scope: str) -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        if scope == "anyio":
            with anyio.move_on_after(0.01):
                yield 2
                await asyncio.Event().wait()
        else:
            try:
                async with asyncio.timeout(0.01):
                    yield 2
                    await asyncio.Event().wait()
            except TimeoutError:
                pass
        yield 3

    assert [1, 2, 3] == await read(Flow.from_async_iterable(numbers()))


@pytest.mark.parametrize("steps", ["none", "concat_map", "flat_map", "map"])
async def test_a_scope_that_is_cancelled_behind_an_element_ends_the_next_wait_for_a_turn(steps: str) -> None:
    async def numbers() -> AsyncIterator[int]:
        with anyio.CancelScope() as scope:
            yield 1
            scope.cancel()
            await anyio.sleep(0)
            yield 2
        yield 3

    async def take(item: int) -> None:
        for _ in range(5):
            await asyncio.sleep(0)  # by then the owner waits for demand
        taken.append(item)

    flow = Flow.from_async_iterable(numbers)
    flows = {
        "none": flow,
        "concat_map": Flow.of(0).concat_map(lambda _: flow),
        "flat_map": Flow.of(0).flat_map(lambda _: flow, prefetch=1),
        "map": flow.map(lambda n: n),
    }
    taken: list[int] = []
    await flows[steps].for_each(take)
    assert [1, 3] == taken


@each(AWAITED)
@pytest.mark.parametrize("turns", range(9))
async def test_cancelled_at_any_turn_the_end_waits_for_the_cleanup(read: Read, turns: int) -> None:
    effects: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        effects.append("begun")
        try:
            while True:
                await asyncio.sleep(0)
                yield 1
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            effects.append("cleaned up")

    task = asyncio.ensure_future(read(Flow.from_async_iterable(numbers())))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert effects in ([], ["begun", "cleaned up"])


@each(AWAITED)
async def test_a_second_cancel_does_not_cut_the_cleanup_short(read: Read) -> None:
    cleaned = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            cleaned.set()

    task = asyncio.ensure_future(read(Flow.from_async_iterable(numbers())))
    await idle()
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert cleaned.is_set()


@each()
async def test_a_cancel_of_all_tasks_while_it_closes_is_not_reported(read: Read) -> None:
    closing, dropped = asyncio.Event(), list[BaseException]()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closing.set()
            await asyncio.Event().wait()

    with hooks.using(on_error_dropped=dropped.append):
        reading = asyncio.ensure_future(read(Flow.from_async_iterable(numbers()).take(1)))
        await closing.wait()
        cancel_all_others()
        await asyncio.wait([reading])
    await idle()

    assert [] == dropped


@each()
async def test_a_cancel_of_all_tasks_while_it_closes_behind_a_cancel_is_not_reported(read: Read) -> None:
    closing, dropped = asyncio.Event(), list[BaseException]()

    class Numbers:
        def __aiter__(self) -> Numbers:
            return self

        async def __anext__(self) -> int:
            await asyncio.Event().wait()
            return 1

        async def aclose(self) -> None:
            closing.set()
            await asyncio.Event().wait()

    with hooks.using(on_error_dropped=dropped.append):
        reading = asyncio.ensure_future(read(Flow.from_async_iterable(Numbers())))
        await idle()
        reading.cancel()
        await closing.wait()
        cancel_all_others()
        await asyncio.wait([reading])
    await idle()

    assert [] == dropped


@each()
async def test_a_cancel_that_the_iterator_takes_back_is_not_counted(read: Read) -> None:
    async def counts() -> AsyncIterator[int]:
        task = asyncio.current_task()
        assert task is not None
        yield 0
        task.cancel()
        task.uncancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # before Python 3.13 the cancel comes here all the same
        yield task.cancelling()

    assert [0, 0] == await read(Flow.from_async_iterable(counts()))


@each()
async def test_a_failure_comes_behind_the_elements_before_it(read: Read) -> None:
    given: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        yield 2
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await read(Flow.from_async_iterable(numbers()).do_on_next(given.append))

    assert [1, 2] == given


@each(AWAITED)
@pytest.mark.parametrize("pauses", [False, True], ids=["at once", "behind a wait"])
async def test_the_end_raises_a_failure_of_the_cleanup(read: Read, pauses: bool) -> None:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            if pauses:
                await asyncio.sleep(0)
            raise OSError("cleanup")

    with pytest.raises(OSError, match="cleanup"):
        await read(Flow.from_async_iterable(numbers()))


@each(AWAITED)
async def test_a_failure_of_the_cleanup_behind_a_failure_is_noted_and_told_to_the_hook(read: Read) -> None:
    dropped: list[BaseException] = []

    class Numbers:
        def __aiter__(self) -> Numbers:
            return self

        async def __anext__(self) -> int:
            raise OSError("gone")

        async def aclose(self) -> None:
            raise ValueError("cleanup")

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(OSError, match="gone") as caught:
        await read(Flow.from_async_iterable(Numbers()))

    assert any("cleanup" in note for note in caught.value.__notes__)
    assert dropped == [] or isinstance(dropped[0], ValueError)


@each(AWAITED)
async def test_what_a_step_behind_it_does_not_want_is_not_made(read: Read) -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    assert [0, 1, 2] == await read(Flow.from_async_iterable(numbers()).take(3))
    assert [0, 1, 2] == made


@each(AWAITED)
async def test_a_cancel_from_outside_fails_the_flow(read: Read) -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    with pytest.raises(Exception, match="cancelled by somebody else"):
        await read(Flow.from_async_iterable(numbers()))


@each(AWAITED)
async def test_others_have_their_turn_beside_an_iterator_that_never_suspends(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def clock() -> float:
        return now

    monkeypatch.setattr(budgets, "clock", clock)

    async def numbers() -> AsyncIterator[int]:
        nonlocal now
        for n in range(400):
            now += 1e-4
            yield n

    turns, reading = 0, asyncio.ensure_future(read(Flow.from_async_iterable(numbers())))
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1

    assert [*range(400)] == reading.result()
    assert turns > 400 * 1e-4 / budgets.TURN / 2


@each(AWAITED)
@pytest.mark.parametrize("seed", range(12))
async def test_a_flow_that_is_left_early_raises_what_the_cleanup_raises_however_short_the_turns_are(
    read: Read, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, now = Random(seed), 0.0

    def clock() -> float:
        nonlocal now
        now += 3 * budgets.TURN if rng.random() < 0.3 else 0.0
        return now

    monkeypatch.setattr(budgets, "clock", clock)

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 0
            await asyncio.Event().wait()
        finally:
            raise OSError("cleanup")

    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append), pytest.raises(OSError, match="cleanup"):
        await Flow.of(0).flat_map(lambda _: Flow.from_async_iterable(numbers())).take(1).to_list()
    with hooks.using(on_error_dropped=dropped.append), pytest.raises(OSError, match="cleanup"):
        await read(Flow.from_async_iterable(numbers()).take(1))

    assert [] == dropped
