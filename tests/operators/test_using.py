"""using: a resource that is open for as long as the flow lives that is made of it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, SourceCancelledError, hooks, schedulers
from tests.subscribers import Recorder, idle

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class BrokenError(Exception):
    """How things fail here."""


@define(eq=False)
class Store:
    """A resource of either kind, and what became of it."""

    numbers: range = range(3)
    wait: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0)
    steps: list[str] = field(init=False, factory=list[str])
    tasks: list[asyncio.Task[Any] | None] = field(init=False, factory=list[Any])

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[range]:
        self.tasks.append(asyncio.current_task())
        await self.wait()
        with self.lent_at_once() as numbers:
            try:
                yield numbers
            finally:
                await asyncio.sleep(0)
                self.tasks.append(asyncio.current_task())

    @contextmanager
    def lent_at_once(self) -> Generator[range]:
        self.steps.append("open")
        try:
            yield self.numbers
        except BaseException as error:
            self.steps.append(type(error).__name__)
            raise
        else:
            self.steps.append("committed")
        finally:
            self.steps.append("closed")


kinds = pytest.mark.parametrize("kind", ["lent", "lent_at_once"], ids=["async", "ordinary"])


@kinds
@pytest.mark.usefixtures("still")
async def test_the_resource_is_closed_when_the_flow_has_completed_and_before_the_terminal_returns(kind: str) -> None:
    store = Store()
    flow = Flow.using(getattr(store, kind), Flow.from_iterable).do_on_next(lambda n: store.steps.append(str(n)))

    await flow.drain()
    assert ["open", "0", "1", "2", "committed", "closed"] == store.steps


async def test_a_subscriber_hears_of_the_end_when_the_resource_has_been_closed() -> None:
    store = Store()
    recorder = Recorder(9)
    recorder.on_complete = lambda: store.steps.append("complete")
    Flow.using(store.lent, Flow.from_iterable).subscribe(recorder)
    await idle(50)

    assert ["open", "committed", "closed", "complete"] == store.steps


@kinds
async def test_a_failure_of_the_flow_is_that_of_the_block(kind: str) -> None:
    store = Store()
    error = BrokenError()

    with pytest.raises(BrokenError) as caught:
        await Flow.using(getattr(store, kind), lambda _: Flow.error(error)).to_list()

    assert caught.value is error
    assert ["open", "BrokenError", "closed"] == store.steps


@kinds
async def test_a_cancel_is_that_of_the_block(kind: str) -> None:
    store = Store()

    assert 0 == await Flow.using(getattr(store, kind), Flow.from_iterable).first()
    assert ["open", "CancelledError", "closed"] == store.steps


async def test_the_resource_is_closed_when_the_flow_has_cleaned_up() -> None:
    store = Store()

    async def reading(numbers: range) -> AsyncIterator[int]:
        try:
            for n in numbers:
                yield n
        finally:
            await asyncio.sleep(0)
            store.steps.append("read to the end")

    flow = Flow.using(store.lent, lambda numbers: Flow.from_async_iterable(reading(numbers)))
    await flow.first()
    assert ["open", "read to the end", "CancelledError", "closed"] == store.steps

    store.steps.clear()
    await flow.to_list()
    assert ["open", "read to the end", "committed", "closed"] == store.steps


async def test_the_flow_may_run_on_another_thread_and_is_waited_for() -> None:
    store = Store()
    thread = schedulers.thread("reading")

    flow = Flow.using(store.lent, lambda numbers: Flow.from_iterable(numbers).map(str).subscribe_on(thread))
    assert ["0", "1", "2"] == await flow.to_list()
    assert "0" == await flow.first()
    assert ["open", "committed", "closed", "open", "CancelledError", "closed"] == store.steps


async def test_each_subscription_has_a_resource_of_its_own() -> None:
    store = Store()

    assert [0, 1, 2] * 2 == await Flow.using(store.lent, Flow.from_iterable).repeat(2).to_list()
    assert ["open", "committed", "closed"] * 2 == store.steps


async def test_one_task_enters_and_leaves() -> None:
    store = Store()
    await Flow.using(store.lent, Flow.from_iterable).to_list()
    await Flow.using(store.lent, Flow.from_iterable).first()

    entered, left, again, left_again = store.tasks
    assert entered is left is not None
    assert again is left_again is not None


async def test_demand_is_passed_on_and_an_empty_flow_completes_without() -> None:
    recorder, empty = Recorder(), Recorder()
    store = Store()
    read: list[int] = []
    flow: Flow[int] = Flow.using(store.lent, lambda numbers: Flow.from_iterable(numbers).do_on_next(read.append))
    flow.subscribe(recorder)
    nothing: Flow[int] = Flow.empty()
    Flow.using(store.lent, lambda _: nothing).subscribe(empty)
    await idle()
    assert [] == read
    assert ["subscribe", "complete"] == empty.kinds
    recorder.request(2)
    await idle()
    assert [0, 1] == read == recorder.items
    recorder.cancel()
    await idle()


async def test_a_cancel_while_the_resource_is_being_entered_breaks_that_off() -> None:
    entering = asyncio.Event()
    store = Store(wait=asyncio.Event().wait)

    async def wait() -> None:
        entering.set()
        await asyncio.sleep(1000)

    store.wait = wait
    recorder = Recorder(1)
    Flow.using(store.lent, Flow.from_iterable).subscribe(recorder)
    await entering.wait()
    recorder.cancel()
    await idle()

    assert [] == store.steps
    task = store.tasks[0]
    assert task is not None
    assert task.cancelled()


async def test_a_cancel_while_the_resource_is_being_left_does_not_disturb_that() -> None:
    leaving, go_on, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[int]:
        yield 1
        leaving.set()
        await go_on.wait()
        left.set()

    recorder = Recorder(9)
    Flow.using(slow, Flow.of).subscribe(recorder)
    await leaving.wait()
    recorder.cancel()
    await idle()
    go_on.set()
    await idle()

    assert left.is_set()
    assert ["subscribe", "next"] == recorder.kinds


async def test_a_task_that_somebody_else_cancels_is_a_failure_and_leaves_the_resource() -> None:
    store = Store()
    recorder = Recorder(1)
    Flow.using(store.lent, lambda _: Flow.never()).subscribe(recorder)
    await idle()
    task = store.tasks[0]
    assert task is not None
    task.cancel()
    await recorder.over.wait()

    assert isinstance(recorder.error, SourceCancelledError)
    assert ["open", "CancelledError", "closed"] == store.steps


@contextmanager
def broken_at(place: str) -> Generator[int]:
    if place == "enter":
        raise BrokenError(place)
    yield 1
    if place == "leave":
        raise BrokenError(place)


@pytest.mark.parametrize("place", ["make", "enter", "fn", "leave"])
async def test_whatever_fails_besides_the_flow_names_the_source(place: str) -> None:
    def make() -> Any:
        if place == "make":
            raise BrokenError(place)
        return broken_at(place)

    def fn(n: int) -> Any:
        if place == "fn":
            raise BrokenError(place)
        return Flow.of(n)

    items: list[int] = []
    with pytest.raises(BrokenError, match=place) as caught:
        await Flow.using(make, fn).for_each(items.append)

    assert "in using(make, fn), chained at" in caught.value.__notes__[0]
    assert items == ([1] if place == "leave" else [])


async def test_an_exception_of_leaving_behind_an_early_end_arrives_at_the_end_that_is_awaited() -> None:
    dropped: list[BaseException] = []

    @contextmanager
    def breaking() -> Generator[range]:
        try:
            yield range(3)
        finally:
            raise BrokenError

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(BrokenError):
        await Flow.using(breaking, Flow.from_iterable).first()
    assert [] == dropped


async def test_a_failure_that_the_resource_suppresses_completes_the_flow() -> None:
    flow = Flow.using(lambda: suppress(BrokenError), lambda _: Flow.of(1).concat(Flow.error(BrokenError())))

    assert [1] == await flow.to_list()


async def test_functions_see_the_variables_of_the_subscriber() -> None:
    @contextmanager
    def seen() -> Generator[str]:
        yield VARIABLE.get()

    flow = Flow.using(seen, lambda text: Flow.of(text, VARIABLE.get()).map(lambda each: (each, VARIABLE.get())))
    VARIABLE.set("subscriber's")

    assert [("subscriber's", "subscriber's")] * 2 == await flow.to_list()


async def test_what_is_no_context_manager_is_named() -> None:
    wrong: Any = lambda: 3  # noqa: E731
    with pytest.raises(TypeError, match="<lambda> must return a context manager, but returned int: see contextlib"):
        await Flow.using(wrong, Flow.of).to_list()


async def test_what_is_no_flow_is_named() -> None:
    wrong: Any = lambda n: [n]  # noqa: E731
    with pytest.raises(TypeError, match=r"using\(\) takes flows, not list"):
        await Flow.using(lambda: nullcontext(1), wrong).to_list()


async def coming() -> AbstractAsyncContextManager[int]:
    return nullcontext(1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Flow.using(nullcontext(1), Flow.of), "not a context manager. Write using"),
        (lambda: Flow.using(3, Flow.of), "using.. takes a function, not int"),
        (lambda: Flow.using(coming, Flow.of), "coming is async def: return an async context manager"),
        (lambda: Flow.using(nullcontext, None), "using.. takes a function, not NoneType"),
        (lambda: Flow.using(nullcontext, coming), "coming is async def: return the flow"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make()


def test_a_class_of_context_managers_is_a_function_that_gives_one() -> None:
    assert [None] == Flow.using(nullcontext, Flow.of).run_sync()


async def test_a_cancel_of_all_tasks_while_the_resource_is_being_left_is_not_reported() -> None:
    leaving, dropped = asyncio.Event(), list[BaseException]()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            leaving.set()
            await asyncio.Event().wait()

    with hooks.using(on_error_dropped=dropped.append):
        reading = asyncio.create_task(Flow.using(slow, lambda _: Flow.range(9)).take(1).to_list())
        await leaving.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.wait([reading])

    assert [] == dropped
