"""A reader of a substream gets the elements as they come and in order, also if one calls from inside the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow
from reactive_aio._core import budgets
from reactive_aio.operators.windowing.substream import Substream
from reactive_aio.operators.windowing.window import OneWindow
from reactive_aio.spec import UNBOUNDED, Subscription
from tests.runtime.test_direct import Ticking
from tests.subscribers import Recorder


def nothing(_: list[Any]) -> None:
    """A reader that does nothing with elements, like most."""


@define(eq=False)
class Inlet:
    """Where a substream delivers: writes down what it is given."""

    react: Callable[[list[Any]], None] = nothing
    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    context: Context = field(factory=copy_context)
    given: list[Any] = field(factory=list[Any])
    events: list[Callable[[], None]] = field(factory=list[Callable[[], None]])

    def on_chunk(self, items: list[Any]) -> None:
        self.given.append(items)
        self.react(items)

    def on_complete(self) -> None:
        self.given.append("complete")

    def on_error(self, error: BaseException) -> None:
        self.given.append(error)

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        self.events.append(lambda: handle(value))

    def work(self) -> None:
        """Do what waits for an event."""
        events, self.events = self.events, []
        for event in events:
            event()


def begin(substream: Substream, inlet: Any, demand: int) -> Subscription:
    """Begin to read, and leave it at that."""
    reading = substream.open(inlet)
    reading.request(demand)
    return reading


def read(substream: Substream, inlet: Inlet, demand: int) -> Subscription:
    """Begin to read, and take what is there."""
    reading = begin(substream, inlet, demand)
    inlet.work()
    return reading


def a_substream() -> Substream:
    return OneWindow(copy_context(), None, 1)


async def test_a_list_that_is_wanted_goes_to_the_reader_as_it_is() -> None:
    substream, inlet, items = a_substream(), Inlet(), [1, 2]
    read(substream, inlet, 2)
    substream.add(items)

    assert [items] == inlet.given
    assert items is inlet.given[0]


@pytest.mark.usefixtures("still")
async def test_of_a_list_that_is_longer_than_what_is_wanted_the_rest_is_kept() -> None:
    substream, inlet = a_substream(), Inlet()
    reading = read(substream, inlet, 2)
    substream.add([1, 2, 3])
    assert [[1, 2]] == inlet.given

    reading.request(1)
    assert [[1, 2]] == inlet.given
    inlet.work()
    assert [[1, 2], [3]] == inlet.given


async def test_what_was_wanted_is_counted_down_by_what_was_given() -> None:
    substream, inlet = a_substream(), Inlet()
    read(substream, inlet, 3)
    substream.add([1, 2])
    substream.add([3, 4])

    assert [[1, 2], [3]] == inlet.given


async def test_what_comes_goes_behind_what_is_kept_though_it_is_wanted() -> None:
    substream, inlet = a_substream(), Inlet()
    substream.add([1])
    begin(substream, inlet, 9)
    substream.add([2])
    assert [[1, 2]] == inlet.given


@pytest.mark.usefixtures("still")
async def test_what_comes_while_a_list_is_given_and_the_end_go_behind_that_list() -> None:
    substream, order = a_substream(), list[Any]()

    def more(items: list[Any]) -> None:
        if items == [1]:
            substream.add([2])
            substream.end(None)
        order.append(items)

    inlet = Inlet(more)
    read(substream, inlet, 9)
    substream.add([1])

    assert [[1], [2]] == order
    assert [[1], [2], "complete"] == inlet.given


async def test_an_end_that_comes_while_the_last_list_is_given_goes_behind_it() -> None:
    substream = a_substream()
    heard = list[int]()

    def end(_: list[Any]) -> None:
        substream.end(None)
        heard.append(len(inlet.given))

    inlet = Inlet(end)
    read(substream, inlet, 9)
    substream.add([1])

    assert [1] == heard
    assert [[1], "complete"] == inlet.given


@pytest.mark.usefixtures("still")
async def test_elements_and_the_end_wait_for_an_event_while_a_failure_is_handled() -> None:
    substream, inlet = a_substream(), Inlet()
    read(substream, inlet, 9)
    try:
        raise OSError("of somebody else")
    except OSError:
        substream.add([1])
        substream.end(None)
        assert [] == inlet.given
    inlet.work()

    assert [[1], "complete"] == inlet.given


async def test_the_end_alone_waits_for_an_event_while_a_failure_is_handled() -> None:
    substream, inlet = a_substream(), Inlet()
    read(substream, inlet, 9)
    try:
        raise OSError("of somebody else")
    except OSError:
        substream.end(None)
        assert [] == inlet.given
    inlet.work()

    assert ["complete"] == inlet.given


async def test_one_that_has_ended_with_nothing_kept_completes_when_somebody_comes_to_read_it() -> None:
    substream, inlet = a_substream(), Inlet()
    substream.end(None)
    read(substream, inlet, 1)

    assert ["complete"] == inlet.given


async def test_a_request_for_what_is_not_there_takes_no_event() -> None:
    substream, inlet = a_substream(), Inlet()
    reading = read(substream, inlet, 1)
    reading.request(1)

    assert [] == inlet.events


def test_no_more_than_a_thousand_are_taken_at_once_of_more_than_are_wanted() -> None:
    window = OneWindow(copy_context(), None, 0)
    window.add(list(range(5_000)))
    window.request(3_000)
    taken = list(iter(lambda: len(window.take() or ()), 0))

    assert [1024, 1024, 952] == taken
    assert (0, 2_000) == (window.demand, len(window.kept))


# -- whose context variables the functions see


who: ContextVar[str] = ContextVar("who", default="nobody")

PARTED: dict[str, Callable[[Flow[int]], Flow[Flow[int]]]] = {
    "groups": lambda flow: flow.group_by(lambda n: n // 10).map(lambda group: group),
    "windows": lambda flow: flow.window(10).map(lambda window: window),
}


async def iterates(part: Flow[Any]) -> None:
    async for _ in part:
        pass


async def subscribes(part: Flow[Any]) -> None:
    recorder = Recorder(UNBOUNDED)
    part.subscribe(recorder)
    await recorder.over.wait()


READERS: dict[str, Callable[[Flow[Any]], Awaitable[object]]] = {
    "async for": iterates,
    "an end": lambda part: part.count(),
    "a combinator": lambda part: part.merge(Flow.of(0)).count(),
    "inner flows": lambda part: part.flat_map(lambda n: Flow.of(n).map(seen_by)).count(),
    "a subscriber": subscribes,
}


def seen_by(n: int) -> int:
    seen.append(who.get())
    return n


seen: list[str] = []


@pytest.mark.parametrize("parted", PARTED)
@pytest.mark.parametrize("reader", READERS)
async def test_functions_behind_a_part_see_the_variables_of_its_reader(parted: str, reader: str) -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(40):
            yield n
            if n % 3 == 0:
                await asyncio.sleep(0)

    async def read(part: Flow[int]) -> None:
        who.set("reader")
        await READERS[reader](part.map(seen_by))

    seen.clear()
    async with asyncio.TaskGroup() as tasks:
        async for part in PARTED[parted](Flow.from_async_iterable(numbers)):
            tasks.create_task(read(part))

    assert ["reader"] * len(seen) == seen
    assert len(seen) >= 40


async def test_functions_behind_group_by_see_the_variables_of_its_subscriber(monkeypatch: pytest.MonkeyPatch) -> None:
    # So slow a key leaves elements to be sorted when a reader takes some, or leaves.
    monkeypatch.setattr(budgets, "clock", Ticking(budgets.TURN / 4))
    names: list[str] = []

    async def read(group: Flow[int]) -> None:
        who.set("reader")
        await asyncio.sleep(0)
        await group.take(1).to_list()

    async with asyncio.TaskGroup() as tasks:
        groups = Flow.range(90).group_by(lambda n: n // 2, prefetch=8)
        async for group in groups.do_on_next(lambda _: names.append(who.get())).buffer(4):
            for each in group:
                tasks.create_task(read(each))

    assert ["nobody"] * 45 == names
