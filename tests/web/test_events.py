"""Server-Sent Events: how they are written, what keeps the connection open, and how a client goes on where it left off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, Hub
from reactive_aio.testing import run_virtual
from reactive_aio.web import Event, EventStream, Resumable
from tests.web.client import Client


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event("a"), "data: a\n\n"),
        (Event(), "data: \n\n"),
        (Event("a\nb\r\nc\rd\n"), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        (Event("é", event="price", id="7", retry=1500), "event: price\nid: 7\nretry: 1500\ndata: é\n\n"),
        (Event("a\u2028b"), "data: a\u2028b\n\n"),
    ],
)
def test_an_event_is_written_as_the_standard_says(event: Event, text: str) -> None:
    assert text.encode() == event.encode()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in ("event", "id") for value in ("a\nb", "a\rb")] + [("id", "a\0")]
)
def test_a_break_in_a_field_would_be_another_field_and_is_refused(name: str, value: str) -> None:
    fields: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"Event\({name}="):
        Event("data", **fields)


def test_a_negative_retry_is_refused() -> None:
    with pytest.raises(ValueError, match="retry"):
        Event(retry=-1)


async def test_an_element_that_is_no_event_is_a_failure_that_says_so() -> None:
    wrong: Any = Flow.of("a")
    with pytest.raises(TypeError, match="an EventStream sends Events, not str"):
        await Client().ask(EventStream(lambda _: wrong))


async def test_the_client_knows_that_it_is_connected_before_there_is_an_event() -> None:
    client = Client(leaves_after=1)
    await client.ask(EventStream(lambda _: Flow.never()))

    headers = client.messages[0]["headers"]
    assert {(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")} <= set(headers)


async def test_what_open_raises_comes_before_anything_is_sent() -> None:
    def forbidden(_: str | None) -> Flow[Event]:
        raise PermissionError

    client = Client()
    with pytest.raises(PermissionError):
        await client.ask(EventStream(forbidden))
    assert [] == client.messages


def test_who_gets_nothing_gets_a_heartbeat() -> None:
    async def events() -> AsyncIterator[Event]:
        await asyncio.sleep(40)
        yield Event("a")
        await asyncio.sleep(20)

    async def main() -> Client:
        client = Client()
        await client.ask(EventStream(lambda _: Flow.from_async_iterable(events), heartbeat=15.0))
        return client

    client = run_virtual(main())
    start, *times = client.times
    assert [b":\n\n", b":\n\n", b"data: a\n\n", b":\n\n"] == client.chunks
    assert [15, 30, 40, 55, 60] == [round(time - start) for time in times]


def test_a_client_that_does_not_take_a_heartbeat_has_stalled() -> None:
    async def main() -> float:
        closed: list[int] = []
        events = Flow[Event].never().do_finally(lambda: closed.append(1))
        await Client(stalls_after=1).ask(EventStream(lambda _: events, heartbeat=15.0, send_timeout=30.0))
        assert [1] == closed
        return asyncio.get_running_loop().time()

    assert 45 == run_virtual(main())


@pytest.mark.parametrize("heartbeat", [None, 15.0])
def test_a_server_may_say_by_an_error_that_the_client_has_gone(heartbeat: float | None) -> None:
    class Gone(Client):
        async def _send(self, message: dict[str, object]) -> None:
            if self.messages:
                raise ConnectionResetError
            await super()._send(message)

    async def main() -> None:
        closed: list[int] = []
        flow = Flow.timer(20.0).map(lambda n: Event(str(n))).do_finally(lambda: closed.append(1))
        await Gone().ask(EventStream(lambda _: flow, heartbeat=heartbeat))
        assert [1] == closed

    run_virtual(main())


def test_for_a_client_that_has_gone_before_the_status_nothing_runs() -> None:
    class Gone(Client):
        async def _send(self, message: dict[str, object]) -> None:
            raise ConnectionResetError

    async def main() -> None:
        begun: list[int] = []
        flow = Flow.of(Event("a")).do_on_subscribe(lambda *_: begun.append(1))
        await Gone().ask(EventStream(lambda _: flow))
        assert [] == begun

    run_virtual(main())


# -- to go on where a client left off


def test_open_is_told_what_the_client_had_last() -> None:
    found: list[str | None] = []

    def open_(last_id: str | None) -> Flow[Event]:
        found.append(last_id)
        return Flow.empty()

    async def main() -> None:
        for headers in ([], [(b"Last-Event-ID", b"7")], [(b"last-event-id", "é".encode())], [(b"last-event-id", b"")]):
            await Client(headers=headers).ask(EventStream(open_))

    run_virtual(main())
    assert [None, "7", "é", None] == found


class Feed:
    """A hub whose elements clients read as events."""

    def __init__(self, replay: int = 10) -> None:
        self.hub = Hub[int](idle="drop")
        self.resumable = Resumable(self.hub.flow, lambda n: Event(str(n)), replay=replay)
        self.stream = EventStream(self.resumable, heartbeat=None)

    async def visit(self, last_id: bytes | None, events: int, emitted: range = range(0)) -> Client:
        client = Client(headers=[] if last_id is None else [(b"last-event-id", last_id)], leaves_after=1 + events)
        task = asyncio.create_task(client.ask(self.stream))
        await asyncio.sleep(0.1)
        for n in emitted:
            await self.hub.emit(n)
        await task
        return client


def ids(client: Client) -> list[bytes]:
    return [line[4:] for chunk in client.chunks for line in chunk.split(b"\n") if line.startswith(b"id: ")]


def data(client: Client) -> list[bytes]:
    return [b"reset" if b"event: reset" in chunk else chunk.split(b"data: ")[1].strip() for chunk in client.chunks]


def test_a_client_goes_on_behind_the_last_event_that_it_has_had() -> None:
    async def main() -> tuple[Client, Client]:
        feed = Feed()
        staying = asyncio.create_task(feed.visit(None, 8))
        await asyncio.sleep(0)
        first = await feed.visit(None, 3, range(3))
        for n in range(3, 6):
            await feed.hub.emit(n)
        back = await feed.visit(ids(first)[-1], 5, range(6, 8))
        await staying
        return first, back

    first, back = run_virtual(main())
    assert ([b"0", b"1", b"2"], [b"3", b"4", b"5", b"6", b"7"]) == (data(first), data(back))
    assert 8 == len({*ids(first), *ids(back)})


def test_a_gap_is_told_by_a_reset() -> None:
    async def main() -> Client:
        feed = Feed(replay=2)
        staying = asyncio.create_task(feed.visit(None, 9))
        await asyncio.sleep(0)
        first = await feed.visit(None, 3, range(3))
        for n in range(3, 8):
            await feed.hub.emit(n)
        await asyncio.sleep(0.1)
        back = await feed.visit(ids(first)[-1], 4, range(8, 9))
        await staying
        return back

    assert [b"reset", b"6", b"7", b"8"] == data(run_virtual(main()))


@pytest.mark.parametrize("unknown", [b"other-0", b"7", b"-", b"x-99999999999999999999999999", "é-²".encode()])
def test_an_id_of_another_run_or_of_nobody_is_a_gap(unknown: bytes) -> None:
    async def main() -> Client:
        return await Feed().visit(unknown, 3, range(2))

    assert [b"reset", b"0", b"1"] == data(run_virtual(main()))


def test_an_id_that_the_run_has_not_given_yet_is_a_gap() -> None:
    async def main() -> Client:
        feed = Feed()
        staying = asyncio.create_task(feed.visit(None, 3))
        await asyncio.sleep(0)
        first = await feed.visit(None, 2, range(2))
        run, _, number = ids(first)[-1].rpartition(b"-")
        ahead = await feed.visit(b"%s-%d" % (run, int(number) + 1), 4, range(2, 3))
        await staying
        return ahead

    assert [b"reset", b"0", b"1", b"2"] == data(run_virtual(main()))


def test_who_comes_first_gets_what_comes_from_then_on() -> None:
    async def main() -> Client:
        feed = Feed()
        staying = asyncio.create_task(feed.visit(None, 6))
        await asyncio.sleep(0)
        await feed.visit(None, 4, range(4))
        new = await feed.visit(None, 2, range(4, 6))
        await staying
        return new

    assert [b"4", b"5"] == data(run_virtual(main()))


def test_in_a_block_what_is_kept_outlasts_an_absence_of_all_clients() -> None:
    async def absent(feed: Feed) -> Client:
        first = await feed.visit(None, 2, range(2))
        await asyncio.sleep(3600)
        return await feed.visit(ids(first)[0], 2, range(2, 3))

    async def held() -> Client:
        feed = Feed()
        async with feed.resumable:
            return await absent(feed)

    assert [b"1", b"2"] == data(run_virtual(held()))
    assert [b"reset", b"2"] == data(run_virtual(absent(Feed())))


def test_an_event_is_made_and_encoded_once_whatever_the_number_of_clients() -> None:
    made: list[Event] = []

    def event(n: int) -> Event:
        made.append(Event(str(n)))
        return made[-1]

    async def main() -> list[Client]:
        feed = Feed()
        feed.resumable = Resumable(feed.hub.flow, event, replay=10)
        feed.stream = EventStream(feed.resumable, heartbeat=None)
        visits = [asyncio.create_task(feed.visit(None, 2)) for _ in range(5)]
        await asyncio.sleep(0.2)
        for n in range(2):
            await feed.hub.emit(n)
        return [await visit for visit in visits]

    clients = run_virtual(main())
    assert 2 == len(made)
    assert [{id(chunk)} for chunk in clients[0].chunks] == [
        {id(chunk) for chunk in chunks} for chunks in zip(*(client.chunks for client in clients), strict=True)
    ]
