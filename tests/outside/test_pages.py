"""The programs at the head of the pages "Writing a ..." use public names only, and work as the pages say."""

from __future__ import annotations

import asyncio
import re
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, schedulers
from reactive_aio.testing import run_virtual
from tests.outside.fallback import or_else
from tests.outside.heartbeat import heartbeat
from tests.outside.letters import letters
from tests.outside.pages import paged
from tests.outside.portal import on_portal
from tests.outside.radio import Radio
from tests.subscribers import Recorder, idle

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "writing-an-operator": "stutter",
    "writing-a-source": "pages",
    "writing-a-connector": "letters",
    "writing-a-combinator": "fallback",
    "writing-a-timed-operator": "heartbeat",
    "writing-a-shared-source": "radio",
    "writing-a-scheduler": "portal",
    "writing-an-engine": "shards",
}
CONCEPTS = {
    "writing-an-operator": 2,
    "writing-a-source": 2,
    "writing-a-connector": 1,
    "writing-a-combinator": 3,
    "writing-a-timed-operator": 4,
    "writing-a-shared-source": 5,
    "writing-a-scheduler": 4,
    "writing-an-engine": 6,
}
"""How many names of the library's an example needs, at most; `Flow` is known."""


def source_of(module: str) -> str:
    path = import_module(f"tests.outside.{module}").__file__
    assert path is not None
    return Path(path).read_text().split('"""\n\n', 1)[1]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_begins_with_the_module(page: str) -> None:
    (first, *_) = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)

    assert first.startswith(source_of(PAGES[page]))


@pytest.mark.parametrize("page", PAGES)
def test_few_names_are_all_that_it_takes(page: str) -> None:
    names = set[str]()
    for line in re.findall(r"^from reactive_aio\S* import (.*)$", source_of(PAGES[page]), re.MULTILINE):
        names |= set(line.split(", "))

    assert len(names - {"Flow"}) <= CONCEPTS[page]


# -- a source


async def test_a_page_is_fetched_when_an_element_of_it_is_wanted() -> None:
    fetched: list[int] = []

    async def fetch(number: int) -> list[int]:
        await asyncio.sleep(0)
        fetched.append(number)
        return [2 * number, 2 * number + 1] if number < 3 else []

    recorder = Recorder(3)
    paged(fetch).map(abs).subscribe(recorder)
    await idle()
    assert [0, 1, 2] == recorder.items
    assert [0, 1] == fetched

    recorder.request(UNBOUNDED)
    await recorder.over.wait()
    assert [0, 1, 2, 3, 4, 5] == recorder.items
    assert [0, 1, 2, 3] == fetched


async def test_all_pages_are_fetched_by_one_task_for_each_subscription() -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def fetch(number: int) -> list[int]:
        tasks.append(asyncio.current_task())
        return [number] if number < 3 else []

    flow = paged(fetch)

    assert [0, 1, 2] == [item async for item in flow] == await flow.to_list()
    first, second = set(tasks[:4]), set(tasks[4:])
    assert [1, 1] == [len(first), len(second)]
    assert set() == first & second


async def test_a_page_that_can_not_be_fetched_fails_the_flow_behind_the_pages_before_it() -> None:
    async def fetch(number: int) -> list[int]:
        if number:
            raise OSError("gone")
        return [1, 2]

    recorder = Recorder()
    paged(fetch).subscribe(recorder)
    await idle()
    recorder.request(UNBOUNDED)
    await recorder.over.wait()

    assert [1, 2] == recorder.items
    assert "gone" == str(recorder.error)


# -- a connector


