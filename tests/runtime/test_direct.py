"""Direct runs: the task that awaits an end runs the flow itself, and nobody can tell but by the clock."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import Flow, SourceCancelledError, hooks, schedulers
from reactive_aio._core import budgets
from reactive_aio._core.notes import notes_of
from reactive_aio._runtime import ends
from reactive_aio.extend import Stage, flow_of
from reactive_aio.operators.sourcing.generate import Generate

End = Callable[[Flow[Any]], Awaitable[Any]]

ENDS: dict[str, End] = {
    "to_list": lambda flow: flow.to_list(),
    "count": lambda flow: flow.count(),
    "sum": lambda flow: flow.sum(),
    "first": lambda flow: flow.first(),
    "last": lambda flow: flow.last(),
    "reduce": lambda flow: flow.reduce(lambda a, b: a + b),
    "collect": lambda flow: flow.collect(list[int], list[int].append),
    "for_each": lambda flow: flow.for_each(lambda item: None),
    "any": lambda flow: flow.any(lambda item: item == 2),
    "is_empty": lambda flow: flow.is_empty(),
    "drain": lambda flow: flow.drain(),
}


def always_driven(source: type[object], steps: tuple[type[object], ...]) -> None:
    """Say of every flow that it takes a plan and a driver."""


number: ContextVar[int] = ContextVar("number", default=0)


@pytest.fixture
def driven(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The flows for which drivers are made."""
    found: list[object] = []
    assemble = ends.assemble

    def made(*arguments: Any, **named: Any) -> Any:
        found.append(arguments[0])
        return assemble(*arguments, **named)

    monkeypatch.setattr(ends, "assemble", made)
    return found


def by_a_driver(flow: Flow[Any]) -> Flow[Any]:
    """The same flow over a boundary, which leaves nothing to be run directly."""
    return flow.publish_on(schedulers.current())


