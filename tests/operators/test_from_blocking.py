"""from_blocking: an iterator that blocks, on a thread of its own for each subscription."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, hooks, schedulers
from tests.subscribers import Recorder, idle

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
PATIENCE = 20.0
"""Seconds after which a client gives up, so that a test fails and does not hang."""


@define(eq=False)
class Client:
    """A client that blocks until the test puts something in; None where there is nothing yet."""

    inbox: queue.SimpleQueue[Any] = field(factory=queue.SimpleQueue[Any])
    blocked: threading.Event = field(factory=threading.Event)
    threads: list[threading.Thread] = field(factory=list[threading.Thread])
    log: list[str] = field(factory=list[str])

    def poll(self) -> Iterator[Any]:
        self.threads.append(threading.current_thread())
        self.log.append(f"open {VARIABLE.get()}")
        try:
            while True:
                self.blocked.set()
                item = self.inbox.get(timeout=PATIENCE)
                if item == "end":
                    return
                yield item
        finally:
            self.threads.append(threading.current_thread())
            self.log.append("close")


async def blocked(client: Client) -> None:
    """Wait until the client blocks, from now on."""
    await asyncio.to_thread(client.blocked.wait, PATIENCE)
    client.blocked.clear()


async def test_its_elements_come_and_none_of_them_is_none() -> None:
    client = Client()
    for item in (1, None, None, 2, 0, "end"):
        client.inbox.put(item)

    assert [1, 2, 0] == await Flow.from_blocking(client.poll).to_list()
    assert "close" == client.log[-1]


async def test_it_is_opened_read_and_closed_on_one_thread_which_ends_with_it() -> None:
    client = Client()
    client.inbox.put("end")
    VARIABLE.set("subscriber's")
    await Flow.from_blocking(client.poll).to_list()

    (thread,) = set(client.threads)
    assert threading.current_thread() is not thread
    assert "poll" == thread.name
    assert not thread.is_alive()
    assert ["open subscriber's", "close"] == client.log


async def test_the_loop_goes_on_and_an_element_arrives_while_the_client_blocks() -> None:
    client, recorder = Client(), Recorder(9)
    Flow.from_blocking(client.poll).publish_on(schedulers.current()).subscribe(recorder)
    client.inbox.put("a")
    await blocked(client)
    while not recorder.items:
        await asyncio.sleep(0)
    assert ["a"] == recorder.items
    client.inbox.put("end")
    await recorder.over.wait()


async def test_two_subscriptions_do_not_wait_for_each_other() -> None:
    clients = [Client(), Client()]
    each = iter(clients)
    flow = Flow.from_blocking(lambda: next(each).poll())
    tasks = [asyncio.ensure_future(flow.to_list()) for _ in clients]
    await blocked(clients[0])
    await blocked(clients[1])
    clients[1].inbox.put("end")
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [1, 0] == [len(client.log) - 1 for client in reversed(clients)]
    clients[0].inbox.put("end")
    assert [[], []] == await asyncio.gather(*tasks)
    assert 1 == len(done)


async def test_a_cancel_is_heard_of_when_the_client_says_that_there_is_nothing_yet(hurried: None) -> None:
    client = Client()
    task = asyncio.ensure_future(Flow.from_blocking(client.poll).to_list())
    await blocked(client)
    task.cancel()
    await idle()
    assert ["open unset"] == client.log
    assert not task.done()
    client.inbox.put(None)
    with suppress(asyncio.CancelledError):
        await task

    assert task.cancelled()
    assert ["open unset", "close"] == client.log
    assert not client.threads[0].is_alive()


async def test_an_element_that_comes_behind_a_cancel_is_discarded(hurried: None) -> None:
    client, discarded = Client(), list[Any]()
    with hooks.using(on_discard=discarded.append):
        task = asyncio.ensure_future(Flow.from_blocking(client.poll).to_list())
        await blocked(client)
        task.cancel()
        await idle()
        client.inbox.put("late")
        with suppress(asyncio.CancelledError):
            await task

    assert ["late"] == discarded
    assert "close" == client.log[-1]


async def test_the_plan_shows_it_by_its_name() -> None:
    client = Client()
    client.inbox.put(2)
    flow = Flow.from_blocking(client.poll)

    assert "thread('poll')" in flow.describe()
    assert "from_blocking(poll)" in flow.describe()


async def test_its_exception_arrives_behind_its_elements() -> None:
    def poll() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    taken: list[int] = []
    with pytest.raises(OSError, match="gone"):
        await Flow.from_blocking(poll).for_each(taken.append)

    assert [1] == taken


async def _numbers() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Flow.from_blocking(3), "takes a function, not int"),
        (lambda: Flow.from_blocking(iter([1])), "takes a function that returns an iterator, not list_iterator"),
        (lambda: Flow.from_blocking(asyncio.sleep), "async def"),
        (lambda: Flow.from_blocking(_numbers), "use Flow.from_async_iterable"),
    ],
)
def test_bad_arguments_are_refused_at_once(build: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        build()
