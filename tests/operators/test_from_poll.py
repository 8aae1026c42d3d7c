"""from_poll: a client is asked for as many elements as are wanted, in one task and one context."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, SourceCancelledError, hooks, schedulers
from reactive_aio.testing import run_virtual
from tests.subscribers import Recorder, idle

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@define(eq=False)
class Client:
    """A Poll that opens itself, writes down the calls, and gives the answers of the test."""

    answers: deque[Any] = field(converter=deque[Any])
    """The result of each fetch: a number of elements, "as asked" for all that are wanted, or an exception to raise."""
    log: list[str] = field(factory=list[str])
    failing: dict[str, BaseException] = field(factory=dict[str, BaseException])
    slow: dict[str, float] = field(factory=dict[str, float])
    seen: set[tuple[object, str]] = field(factory=set[tuple[object, str]])
    """The tasks that call, and the variable as they see it."""
    at: int = 0

    async def _called(self, name: str, method: str) -> None:
        self.log.append(name)
        self.seen.add((asyncio.current_task(), VARIABLE.get()))
        await asyncio.sleep(self.slow.get(method, 0))
        if method in self.failing:
            raise self.failing[method]

    async def __aenter__(self) -> Client:
        await self._called("open", "open")
        VARIABLE.set("opened")
        self.seen.clear()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._called("leave" if kind is None else f"leave by {kind.__name__}", "leave")

    async def fetch(self, n: int) -> Any:
        await self._called(f"fetch {n}", "fetch")
        if not self.answers:
            raise StopAsyncIteration
        answer = self.answers.popleft()
        if isinstance(answer, BaseException):
            raise answer
        if answer == "as asked":
            answer = n
        if not isinstance(answer, int):
            return answer
        start, self.at = self.at, self.at + answer
        return range(start, self.at)

    async def idle(self) -> None:
        await self._called("idle", "idle")

    async def close(self) -> None:
        await self._called("close", "close")


def polled(client: Client, **options: Any) -> Flow[Any]:
    return Flow.from_poll(lambda: client, **options)


async def test_a_client_is_asked_for_what_is_wanted_and_for_no_more_than_a_batch() -> None:
    client, recorder = Client(["as asked"] * 9), Recorder()
    polled(client, max_batch=4).subscribe(recorder)
    await idle()
    assert [] == client.log
    recorder.request(2)
    await idle()
    assert ["open", "fetch 2"] == client.log
    recorder.request(6)
    await idle()
    assert ["open", "fetch 2", "fetch 4", "fetch 2"] == client.log
    assert [*range(8)] == recorder.items
    recorder.request(UNBOUNDED)
    await idle()
    assert {"fetch 4"} == {*client.log[4:6]}
    recorder.cancel()


async def test_it_is_asked_for_what_it_has_not_given() -> None:
    client = Client([1, 0, 2, "as asked"])

    assert [*range(5)] == await polled(client, max_batch=5).take(5).to_list()
    assert ["fetch 5", "fetch 4", "fetch 4", "fetch 2"] == client.log[1:5]


async def test_stop_async_iteration_is_the_end() -> None:
    client = Client([2, 1])

    assert [0, 1, 2] == await polled(client).to_list()
    assert ["close", "leave"] == client.log[-2:]


async def test_each_subscription_opens_a_client_of_its_own() -> None:
    flow: Flow[int] = Flow.from_poll(lambda: Client([2]))

    assert [0, 1, 0, 1] == await flow.repeat(2).to_list()


async def test_one_task_and_one_context_for_all() -> None:
    client = Client([1, 1])

    async def first() -> None:
        async with polled(client, heartbeat=1).open() as items:
            await anext(items)
            await asyncio.sleep(2.5)

    run = asyncio.ensure_future(asyncio.to_thread(run_virtual, first()))
    await run
    assert ["open", "fetch 1", "idle", "idle", "close", "leave by CancelledError"] == client.log
    ((_, variable),) = client.seen
    assert "opened" == variable
    assert "unset" == VARIABLE.get()


def test_a_client_that_nothing_is_wanted_of_hears_of_it_once_a_heartbeat() -> None:
    times = list[float]()

    class Alive(Client):
        async def idle(self) -> None:
            times.append(asyncio.get_running_loop().time())

    async def main() -> None:
        recorder = Recorder(1)
        polled(Alive(["as asked"] * 9), heartbeat=2).subscribe(recorder)
        await asyncio.sleep(5)
        recorder.request(1)
        await asyncio.sleep(3)
        recorder.cancel()
        await asyncio.sleep(5)

    run_virtual(main())
    assert [2.0, 4.0, 7.0] == times


def test_what_is_wanted_while_it_is_idle_is_fetched_behind_that() -> None:
    client = Client(["as asked"] * 9, slow={"idle": 10})

    async def main() -> list[Any]:
        recorder = Recorder(1)
        polled(client).subscribe(recorder)
        await asyncio.sleep(5)
        recorder.request(2)
        await asyncio.sleep(7)
        recorder.cancel()
        return recorder.items

    assert [0, 1, 2] == run_virtual(main())
    assert ["open", "fetch 1", "idle", "fetch 2"] == client.log[:4]


async def test_a_client_that_has_nothing_yet_over_and_over_lets_the_loop_have_its_turns() -> None:
    class Empty(Client):
        async def fetch(self, n: int) -> Any:
            self.at += 1
            return ()

    client, turns = Empty([]), 0
    recorder = Recorder(1)
    polled(client).subscribe(recorder)
    while client.at < 50:
        await asyncio.sleep(0)
        turns += 1
    recorder.cancel()
    await idle()

    assert turns >= 50
    assert "close" == client.log[-2]


async def test_a_terminal_that_is_cancelled_returns_when_the_client_has_been_closed() -> None:
    client = Client(["as asked"], slow={"fetch": 1e6, "close": 0, "leave": 0})
    task = asyncio.ensure_future(polled(client).to_list())
    await idle()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    assert ["open", "fetch 256", "close", "leave by CancelledError"] == client.log


def test_no_cancel_cuts_the_closing_short() -> None:
    client = Client([2], slow={"close": 10, "leave": 10})

    async def main() -> float:
        recorder = Recorder(5)
        polled(client).subscribe(recorder)
        await asyncio.sleep(5)
        recorder.cancel()
        await asyncio.sleep(100)
        return len(client.log)

    run_virtual(main())
    assert ["close", "leave"] == client.log[-2:]


async def test_take_closes_the_client_behind_the_last_element() -> None:
    client = Client(["as asked"] * 3)

    assert [0, 1, 2] == await polled(client).take(3).to_list()
    assert ["open", "fetch 3", "close", "leave by CancelledError"] == client.log


async def test_elements_that_come_behind_a_cancel_are_discarded() -> None:
    class Stubborn(Client):
        async def fetch(self, n: int) -> Any:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return ["late"]

    discarded: list[Any] = []
    client = Stubborn([])
    with hooks.using(on_discard=discarded.append):
        task = asyncio.ensure_future(polled(client).to_list())
        await idle()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    assert ["late"] == discarded
    assert ["open", "close", "leave"] == client.log


@pytest.mark.parametrize("method", ["open", "fetch", "idle", "close", "leave"])
@pytest.mark.parametrize("error", [OSError("gone"), SystemExit(3), BaseException("bare")], ids=repr)
def test_whatever_it_raises_fails_the_flow(method: str, error: BaseException) -> None:
    client = Client(["as asked"] * 2, failing={method: error})
    flow = polled(client, max_batch=2)

    async def main() -> Any:
        async with flow.open() as items:
            await anext(items)
            await asyncio.sleep(5)
            return [item async for item in items]

    with pytest.raises(type(error)) as caught:
        run_virtual(main())

    assert error is caught.value
    assert "in from_poll(" in caught.value.__notes__[0]
    assert "test_from_poll.py" in caught.value.__notes__[0]


@pytest.mark.parametrize("method", ["close", "leave"])
async def test_a_cancelled_error_of_the_closing_is_a_failure(method: str) -> None:
    client = Client(["as asked"] * 2, failing={method: asyncio.CancelledError("its own")})

    with pytest.raises(SourceCancelledError):
        await polled(client).take(2).to_list()


async def test_an_exception_of_closing_behind_a_failure_is_noted_and_goes_to_the_hook() -> None:
    second, dropped = KeyError("second"), list[BaseException]()
    client = Client([OSError("first")], failing={"close": second})

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(OSError, match="first") as caught:
        await polled(client).to_list()

    assert [second] == dropped
    assert "a further failure: KeyError: 'second'" in caught.value.__notes__
    assert "leave by OSError" == client.log[-1]


async def test_more_than_was_asked_for_is_an_error_and_nothing_of_it_is_kept() -> None:
    discarded: list[Any] = []
    client = Client([5])

    with hooks.using(on_discard=discarded.append), pytest.raises(ValueError, match=r"fetch\(3\) returned 5") as caught:
        await polled(client, max_batch=3).to_list()

    assert "from_poll" in str(caught.value)
    assert "chained at" in caught.value.__notes__[0]
    assert [*range(5)] == discarded
    assert "close" == client.log[-2]


@pytest.mark.parametrize("given", ["abc", None, b"abc", {1, 2}, iter([1])], ids=lambda given: type(given).__name__)
async def test_what_is_no_sequence_is_an_error(given: object) -> None:
    with pytest.raises(TypeError, match=rf"from_poll.*not {type(given).__name__}"):
        await polled(Client([given])).to_list()


async def test_what_was_opened_has_to_be_a_poll() -> None:
    with pytest.raises(TypeError, match="must open a Poll, but opened NoneType, which lacks fetch, idle, close"):
        await Flow.from_poll(asyncio.Lock).to_list()
    with pytest.raises(TypeError, match="must return an async context manager, but returned int"):
        await Flow.from_poll(lambda: 3).to_list()  # type: ignore[return-value]


async def test_it_runs_where_it_is_placed() -> None:
    client = Client(["as asked"] * 4)
    flow = polled(client, max_batch=5).subscribe_on(schedulers.thread("polls"))

    assert [*range(20)] == await flow.to_list()


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: Flow.from_poll(3), TypeError, "takes a function, not int"),
        (lambda: Flow.from_poll(asyncio.sleep), TypeError, "async def"),
        (lambda: Flow.from_poll(Client([])), TypeError, "not an async context manager"),
        (lambda: Flow.from_poll(print, max_batch=0), ValueError, "max_batch must be at least 1"),
        (lambda: Flow.from_poll(print, heartbeat=0), ValueError, "heartbeat must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_refused_at_once(build: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build()


async def test_a_cancel_of_all_tasks_is_not_reported() -> None:
    client, dropped = Client([], slow={"fetch": 60, "close": 0.01}), list[BaseException]()
    with hooks.using(on_error_dropped=dropped.append):
        reading = asyncio.create_task(polled(client).drain())
        while len(client.log) < 2:
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as `asyncio.run` does when it ends
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    assert "close" in client.log
    assert [] == dropped


async def test_a_cancel_of_all_tasks_while_it_closes_is_not_reported() -> None:
    client, dropped = Client([], slow={"close": 0.01}), list[BaseException]()
    with hooks.using(on_error_dropped=dropped.append):
        reading = asyncio.create_task(polled(client).drain())
        while "close" not in client.log:
            await asyncio.sleep(0)
        for task in (reading, *(asyncio.all_tasks() - {asyncio.current_task(), reading})):
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    assert [] == dropped