@define(eq=False)
class PostOffice:
    """A server of letters, which writes down the requests that it gets."""

    left: list[str] = field(factory=lambda: ["a", "b", "c"])
    told: list[str] = field(factory=list[str])
    noticed: asyncio.Event = field(factory=asyncio.Event)
    gone: asyncio.Event = field(factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = list(self.left)
        while line := await reader.readline():
            self.told.append(line.decode().strip())
            word, _, number = self.told[-1].partition(" ")
            if word == "NOOP":
                self.noticed.set()
            taken, left = left[: int(number or 0)], left[int(number or 0) :]
            count = len(taken) if taken or word == "NOOP" else -1
            writer.write("".join(f"{each}\n" for each in (count, *taken)).encode())
        writer.close()
        self.gone.set()


async def test_the_server_is_asked_for_what_is_wanted_and_told_of_the_end() -> None:
    office = PostOffice()
    async with await asyncio.start_server(office.serve, "127.0.0.1", 0) as server:
        flow = letters(*server.sockets[0].getsockname())
        assert ["a", "b"] == await flow.take(2).to_list()
        await office.gone.wait()
        assert ["TAKE 2", "QUIT"] == office.told
        assert ["A", "B", "C"] == await flow.map(str.upper).to_list()

    assert ["TAKE 64", "TAKE 64", "QUIT"] == office.told[2:]


async def test_the_server_hears_of_a_client_that_nobody_wants_anything_of() -> None:
    office = PostOffice()
    async with await asyncio.start_server(office.serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        async with letters(host, port, heartbeat=1e-3).open() as items:
            first = await anext(items)
            await office.noticed.wait()
            rest = [item async for item in items]

    assert ["a", "b", "c"] == [first, *rest]


# -- a combinator


def failing(*items: int) -> Flow[int]:
    def make() -> Any:
        yield from items
        raise OSError("gone")

    return Flow.from_iterable(make())


async def test_a_flow_that_fails_before_it_gives_anything_is_replaced() -> None:
    assert [3, 4] == await failing().through(or_else(failing(), Flow.of(3, 4))).to_list()


async def test_a_flow_that_fails_later_or_without_another_fails_the_whole() -> None:
    for flow in failing(1).through(or_else(Flow.of(2))), failing().through(or_else(failing())):
        with pytest.raises(OSError, match="gone"):
            await flow.to_list()


async def test_it_asks_the_next_flow_for_what_was_wanted_of_the_first() -> None:
    recorder = Recorder(2)
    failing().through(or_else(Flow.range(9))).subscribe(recorder)
    await idle()

    assert [0, 1] == recorder.items


# -- an operator with a clock


def test_a_beat_comes_when_nothing_has_come_for_a_while() -> None:
    async def slowly() -> Any:
        for seconds in (0.5, 2.5, 0.5):
            await asyncio.sleep(seconds)
            yield seconds

    flow = Flow.from_async_iterable(slowly()).through(heartbeat(1.0, "beat"))

    assert [0.5, "beat", "beat", 2.5, 0.5] == run_virtual(flow.to_list())


async def test_a_silent_source_is_not_asked_again_for_each_beat() -> None:
    class Silent:
        asked = 0

        def subscribe(self, subscriber: Any) -> None:
            subscriber.on_subscribe(self)

        def request(self, n: int) -> None:
            self.asked += n

        def cancel(self) -> None: ...

    silent = Silent()
    beats = (
        await Flow.from_publisher(silent)
        .publish_on(schedulers.current(), prefetch=1)
        .through(heartbeat(0.001, "beat"))
        .take(5)
        .to_list()
    )

    assert ["beat"] * 5 == beats
    assert silent.asked == 1


# -- a source with several readers


async def test_all_listeners_hear_the_same_run_at_the_pace_of_the_slowest() -> None:
    began: list[int] = []
    radio = Radio(Flow.range(6).do_on_next(began.append))
    quick, slow = Recorder(), Recorder()
    radio.listen().subscribe(quick)
    radio.listen().subscribe(slow)
    await idle()
    quick.request(UNBOUNDED)
    await idle()
    assert [] == began

    slow.request(2)
    await idle()
    assert [0, 1] == quick.items == slow.items == began

    slow.request(UNBOUNDED)
    await slow.over.wait()
    assert [0, 1, 2, 3, 4, 5] == quick.items == slow.items == began


async def test_the_last_to_leave_ends_the_run_and_a_failure_reaches_all() -> None:
    cancelled: list[str] = []
    radio = Radio(Flow.never().do_on_cancel(lambda: cancelled.append("run")))
    first, second = Recorder(1), Recorder(1)
    radio.listen().subscribe(first)
    radio.listen().subscribe(second)
    await idle()
    first.cancel()
    await idle()
    assert [] == cancelled
    second.cancel()
    await idle()
    assert ["run"] == cancelled

    radio = Radio(Flow.error(OSError("gone")))
    heard = [Recorder(1), Recorder(1)]
    for recorder in heard:
        radio.listen().subscribe(recorder)
    await idle()
    assert [OSError, OSError] == [type(recorder.error) for recorder in heard]


# -- a scheduler


def test_a_scheduler_runs_regions_on_its_loop() -> None:
    with start_blocking_portal() as portal:
        place = on_portal(portal)
        flow = Flow.range(2).map(lambda n: (n, threading.get_ident())).publish_on(place)
        there = flow.map(lambda pair: (*pair, threading.get_ident())).run_sync()
        home = portal.call(threading.get_ident)

    assert [(0, threading.get_ident(), home), (1, threading.get_ident(), home)] == there
