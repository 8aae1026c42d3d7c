"""map_async: a function awaited for several elements side by side, in virtual time."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, SourceCancelledError, hooks, schedulers
from reactive_aio._core import budgets
from reactive_aio.testing import probe, run_virtual
from tests.subscribers import ByHand, Recorder, idle, others

ORDERS = pytest.mark.parametrize("order", ["input", "completion", lambda _: "key"], ids=["input", "completion", "key"])


def now() -> float:
    return asyncio.get_running_loop().time()


class BrokenError(Exception):
    """How functions fail here."""


@define(eq=False)
class Work:
    """A function that takes as long as the test says, and the elements that it has seen."""

    seconds: Callable[[int], float] = lambda _: 1.0
    fails: dict[int, BaseException] = field(factory=dict[int, BaseException])
    begun: list[int] = field(init=False, factory=list[int])
    finished: list[int] = field(init=False, factory=list[int])
    cancelled: list[int] = field(init=False, factory=list[int])
    under_way: int = field(init=False, default=0)
    most: int = field(init=False, default=0)

    async def __call__(self, n: int) -> int:
        self.begun.append(n)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.seconds(n))
            if n in self.fails:
                raise self.fails[n]
        except asyncio.CancelledError:
            self.cancelled.append(n)
            raise
        finally:
            self.under_way -= 1
        self.finished.append(n)
        return n


@define(eq=False)
class Hooked:
    """The elements and errors that the hooks have got."""

    discarded: list[Any] = field(init=False, factory=list[Any])
    dropped: list[BaseException] = field(init=False, factory=list[BaseException])

    def using(self) -> Any:
        return hooks.using(on_discard=self.discarded.append, on_error_dropped=self.dropped.append)


# -- order and max_concurrency


def test_results_come_in_the_order_of_the_elements_however_long_each_takes() -> None:
    work = Work(lambda n: 10.0 - n)

    async def main() -> list[tuple[int, float]]:
        return [(n, now()) async for n in Flow.range(4).map_async(work)]

    assert [(0, 10.0), (1, 10.0), (2, 10.0), (3, 10.0)] == run_virtual(main())
    assert [3, 2, 1, 0] == work.finished


def test_in_order_of_completion_results_come_as_they_are_there() -> None:
    async def main() -> list[tuple[int, float]]:
        flow = Flow.range(4).map_async(Work(lambda n: 10.0 - n), order="completion")
        return [(n, now()) async for n in flow]

    assert [(3, 7.0), (2, 8.0), (1, 9.0), (0, 10.0)] == run_virtual(main())


def test_elements_of_one_key_are_awaited_one_after_another_and_others_overtake() -> None:
    events = ["a3", "a1", "b1", "a2", "b1", "c5"]

    async def main() -> list[tuple[str, float]]:
        async def take(event: str) -> str:
            await asyncio.sleep(int(event[1]))
            return event

        flow = Flow.from_iterable(events).map_async(take, order=lambda event: event[0])
        return [(event, now()) async for event in flow]

    expected = [("b1", 1.0), ("b1", 2.0), ("a3", 3.0), ("a1", 4.0), ("c5", 5.0), ("a2", 6.0)]
    assert expected == run_virtual(main())


def by_hand(seconds: list[float], max_concurrency: int, order: str) -> list[tuple[int, float]]:
    """Return when each result comes: free workers take the elements in turn."""
    free = [0.0] * max_concurrency
    done: list[tuple[int, float]] = []
    for n, each in enumerate(seconds):
        at = min(free) + each
        free[free.index(min(free))] = at
        done.append((n, at))
    if order == "completion":
        return sorted(done, key=lambda pair: (pair[1], pair[0]))
    return [(n, max(at for _, at in done[: n + 1])) for n, _ in done]


@pytest.mark.parametrize("order", ["input", "completion"])
@pytest.mark.parametrize("max_concurrency", [1, 2, 3, 64])
def test_a_worker_that_is_free_takes_the_next_element(max_concurrency: int, order: Any) -> None:
    # No two of them finish at one time.
    seconds = [n * n * 37 % 101 + 1 + n / 100 for n in range(12)]
    work = Work(seconds.__getitem__)

    async def main() -> list[tuple[int, float]]:
        came: list[tuple[int, float]] = []
        await (
            Flow.range(12)
            .map_async(work, max_concurrency=max_concurrency, order=order)
            .for_each(lambda n: came.append((n, now())))
        )
        return came

    expected = by_hand(seconds, max_concurrency, order)
    came = run_virtual(main())
    assert [n for n, _ in expected] == [n for n, _ in came]
    assert [at for _, at in came] == pytest.approx([at for _, at in expected])
    assert work.most == min(max_concurrency, 12)


@ORDERS
def test_the_end_comes_behind_the_last_result(order: Any) -> None:
    for n in (0, 1, 2, 50):
        assert [*range(n)] == sorted(
            run_virtual(Flow.range(n).map_async(Work(), max_concurrency=4, order=order).to_list())
        )


async def test_any_awaitable_will_do() -> None:
    loop = asyncio.get_running_loop()

    def soon(n: int) -> asyncio.Future[int]:
        future: asyncio.Future[int] = loop.create_future()
        loop.call_soon(future.set_result, n)
        return future

    assert [0, 1, 2] == await Flow.range(3).map_async(soon).to_list()


# -- demand


@ORDERS
@pytest.mark.parametrize("demand", [1, 3, 5, 100, UNBOUNDED])
def test_no_more_elements_are_outstanding_than_are_wanted_or_awaited_side_by_side(demand: int, order: Any) -> None:
    async def main() -> None:
        publisher, recorder, work = ByHand(), Recorder(demand), Work()
        Flow.from_publisher(publisher).map_async(work, max_concurrency=3, order=order).subscribe(recorder)
        outstanding = max(3, min(demand, 12))
        given = 0
        for _ in range(10):
            await asyncio.sleep(0.5)
            assert sum(publisher.requests) - len(recorder.items) <= outstanding
            while given < sum(publisher.requests):
                publisher.next(given)
                given += 1
            if demand < UNBOUNDED:
                assert len(recorder.items) <= demand
        assert work.most == (1 if callable(order) else 3)
        recorder.cancel()

    run_virtual(main())


def test_nothing_is_read_before_any_demand_and_nothing_ahead_of_it_one_at_a_time() -> None:
    async def main() -> None:
        work, recorder = Work(), Recorder()
        Flow.range(9).map_async(work, max_concurrency=1).subscribe(recorder)
        await asyncio.sleep(9)
        assert [] == work.begun
        for n in range(1, 4):
            recorder.request(1)
            await asyncio.sleep(9)
            assert n == len(recorder.items) == len(work.begun)
        recorder.cancel()

    run_virtual(main())


def test_an_endless_flow_is_read_no_further_than_declared() -> None:
    async def main() -> int:
        read: list[int] = []
        never = asyncio.Event()
        flow = (
            Flow.from_iterable(iter(int, 1))
            .do_on_next(read.append)
            .map_async(lambda _: never.wait(), max_concurrency=16)
        )
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(flow.to_list(), 1)
        return len(read)

    assert run_virtual(main()) == 64


def test_a_slow_element_holds_up_results_and_not_the_work_behind_it() -> None:
    async def main() -> tuple[list[int], list[int]]:
        work = Work(lambda n: 100.0 if n == 0 else 1.0)
        results: list[int] = []
        task = asyncio.ensure_future(Flow.range(99).map_async(work, max_concurrency=2).for_each(results.append))
        await asyncio.sleep(50)
        seen = results.copy()
        await task
        return seen, work.begun[:8]

    assert ([], [*range(8)]) == run_virtual(main())


async def test_a_function_that_never_suspends_lets_others_have_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.count().__next__)  # every look at it is a second later

    async with others() as turns:

        async def at_once(n: int) -> int:
            return len(turns)

        seen = await Flow.range(100).map_async(at_once, max_concurrency=1).to_list()
    # Four are there at a time; the clock is looked at behind the second.
    assert max(Counter(seen).values()) == 2


# -- failures


@ORDERS
def test_a_failure_cancels_the_others_and_comes_when_they_have_ended(order: Any) -> None:
    ended: list[int] = []

    async def fn(n: int) -> int:
        if n == 1:
            await asyncio.sleep(1)
            raise BrokenError("one")
        try:
            await asyncio.sleep(9)
        finally:
            await asyncio.sleep(2)
            ended.append(n)
        return n

    async def main() -> float:
        key = order if isinstance(order, str) else lambda n: n
        with pytest.raises(BrokenError, match="one"):
            await Flow.range(9).map_async(fn, max_concurrency=3, order=key).to_list()
        return now()

    assert 3.0 == run_virtual(main())
    assert [0, 2] == sorted(ended)


def test_the_note_of_a_failure_names_the_element_and_the_line() -> None:
    with pytest.raises(BrokenError) as caught:
        run_virtual(Flow.range(9).map_async(Work(fails={5: BrokenError()}), max_concurrency=2).to_list())

    (note,) = caught.value.__notes__
    assert "in map_async(Work, 2), chained at" in note
    assert __file__ in note
    assert note.endswith(", on element #5")


def test_in_order_what_was_finished_before_a_failure_comes_first_and_no_result_is_left_out_between() -> None:
    seconds = {0: 1.0, 1: 1.0, 2: 9.0, 3: 1.0, 4: 2.0}
    heard = Hooked()

    async def main() -> list[int]:
        results: list[int] = []
        with heard.using(), pytest.raises(BrokenError):
            await (
                Flow.range(5)
                .map_async(Work(seconds.__getitem__, {4: BrokenError()}), max_concurrency=5)
                .for_each(results.append)
            )
        return results

    assert [0, 1] == run_virtual(main())
    assert Counter([2, 3]) == Counter(heard.discarded)


@pytest.mark.parametrize("order", ["input", "completion"])
def test_a_failure_waits_behind_the_results_that_are_not_wanted_yet(order: Any) -> None:
    async def main() -> None:
        work = Work(lambda n: n + 1.0, {2: BrokenError()})
        async with probe(Flow.range(5).map_async(work, max_concurrency=3, order=order), request=1) as p:
            await p.expect_next(0)
            await p.expect_no_event(for_=9)
            await p.request(1)
            await p.expect_next(1)
            await p.expect_error(BrokenError)

    run_virtual(main())


@ORDERS
def test_a_failure_of_the_flow_comes_behind_all_results(order: Any) -> None:
    results: list[int] = []
    work = Work()
    flow = Flow.range(3).concat(Flow.error(BrokenError())).map_async(work, max_concurrency=4, order=order)

    with pytest.raises(BrokenError):
        run_virtual(flow.for_each(results.append))

    assert [0, 1, 2] == results
    assert [] == work.cancelled


def test_what_fails_besides_goes_to_the_hook() -> None:
    heard = Hooked()

    async def fn(n: int) -> int:
        try:
            await asyncio.sleep(n + 1)
        except asyncio.CancelledError:
            raise KeyError(n) from None
        raise BrokenError(n)

    async def main() -> None:
        with heard.using(), pytest.raises(BrokenError):
            await Flow.range(3).concat(Flow.error(ValueError())).map_async(fn).to_list()

    run_virtual(main())
    assert ["KeyError(1)", "KeyError(2)", "ValueError()"] == sorted(map(repr, heard.dropped))


def test_every_element_is_delivered_or_discarded_or_has_failed() -> None:
    for fails_at in range(12):
        heard = Hooked()
        read: list[int] = []
        results: list[int] = []
        work = Work(lambda n: n * 37 % 5 + n / 100, {fails_at: BrokenError()})

        async def main(
            work: Work = work, heard: Hooked = heard, read: list[int] = read, results: Any = results
        ) -> None:
            flow = Flow.range(12).do_on_next(read.append).map_async(work, max_concurrency=3)
            with heard.using(), pytest.raises(BrokenError):
                await flow.for_each(results.append)

        run_virtual(main())
        assert sorted(read) == sorted([*results, *heard.discarded, fails_at])


async def test_what_is_no_awaitable_is_named() -> None:
    flow: Any = Flow.range(3)
    with pytest.raises(
        TypeError, match=r"<lambda> returned a value that can't be awaited, of type int: .* map\(\)"
    ) as caught:
        await flow.map_async(lambda n: n).to_list()

    assert "element #0" in caught.value.__notes__[0]


@pytest.mark.parametrize("stop", [StopIteration, StopAsyncIteration])
async def test_what_would_end_a_loop_is_an_error(stop: type[Exception]) -> None:
    def fn(n: int) -> Awaitable[int]:
        raise stop

    with pytest.raises(RuntimeError, match=f"fn raised {stop.__name__}"):
        _ = [n async for n in Flow.range(3).map_async(fn)]


async def test_a_key_that_fails_is_an_error_on_its_element() -> None:
    heard = Hooked()
    with heard.using(), pytest.raises(ZeroDivisionError) as caught:
        await Flow.of(3, 2, 1, 0, 5).map_async(Work(lambda _: 0), max_concurrency=2, order=lambda n: 1 // n).to_list()

    assert "element #3" in caught.value.__notes__[0]
    assert Counter([3, 2, 1, 5]) == Counter(heard.discarded)


async def test_a_key_that_is_not_hashable_is_an_error_on_its_element() -> None:
    flow: Any = Flow.of(1)
    with pytest.raises(TypeError, match="unhashable") as caught:
        await flow.map_async(Work(lambda _: 0), order=lambda n: [n]).to_list()

    assert "element #0" in caught.value.__notes__[0]


async def test_a_cancellation_by_somebody_else_is_a_failure() -> None:
    async def fn(n: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return n

    with pytest.raises(SourceCancelledError):
        await Flow.range(3).map_async(fn, max_concurrency=1).to_list()


async def test_a_task_that_is_cancelled_before_it_begins_is_a_failure() -> None:
    before = asyncio.all_tasks()
    main = asyncio.ensure_future(Flow.range(3).map_async(Work(), max_concurrency=1).to_list())
    while not (tasks := asyncio.all_tasks() - before - {main}):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()

    with pytest.raises(SourceCancelledError):
        await main


# -- cancelling


@ORDERS
async def test_cancel_reaches_the_functions_in_the_same_turn_and_no_task_outlives_it(order: Any) -> None:
    work = Work(lambda _: 100.0)
    before = asyncio.all_tasks()
    async with Flow.range(99).map_async(work, max_concurrency=4, order=order).open() as items:
        task = asyncio.ensure_future(anext(items))
        while len(work.begun) < (1 if callable(order) else 4):
            await asyncio.sleep(0)
        task.cancel()
        await idle(2)
        items.steps.driver.cancel()
        await idle(2)
        assert sorted(work.begun) == sorted(work.cancelled)
    assert before == asyncio.all_tasks() - {task}


@ORDERS
def test_what_was_not_finished_with_goes_to_the_hook_when_cancelled(order: Any) -> None:
    heard = Hooked()

    async def main() -> None:
        read: list[int] = []
        recorder = Recorder(6)
        with heard.using():
            flow = (
                Flow.range(99).do_on_next(read.append).map_async(Work(lambda n: n % 4), max_concurrency=2, order=order)
            )
            flow.subscribe(recorder)
            await asyncio.sleep(3.5)
            recorder.cancel()
            await asyncio.sleep(9)
        assert recorder.items
        assert sorted(read) == sorted([*recorder.items, *heard.discarded])

    run_virtual(main())


@pytest.mark.parametrize("order", ["input", "completion"])
async def test_results_that_nobody_has_asked_for_go_to_the_hook_when_cancelled(order: Any) -> None:
    heard, recorder = Hooked(), Recorder(1)
    with heard.using():
        Flow.range(9).map_async(Work(lambda _: 0), max_concurrency=3, order=order).map(lambda n: -n).subscribe(recorder)
        await idle()
        recorder.cancel()
        await idle()

    assert [0] == recorder.items
    assert [1, 2] == heard.discarded


def test_a_terminal_returns_when_the_functions_have_cleaned_up() -> None:
    async def main() -> tuple[float, list[int]]:
        cleaned: list[int] = []

        async def fn(n: int) -> int:
            try:
                await asyncio.sleep(n)
            finally:
                await asyncio.sleep(0 if n == 0 else 5)
                cleaned.append(n)
            return n

        assert 0 == await Flow.range(3).map_async(fn).first()
        return now(), sorted(cleaned)

    assert (5.0, [0, 1, 2]) == run_virtual(main())


async def test_a_result_that_comes_in_spite_of_the_cancellation_goes_to_the_hook() -> None:
    heard = Hooked()

    async def stubborn(n: int) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        return f"result {n}"

    with heard.using():
        async with Flow.range(1).map_async(stubborn).open() as items:
            task = asyncio.ensure_future(anext(items))
            await idle()
            task.cancel()
    assert ["result 0"] == heard.discarded


# -- context and tasks

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@ORDERS
async def test_functions_see_the_variables_of_the_subscriber_and_not_each_others(order: Any) -> None:
    async def fn(n: int) -> str:
        seen = VARIABLE.get()
        VARIABLE.set(f"set by {n}")
        await asyncio.sleep(0)
        return seen

    flow = Flow.range(20).map_async(fn, max_concurrency=3, order=order)
    VARIABLE.set("subscriber's")

    assert ["subscriber's"] * 20 == await flow.to_list()
    assert "subscriber's" == VARIABLE.get()


async def test_variables_are_the_subscribers_also_where_their_values_are_equal_or_cannot_be_compared() -> None:
    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    class Array:
        def __eq__(self, other: object) -> bool:
            raise ValueError("the truth value of an array is ambiguous")

        __hash__ = object.__hash__

    for kind in (Equal, Array):
        variable: contextvars.ContextVar[object] = contextvars.ContextVar("variable")

        async def fn(_: int, kind: type = kind, variable: contextvars.ContextVar[object] = variable) -> object:
            seen = variable.get()
            variable.set(kind())
            return seen

        given = kind()
        variable.set(given)
        assert all(seen is given for seen in await Flow.range(5).map_async(fn, max_concurrency=2).to_list())


async def test_what_follows_does_not_see_what_the_functions_set() -> None:
    async def fn(n: int) -> int:
        VARIABLE.set("theirs")
        return n

    assert ["unset"] * 3 == await Flow.range(3).map_async(fn).map(lambda _: VARIABLE.get()).to_list()


async def test_a_cancellation_that_one_element_has_swallowed_is_not_seen_by_the_next() -> None:
    async def fn(n: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        return cancelling

    assert [0] * 9 == await Flow.range(9).map_async(fn, max_concurrency=2).to_list()


async def test_timeouts_in_functions_work_as_in_tasks_of_their_own(virtual_time: object) -> None:
    async def fn(n: int) -> str:
        try:
            async with asyncio.timeout(0 if n % 2 else None):
                await asyncio.sleep(0.001)
                return "in time"
        except TimeoutError:
            return "too late"

    assert ["in time", "too late"] * 4 == await Flow.range(8).map_async(fn, max_concurrency=2).to_list()


async def test_functions_run_on_the_loop_of_their_region() -> None:
    import threading

    async def fn(_: int) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    flow = Flow.range(3).map_async(fn).subscribe_on(schedulers.thread("awaiting"))
    assert ["awaiting"] * 3 == await flow.to_list()
    flow = Flow.range(3).publish_on(schedulers.thread("making")).map_async(fn)
    assert ["making"] * 3 == await flow.to_list()


# -- sizes


async def test_the_elements_of_many_keys_leave_nothing_behind() -> None:
    from reactive_aio.operators.awaiting._queues import ByKey

    line = ByKey(lambda n: n)
    for n in range(100):
        line.add([n])
        line.put(line.waiting.popleft(), n)
        assert [n] == line.take(5)
    assert not line._behind
    assert 0 == line.held


async def test_workers_are_as_many_as_have_something_to_do() -> None:
    running = defaultdict[str, int](int)

    async def fn(n: int) -> int:
        await asyncio.sleep(0)
        return n

    before = len(asyncio.all_tasks())
    flow = (
        Flow.range(1000)
        .map_async(fn, max_concurrency=64)
        .do_on_next(lambda _: running.update(most=max(running["most"], len(asyncio.all_tasks()) - before)))
    )
    assert 1000 == await flow.count()
    assert running["most"] <= 64


# -- arguments


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Flow.of(1).map_async(3), TypeError, "map_async.. takes a function, not int"),
        (lambda: Flow.of(1).map_async(Work(), max_concurrency=0), ValueError, "max_concurrency must be at least 1"),
        (lambda: Flow.of(1).map_async(Work(), max_concurrency=1.5), TypeError, "max_concurrency is a whole number"),
        (lambda: Flow.of(1).map_async(Work(), order="any"), ValueError, "'input', 'completion', or pass a function"),
        (lambda: Flow.of(1).map_async(Work(), order=None), ValueError, "choose one of"),
        (lambda: Flow.of(1).map_async(Work(), order=Work()), TypeError, "order=Work.: order takes an ordinary"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_it_is_shown_by_what_is_not_the_default() -> None:
    flow = Flow.of(1)
    assert "Flow.map_async(len, 16)" == repr(flow.map_async(len))
    assert "Flow.map_async(len, 3, order='completion')" == repr(
        flow.map_async(len, max_concurrency=3, order="completion")
    )
    assert "Flow.map_async(len, 3, order=abs)" == repr(flow.map_async(len, max_concurrency=3, order=abs))
