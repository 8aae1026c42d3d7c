"""``async for``, and the fate of a requested element when the wait for it is cut short."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import uvloop

from reactive_aio import Flow, Hub, hooks, schedulers
from reactive_aio._core import budgets
from tests.subscribers import ByHand, idle


async def waiting(items: Any) -> asyncio.Task[Any]:
    """Return a task that waits for the next element."""
    task: asyncio.Task[Any] = asyncio.ensure_future(anext(items))
    await idle()
    assert not task.done()
    return task


async def cut_short(items: Any) -> None:
    """Begin to wait for an element, and be cancelled."""
    task = await waiting(items)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_element_that_was_asked_for_is_not_asked_for_again() -> None:
    source = ByHand()
    async with Flow.from_publisher(source).open() as items:
        await cut_short(items)
        await cut_short(items)
        task = await waiting(items)
        source.next("a")

        assert await task == "a"
        assert source.requests == [1]


async def test_an_element_that_comes_between_two_waits_is_the_next() -> None:
    source = ByHand()
    async with Flow.from_publisher(source).open() as items:
        await cut_short(items)
        source.next("a")
        await idle()

        assert await anext(items) == "a"
        task = await waiting(items)
        source.next("b")
        assert await task == "b"
        assert source.requests == [1, 1]


async def test_an_element_that_nobody_came_for_is_told_to_the_hook() -> None:
    source = ByHand()
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        async with Flow.from_publisher(source).open() as items:
            await cut_short(items)
            source.next("a")
            await idle()
            assert discarded == []

    assert discarded == ["a"]
    assert source.cancels == 1


async def test_a_failure_that_nobody_came_for_is_told_to_the_hook() -> None:
    source = ByHand()
    dropped: list[BaseException] = []
    failure = OSError("failed")
    with hooks.using(on_error_dropped=dropped.append):
        async with Flow.from_publisher(source).open() as items:
            await cut_short(items)
            source.error(failure)
            await idle()
            assert dropped == []

    assert dropped == [failure]


async def test_a_failure_is_raised_once() -> None:
    source = ByHand()
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        async with Flow.from_publisher(source).open() as items:
            task = await waiting(items)
            source.error(OSError("failed"))
            with pytest.raises(OSError, match="failed"):
                await task
            with pytest.raises(StopAsyncIteration):
                await anext(items)

    assert dropped == []


async def test_a_failure_is_never_taken_for_the_end() -> None:
    def stops(n: int) -> int:
        raise StopAsyncIteration("not the end")

    with pytest.raises(RuntimeError, match="raised StopAsyncIteration") as raised:
        async for _ in Flow.range(3).map(stops):
            pass

    assert isinstance(raised.value.__cause__, StopAsyncIteration)


async def test_behind_the_end_there_is_only_the_end() -> None:
    async with Flow.of(1).open() as items:
        assert [item async for item in items] == [1]
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await anext(items)


async def test_two_tasks_that_wait_for_one_element_are_told() -> None:
    source = ByHand()
    async with Flow.from_publisher(source).open() as items:
        first = await waiting(items)
        with pytest.raises(RuntimeError, match="two tasks await"):
            await anext(items)
        source.next("a")

        assert await first == "a"


async def test_a_task_that_comes_when_another_has_been_woken_does_not_take_its_element() -> None:
    source = ByHand()
    async with Flow.from_publisher(source).open() as items:
        first = await waiting(items)
        source.next("a")
        while not first.done():
            with pytest.raises(RuntimeError, match="two tasks await"):
                await anext(items)
            await asyncio.sleep(0)

        assert await first == "a"


async def test_what_is_left_by_break_is_cancelled_at_once() -> None:
    source = ByHand()

    async def leave() -> None:
        async for _ in Flow.from_publisher(source):
            break

    task = asyncio.ensure_future(leave())
    await idle()
    source.next("a")
    await task
    await idle()

    assert source.cancels == 1


async def test_what_has_ended_is_not_cancelled() -> None:
    source = ByHand()

    async def read() -> list[Any]:
        return [item async for item in Flow.from_publisher(source)]

    task = asyncio.ensure_future(read())
    await idle()
    source.complete()

    assert await task == []
    assert source.cancels == 0


async def test_a_cancellation_that_a_function_raised_is_the_cause_of_the_failure() -> None:
    cancelled = asyncio.CancelledError("by a function")
    cancelled.add_note("a note of its own")

    def fail(n: int) -> int:
        raise cancelled

    with pytest.raises(Exception, match="raised CancelledError") as caught:
        await Flow.range(1).map(fail).to_list()

    assert caught.value.__cause__ is cancelled
    own, place = caught.value.__notes__
    assert own == "a note of its own"
    assert place.startswith("in map(fail)")


async def turns_of_the_loop(flow: Flow[int]) -> list[int]:
    """Iterate without ever suspending, and give how many elements had come when the loop had each of its turns."""
    seen = 0
    at_turn: list[int] = []
    loop = asyncio.get_running_loop()

    def turn() -> None:
        at_turn.append(seen)
        loop.call_soon(turn)

    loop.call_soon(turn)
    async for _ in flow:
        seen += 1
    return [*at_turn, seen]


def one_at_a_time() -> Flow[int]:
    return Flow.range(100).publish_on(schedulers.current(), prefetch=1)


@pytest.mark.usefixtures("still")
async def test_an_element_that_a_region_on_the_loop_can_make_at_once_costs_no_turn_of_the_loop() -> None:
    assert len([n for n in await turns_of_the_loop(one_at_a_time()) if 1 < n < 100]) == 0


async def test_a_consumer_that_never_suspends_gives_the_loop_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.count(step=budgets.TURN / 4).__next__)

    at_turn = await turns_of_the_loop(one_at_a_time())

    assert max(after - before for before, after in itertools.pairwise(at_turn)) <= 5


async def counting() -> AsyncIterator[int]:
    for n in range(100):
        yield n


@pytest.mark.parametrize(
    "flow", [Flow.range(100).map(abs), Flow.from_async_iterable(counting)], ids=["a function", "an async iterator"]
)
async def test_a_consumer_whose_time_is_up_goes_on_behind_one_turn(
    flow: Flow[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.count(step=budgets.TURN / 4).__next__)

    at_turn = await turns_of_the_loop(flow)

    assert [] == [n for n, then in itertools.pairwise(at_turn) if n == then and 1 < n < 100]


@pytest.mark.usefixtures("still")
async def test_a_function_of_the_flow_that_asks_for_the_element_it_is_making_is_told() -> None:
    discarded: list[Any] = []

    def greedy(n: int) -> int:
        if n == 3:
            anext(items).send(None)
        return n

    with hooks.using(on_discard=discarded.append):
        async with Flow.range(9).publish_on(schedulers.current(), prefetch=1).map(greedy).open() as items:
            assert [await anext(items) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(RuntimeError, match="two tasks"):
                await anext(items)


@pytest.mark.usefixtures("still")
async def test_a_function_ahead_of_a_boundary_that_asks_for_the_next_element_gets_it_later() -> None:
    waits: list[Any] = []

    def greedy(n: int) -> int:
        if n == 5:
            waits.append(anext(items))
            waits[0].send(None)  # it waits, rather than have a region work inside the turn of another
        return n

    flow = Flow.range(9).map(greedy).publish_on(schedulers.current(), prefetch=4).filter(lambda n: n != 3)
    async with flow.open() as items:
        seen = [await anext(items)]
        await idle()
        seen += [await anext(items) for _ in range(2)]
        await idle()
        assert waits
        with pytest.raises(StopIteration) as given:
            waits[0].send(None)

    assert [*seen, given.value.value] == [0, 1, 2, 4]


# -- an iterator that nobody holds any more


async def test_an_element_that_is_made_while_the_iterator_goes_is_told_to_the_hook() -> None:
    discarded: list[Any] = []
    held: list[Any] = []

    def letting_go(n: int) -> int:
        held.clear()
        return n

    with hooks.using(on_discard=discarded.append):
        held.append(aiter(Flow.range(3).map(letting_go)))
    asking = held[0].__anext__()
    held[0].steps._until = 0.0  # so that the element is made in a turn of the loop
    asking.send(None)
    asking.close()
    await idle()

    assert (held, discarded) == ([], [0])


async def test_a_failure_that_nobody_is_left_to_hear_of_is_told_to_the_hook() -> None:
    dropped: list[BaseException] = []
    held: list[Any] = []

    def letting_go(n: int) -> int:
        held.clear()
        raise OSError("nobody is here")

    with hooks.using(on_error_dropped=dropped.append):
        held.append(aiter(Flow.range(3).map(letting_go)))
    asking = held[0].__anext__()
    asking.send(None)
    asking.close()
    await idle()

    assert [str(error) for error in dropped] == ["nobody is here"]


async def test_an_iterator_may_go_in_the_cleanup_of_its_own_source() -> None:
    discarded: list[Any] = []
    held: list[Any] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            held.clear()

    with hooks.using(on_discard=discarded.append):
        held.append(aiter(Flow.from_iterable(numbers()).take(1)))
    asking = held[0].__anext__()
    asking.send(None)
    asking.close()
    await idle()

    assert (held, discarded) == ([], [1])


async def test_what_has_come_for_an_iterator_that_goes_is_told_to_the_hook() -> None:
    source = ByHand()
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        items = aiter(Flow.from_publisher(source))
    await cut_short(items)
    source.next("a")
    await idle()
    del items
    await idle()

    assert (discarded, source.cancels) == (["a"], 1)


def test_an_iterator_that_outlives_its_loop_goes_without_a_word() -> None:
    dropped: list[BaseException] = []

    async def begin() -> Any:
        items = aiter(Flow.range(3).map(str))
        assert await anext(items) == "0"
        return items

    with hooks.using(on_error_dropped=dropped.append):
        with asyncio.Runner() as runner:
            items = runner.run(begin())
        driver = items.steps.driver
        del items

    assert dropped == []
    assert not driver.closed  # there is no loop on which it could be


def test_an_iterator_without_a_loop_says_so() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        aiter(Flow.range(3))


async def slow() -> AsyncIterator[int]:
    for n in range(3):
        await asyncio.sleep(0)
        yield n


@pytest.mark.parametrize("flow", [Flow.from_async_iterable(slow), Flow.range(300).concat(Flow.range(3))])
async def test_an_iterator_is_not_read_on_another_loop(flow: Flow[int]) -> None:
    async def read(items: AsyncIterator[int]) -> None:
        async for _ in items:
            pass

    async with flow.open() as items:
        await anext(items)
        with pytest.raises(RuntimeError, match="read on another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(read(items)))

        assert [item async for item in items][-1] == 2


async def test_closing_waits_for_the_cleanup_and_may_be_done_twice() -> None:
    log: list[str] = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    items = aiter(Flow.from_async_iterable(numbers()))
    assert await anext(items) == 1
    for _ in range(2):
        await items.aclose()
        assert log == ["closed"]
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_who_waits_for_an_element_is_told_of_the_end_when_another_closes() -> None:
    source = ByHand()
    items = aiter(Flow.from_publisher(source))
    task = await waiting(items)
    await items.aclose()

    with pytest.raises(StopAsyncIteration):
        await task
    assert source.cancels == 1


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("flow", [Flow.range(100), Flow.range(100).map(int)], ids=["given elements", "with a stage"])
async def test_an_iterator_that_is_closed_gives_none_of_what_was_there(flow: Flow[int]) -> None:
    async with flow.open() as items:
        assert [0, 1] == [await anext(items), await anext(items)]
        await items.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(items)


@pytest.mark.parametrize("seed", range(5))
async def test_given_elements_come_once_and_in_order_where_waits_are_cut_short(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are requested many at a time, and the time of a turn is up at random looks at the clock."""
    by_chance, seen, cut = random.Random(seed), list[int](), 0
    looks = itertools.accumulate(by_chance.random() < 0.3 for _ in itertools.count())
    monkeypatch.setattr(budgets, "clock", looks.__next__)

    async with Flow.range(3000).open() as items:
        with contextlib.suppress(StopAsyncIteration):
            while True:
                task = asyncio.ensure_future(anext(items))
                await asyncio.sleep(0)
                if by_chance.random() < 0.5:
                    cut += task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    seen.append(await task)

    assert seen == list(range(3000))
    assert cut


async def test_an_end_is_known_again_by_the_types_of_its_arguments() -> None:
    """On one line, with arguments that equal each other."""
    flow = Flow.of(1, 1)

    assert [int, float] == [type(await flow.sum(start)) for start in (0, 0.0)]
    assert ["-0.0", "0.0"] == [repr(await Flow[float].empty().sum(start)) for start in (-0.0, 0.0)]


@pytest.mark.parametrize("flow", [Flow.range(3), Flow.range(3).share(), Hub[int](idle="drop").flow], ids=str)
async def test_the_repr_of_an_iterator_tells_nothing_of_what_it_is_made_of(flow: Flow[int]) -> None:
    items = aiter(flow)
    assert len(repr(items)) < 100
    await items.aclose()


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_end_whose_function_waits_is_closed_when_its_loop_is_gone(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    begun: list[int] = []

    async def wait(item: int) -> None:
        begun.append(item)
        await asyncio.Event().wait()

    loop, end = make_loop(), Flow.range(3).for_each(wait)
    task: Any = loop.create_task(end)
    loop.run_until_complete(idle())
    loop.close()
    task._log_destroy_pending = False  # nobody runs it to its end
    end.close()

    assert [0] == begun
