"""Short iterators that are read one after another run in the name of one task, until one of them waits.

None of them can tell. Each has a context of its own, its cancels, timeouts and scopes are its own, and one that waits keeps its task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
import uvloop

from reactive_aio import Flow

variable: ContextVar[object] = ContextVar("variable", default="before")

Way = Callable[[Flow[int], Callable[[int], Flow[Any]]], Flow[Any]]
Check = Callable[[], Awaitable[None]]

WAYS: dict[str, Way] = {
    "flat_map": lambda flow, fn: flow.flat_map(fn),
    "concat_map": lambda flow, fn: flow.concat_map(fn),
    "concat_map_eager": lambda flow, fn: flow.concat_map_eager(fn),
    "concat": lambda flow, fn: Flow.concat(*[fn(n) for n in flow.run_sync()]),
    "merge": lambda flow, fn: Flow.merge(*[fn(n) for n in flow.run_sync()]),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def each(generator: Callable[[int], AsyncGenerator[Any]]) -> Callable[[int], Flow[Any]]:
    return lambda n: Flow.from_async_iterable(generator(n))


@every_way
@pytest.mark.usefixtures("still")
async def test_iterators_that_do_not_wait_take_fewer_tasks_than_there_are_iterators(way: Way) -> None:
    seen: list[asyncio.Task[Any]] = []

    async def generator(n: int) -> AsyncGenerator[int]:
        seen.append(current())
        yield n
        seen.append(current())

    assert await way(Flow.range(4), each(generator)).to_list() == [0, 1, 2, 3]
    assert seen[::2] == seen[1::2]
    assert len(set(seen)) < 4
    assert current() not in seen
    assert not others()


@every_way
async def test_an_iterator_that_waits_keeps_its_task_for_its_whole_life(way: Way) -> None:
    seen: dict[int, list[asyncio.Task[Any]]] = {n: [] for n in range(6)}

    async def generator(n: int) -> AsyncGenerator[int]:
        try:
            seen[n].append(current())
            yield n
            await asyncio.sleep(0)
            seen[n].append(current())
            yield n
        finally:
            seen[n].append(current())

    assert sorted(await way(Flow.range(6), each(generator)).to_list()) == sorted([*range(6)] * 2)
    assert all(len(tasks) == 3 and len(set(tasks)) == 1 for tasks in seen.values())
    assert len({tasks[0] for tasks in seen.values()}) == 6
    assert not others()


@every_way
@pytest.mark.parametrize("waits", [False, True])
async def test_each_iterator_has_a_context_of_its_own(way: Way, waits: bool) -> None:
    async def generator(n: int) -> AsyncGenerator[object]:
        yield variable.get()
        variable.set(n)
        if waits:
            await asyncio.sleep(0)
        yield variable.get()

    found = await way(Flow.range(3), each(generator)).to_list()
    assert found.count("before") == 3
    assert {0, 1, 2} <= {*found}
    assert variable.get() == "before"


@every_way
@pytest.mark.parametrize("waits", [False, True])
async def test_a_cancel_of_the_own_task_comes_where_that_iterator_waits_and_to_no_other(way: Way, waits: bool) -> None:
    async def generator(n: int) -> AsyncGenerator[object]:
        if n != 1:
            yield n
            await asyncio.sleep(0)
            return
        current().cancel()
        if waits:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                current().uncancel()
                yield "cancelled"

    found = await way(Flow.range(4), each(generator)).to_list()
    assert sorted(map(str, found)) == ["0", "2", "3"] + ["cancelled"] * waits
    assert not others()


@every_way
async def test_a_cancel_that_an_iterator_takes_back_comes_to_no_other(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[int]:
        if n == 0:
            current().cancel()
            current().uncancel()
        else:
            await asyncio.sleep(0)
        yield n

    assert sorted(await way(Flow.range(3), each(generator)).to_list()) == [0, 1, 2]
    assert not others()


@every_way
async def test_the_first_wait_for_a_turn_lets_all_work_that_is_due(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[list[str]]:
        done: list[str] = []

        async def work() -> None:
            done.append("task")

        asyncio.get_running_loop().call_soon(done.append, "callback")
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        yield [*done]
        await task

    assert await way(Flow.range(3), each(generator)).to_list() == [["callback", "task"]] * 3


@every_way
async def test_a_scope_that_is_cancelled_before_the_first_wait_for_a_turn_ends_that_wait(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[str]:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep(0)
            yield "too late"
        yield "cancelled"

    assert await way(Flow.range(3), each(generator)).to_list() == ["cancelled"] * 3


@every_way
async def test_a_timeout_that_is_entered_before_the_first_wait_ends_that_wait(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[object]:
        try:
            async with asyncio.timeout(0):
                yield n
                await asyncio.Event().wait()
        except TimeoutError:
            yield "late"

    assert sorted(map(str, await way(Flow.range(3), each(generator)).to_list())) == ["0", "1", "2"] + ["late"] * 3


@every_way
async def test_a_scope_that_is_cancelled_before_the_first_wait_ends_that_wait(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[object]:
        with anyio.CancelScope() as scope:
            yield n
            scope.cancel()
            await anyio.sleep_forever()
        yield scope.cancelled_caught

    assert sorted(map(str, await way(Flow.range(3), each(generator)).to_list())) == ["0", "1", "2"] + ["True"] * 3


@pytest.mark.parametrize("way", [WAYS[name] for name in ("flat_map", "concat_map_eager", "merge")])
async def test_a_scope_that_another_iterator_cancels_before_the_first_step_knows_its_cancel(way: Way) -> None:
    scopes: list[anyio.CancelScope] = []

    async def generator(n: int) -> AsyncGenerator[object]:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            if n == 1:
                scopes[0].cancel()
            await anyio.sleep(0)
        yield scope.cancelled_caught

    assert sorted(map(str, await way(Flow.range(2), each(generator)).to_list())) == ["False", "True"]


@every_way
async def test_a_cancel_before_the_first_step_keeps_its_message(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[object]:
        current().cancel("why")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            current().uncancel()
            yield cancelled.args

    assert await way(Flow.range(2), each(generator)).to_list() == [("why",)] * 2


@every_way
async def test_a_group_of_tasks_that_is_entered_before_the_first_wait_is_awaited(way: Way) -> None:
    async def generator(n: int) -> AsyncGenerator[int]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.sleep(0, n))
        yield task.result()

    assert sorted(await way(Flow.range(5), each(generator)).to_list()) == [0, 1, 2, 3, 4]
    assert not others()


@every_way
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
async def test_a_failure_before_the_first_wait_ends_the_whole(way: Way, error: type[BaseException]) -> None:
    async def generator(n: int) -> AsyncGenerator[int]:
        yield n
        if n == 1:
            raise error

    found: list[int] = []
    with pytest.raises(BaseException) as caught:  # noqa: PT011, as each kind of failure has its own way
        await way(Flow.range(4), each(generator)).for_each(found.append)
    assert isinstance(caught.value, error) or isinstance(caught.value.__cause__, error)
    assert found[:2] == [0, 1]
    assert not others()


@every_way
async def test_an_iterator_that_is_left_in_the_middle_is_closed_by_its_task(way: Way) -> None:
    closed: list[bool] = []

    async def generator(n: int) -> AsyncGenerator[int]:
        task = current()
        try:
            while True:
                yield n
        finally:
            await asyncio.sleep(0)
            closed.append(current() is task)

    assert await way(Flow.range(2), each(generator)).take(2).count() == 2
    assert closed
    assert all(closed)
    assert not others()


async def test_iterators_that_read_flows_of_iterators_have_tasks_of_their_own() -> None:
    async def outer(n: int) -> AsyncGenerator[tuple[int, bool]]:
        task = current()
        async for inner in Flow.range(3).concat_map(lambda m: Flow.from_async_iterable(named(m))):
            yield n, inner is not task and current() is task

    async def named(_: int) -> AsyncGenerator[asyncio.Task[Any]]:
        yield current()

    found = await Flow.range(3).flat_map(lambda n: Flow.from_async_iterable(outer(n))).to_list()
    assert sorted(found) == [(n, True) for n in (0, 0, 0, 1, 1, 1, 2, 2, 2)]


async def test_any_number_of_iterators_that_do_not_wait_end_one_after_another() -> None:
    async def generator() -> AsyncGenerator[int]:
        yield 1

    assert await Flow.from_async_iterable(generator).repeat(5_000).count() == 5_000
    assert not others()


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("eager", [False, True])
@every_way
def test_it_is_so_on_every_loop_and_with_a_task_factory(
    way: Way, loop_factory: Callable[[], asyncio.AbstractEventLoop], eager: bool
) -> None:
    async def generator(n: int) -> AsyncGenerator[int]:
        yield n
        if n % 2:
            await asyncio.sleep(0)
        yield current() in asyncio.all_tasks()

    async def main() -> None:
        if eager:
            asyncio.get_running_loop().set_task_factory(
                lambda loop, coro, **options: asyncio.Task(coro, loop=loop, **options)
            )
        found = await way(Flow.range(4), each(generator)).to_list()
        assert sorted(found) == sorted([0, 1, 2, 3, True, True, True, True])
        assert not others()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