class Ticking:
    """A clock that goes on by so much each time it is looked at."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


async def count_turns(turns: list[int]) -> None:
    while True:
        turns[0] += 1
        await asyncio.sleep(0)


# -- what is run so


@pytest.mark.parametrize("name", ENDS)
async def test_an_end_of_a_flow_that_pulls_its_source_here_needs_no_driver(name: str, driven: list[object]) -> None:
    end = ENDS[name]
    makes: list[Callable[[], Flow[int]]] = [
        lambda: Flow.of(3, 1, 2),
        lambda: Flow.range(1, 40).filter(lambda item: item % 2 == 0).skip(1),
        lambda: Flow.from_iterable(iter([3, 2])),
        lambda: Flow.from_iterable(lambda: (item for item in (1, 2))),
        lambda: Flow.generate(lambda state: None if state > 5 else (state, state + 1), 1),
        lambda: Flow.of(1, 2, 3).flat_map_iterable(lambda item: [item] * item),
        lambda: Flow.of(1, 2).scan(lambda a, b: a + b, 2),
        lambda: Flow.from_awaitable(lambda: asyncio.sleep(0, 1)),
    ]
    for make in makes:
        expected = await end(by_a_driver(make()))
        assert driven
        driven.clear()
        assert expected == await end(make())
        assert not driven


@pytest.mark.parametrize(
    "flow",
    [
        Flow.of(1).publish_on(schedulers.current()),
        Flow.of(1).flat_map(Flow[int].of),
        Flow.of(1).merge(Flow[int].empty()),
    ],
    ids=["boundary", "inner flows", "combined"],
)
async def test_all_others_have_their_drivers(flow: Flow[int], driven: list[object]) -> None:
    assert await flow.to_list() == [1]
    assert driven


async def test_a_flow_that_is_subscribed_to_here_is_run_by_the_task_that_awaits_its_end() -> None:
    tasks = await Flow.of(1).subscribe_on(schedulers.current()).map(lambda _: asyncio.current_task()).to_list()

    assert tasks == [asyncio.current_task()]


# -- turns


@pytest.mark.parametrize(
    "end",
    [ENDS["to_list"], ENDS["for_each"], ENDS["any"], lambda flow: flow.filter(lambda item: False).first(None)],
    ids=["to_list", "for_each", "any", "first"],
)
async def test_others_have_a_turn_each_millisecond(end: End, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [0]
    other = asyncio.create_task(count_turns(turns))
    await asyncio.sleep(0)
    clock = Ticking(0.0)
    monkeypatch.setattr(budgets, "clock", clock)

    def slow(item: int) -> int:
        clock.now += 1e-4
        return item + 10

    await end(Flow.range(200).map(slow))
    other.cancel()

    assert 20 <= turns[0] <= 45  # 20 milliseconds; where two wait, each turn has half


async def test_others_have_a_turn_between_many_short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [0]
    other = asyncio.create_task(count_turns(turns))
    await asyncio.sleep(0)
    clock = Ticking(1e-5)
    monkeypatch.setattr(budgets, "clock", clock)
    flow = Flow.of(1)

    while clock.now < 20e-3:
        await flow.to_list()
    other.cancel()

    assert 15 <= turns[0] <= 45


async def test_on_a_quiet_loop_a_run_begins_in_the_step_that_awaits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(0.0)
    monkeypatch.setattr(budgets, "clock", clock)
    for _ in range(3):
        clock.now += 1.0
        run = asyncio.create_task(Flow.of(1).map(lambda item: item + 1).to_list())

        await asyncio.sleep(0)

        assert run.done()
        assert run.result() == [2]
        await asyncio.sleep(0)  # the turn is over behind the tasks


async def test_runs_that_begin_together_share_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(0.0)
    monkeypatch.setattr(budgets, "clock", clock)

    def slow(item: int) -> int:
        clock.now += 3e-4
        return item

    clock.now = 1.0
    runs = [asyncio.create_task(Flow.of(1).map(slow).to_list()) for _ in range(10)]
    done = []
    while not all(run.done() for run in runs):
        before, at = sum(run.done() for run in runs), clock.now
        await asyncio.sleep(0)
        done.append(sum(run.done() for run in runs) - before)
        assert clock.now - at < 2e-3

    assert done[0] == 4  # each of 0.3 ms
    assert sum(done) == 10


async def test_a_task_with_slow_code_between_its_runs_lets_others_have_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [0]
    other = asyncio.create_task(count_turns(turns))
    await asyncio.sleep(0)
    clock = Ticking(0.0)
    monkeypatch.setattr(budgets, "clock", clock)

    for _ in range(20):
        clock.now += 5e-3
        await Flow.of(1).map(lambda item: item).to_list()
    other.cancel()

    assert turns[0] >= 10  # each second run waits for one


async def test_a_run_that_is_cancelled_in_the_middle_cleans_up_at_once_and_in_its_order() -> None:
    log: list[object] = []

    def source() -> Iterator[int]:
        try:
            n = 0
            while True:
                yield n
                n += 1
        finally:
            log.append("source")

    class Held(Stage[int, int]):
        def apply(self, items: Iterator[int]) -> Iterator[int]:
            return items

        def close(self) -> None:
            log.append("stage")

    with hooks.using(on_discard=lambda item: log.append("list") if not item else None):
        task = asyncio.create_task(Flow.from_iterable(source).then(Held()).to_list())
        for _ in range(3):
            await asyncio.sleep(0)
    assert not log
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert log == ["list", "stage", "source"]


async def test_a_cleanup_that_fails_behind_a_cancel_is_told_to_the_hook() -> None:
    def source() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            raise OSError("stuck")

    dropped: list[BaseException] = []

    async def run() -> None:
        with hooks.using(on_error_dropped=dropped.append):
            await Flow.from_iterable(source).count()

    task = asyncio.create_task(run())
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ["stuck"] == list(map(str, dropped))


# -- contexts


async def test_the_flow_has_a_context_of_its_own_from_its_first_function_to_its_cleanup() -> None:
    seen: list[int] = []

    def source() -> Iterator[int]:
        seen.append(number.get())
        number.set(2)
        try:
            yield 1
        finally:
            seen.append(number.get())
            number.set(4)

    def mapped(item: int) -> int:
        seen.append(number.get())
        number.set(3)
        return item

    number.set(1)
    await Flow.from_iterable(source).map(mapped).to_list()
    await Flow.from_iterable(source).map(mapped).first()

    assert 2 * [1, 2, 3] == seen
    assert number.get() == 1


async def test_the_context_stays_the_same_over_the_turns_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(1e-3)
    monkeypatch.setattr(budgets, "clock", clock)

    def counted(item: int) -> int:
        number.set(number.get() + 1)
        return number.get()

    number.set(0)
    assert [1, 2, 3, 4] == await Flow.range(4).map(counted).to_list()
    assert number.get() == 0


# -- failures


class Own(BaseException):
    """An exception of the user's."""


def fails(error: BaseException) -> Callable[..., Any]:
    def function(*_: object) -> Any:
        raise anew(error)

    return function


def anew(error: BaseException) -> BaseException:
    """An exception like this one, without its notes."""
    return type(error)(*error.args)


class Closing:
    """An iterator that fails where it is closed."""

    def __init__(self, then: BaseException | None = None) -> None:
        self.items = iter([1, 2])
        self.then = then

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.then is not None:
            raise anew(self.then)
        return next(self.items)

    def close(self) -> None:
        raise OSError("can't close")


def in_finally() -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        raise OSError("can't close")


ERRORS = [
    ValueError("wrong"),
    Own("own"),
    KeyboardInterrupt("key"),
    SystemExit(3),
    GeneratorExit("exit"),
    StopIteration("stop"),
    asyncio.CancelledError("cancelled"),
]

FAILING: dict[str, Callable[[BaseException], Flow[Any]]] = {
    "a function": lambda error: Flow.of(1, 2).map(fails(error)),
    "the second element": lambda error: Flow.of(1, 0).filter(lambda item: item or fails(error)()),
    "a source": lambda error: Flow.from_iterable(lambda: Closing(error)),
    "a function that makes a source": lambda error: Flow.from_iterable(fails(error)),
    "a step": lambda error: flow_of(Generate(fails(error), 0)),
    "a stage of many": lambda error: Flow.of(1).flat_map_iterable(fails(error)),
    "behind the last": lambda error: Flow.of(2, 1).sort_by(fails(error)),
}


async def outcome(end: End, flow: Flow[Any]) -> tuple[object, ...]:
    """Return the outcome of an end: its error with the notes, the errors that the hooks got, and the value."""
    dropped: list[str] = []
    with hooks.using(
        on_error_dropped=lambda error: dropped.append(repr(error)), on_discard=lambda item: dropped.append(repr(item))
    ):
        try:
            value = await end(flow)
        except BaseException as error:
            return type(error), str(error), notes_of(error), type(error.__cause__), dropped
    return value, dropped


@pytest.mark.parametrize("end", ["to_list", "first", "for_each", "any"])
@pytest.mark.parametrize("place", FAILING)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_a_failure_is_raised_noted_and_told_of_as_by_a_driver(
    error: BaseException, place: str, end: str, driven: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = FAILING[place](error)
    with monkeypatch.context() as patched:
        patched.setattr(ends, "_way", always_driven)
        expected = await outcome(ENDS[end], flow)
    assert driven
    driven.clear()

    assert expected == await outcome(ENDS[end], flow)
    assert not driven


async def test_a_cancelled_error_of_a_function_is_a_failure() -> None:
    with pytest.raises(SourceCancelledError):
        await Flow.of(1).map(fails(asyncio.CancelledError())).to_list()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


@pytest.mark.parametrize("source", [Closing, in_finally], ids=["iterator", "generator"])
async def test_what_the_cleanup_of_a_source_raises_the_end_raises(source: Callable[[], Iterator[int]]) -> None:
    with pytest.raises(OSError, match="can't close"):
        await Flow.from_iterable(source).first()
    with pytest.raises(OSError, match="can't close"):
        await Flow.from_iterable(source).to_list()


@pytest.mark.parametrize("source", [Closing, in_finally], ids=["iterator", "generator"])
@pytest.mark.parametrize("end", ENDS)
async def test_what_a_cleanup_raises_behind_a_failure_is_noted_as_by_a_driver(
    end: str, source: Callable[[], Iterator[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow.from_iterable(source).map(fails(ValueError("first")))
    with monkeypatch.context() as patched:
        patched.setattr(ends, "_way", always_driven)
        expected = await outcome(ENDS[end], flow)

    assert expected == await outcome(ENDS[end], flow)
    assert expected[0] is ValueError
    assert "can't close" in str(expected)


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()], ids=["ValueError", "CancelledError"])
async def test_a_stage_that_can_not_be_begun_with_fails_the_flow(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Stage[int, int]):
        def transform(self) -> Stage[int, int]:
            raise anew(error)

    flow = Flow.of(1).then(Broken())
    with monkeypatch.context() as patched:
        patched.setattr(ends, "_way", always_driven)
        expected = await outcome(ENDS["to_list"], flow)

    assert expected == await outcome(ENDS["to_list"], flow)
    assert expected[0] is not list


# -- one inside another


async def test_an_end_may_be_awaited_by_a_function_of_another_flow() -> None:
    async def inner(item: int) -> int:
        return await Flow.range(item).sum()

    assert [0, 0, 1, 3] == await Flow.range(4).map_async(inner, max_concurrency=2).to_list()


async def test_an_end_may_be_awaited_by_the_source_of_another_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(3e-4)
    monkeypatch.setattr(budgets, "clock", clock)
    turns = [0]
    other = asyncio.create_task(count_turns(turns))

    async def outer() -> AsyncIterator[int]:
        for n in range(5):
            yield await Flow.range(10 * n).map(lambda item: item + 1).count()

    assert [0, 10, 20, 30, 40] == await Flow.from_async_iterable(outer).to_list()
    assert [0, 10, 20, 30, 40] == [item async for item in Flow.from_async_iterable(outer)]
    other.cancel()
    assert turns[0] > 20


async def test_a_run_leaves_nothing_of_a_turn_behind() -> None:
    budget = budgets.Budget.of(asyncio.get_running_loop())

    await Flow.of(1).map(lambda item: item).to_list()
    with pytest.raises(ValueError, match="wrong"):
        await Flow.of(1).map(fails(ValueError("wrong"))).to_list()

    assert budget.until == 0.0


async def test_a_failure_is_let_go_of_when_it_has_been_raised() -> None:
    class KeptError(ValueError):
        pass

    async def run() -> weakref.ref[BaseException]:
        try:
            await Flow.of(1).map(lambda _: (_ for _ in ()).throw(KeptError("gone"))).map(list).to_list()
        except KeptError as error:
            return weakref.ref(error)
        raise AssertionError

    gc.disable()
    try:
        kept = await run()
        assert kept() is None
    finally:
        gc.enable()
