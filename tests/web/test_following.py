"""Server-Sent Events as a client reads them: by the rules of the standard, and over lost connections."""

from __future__ import annotations

import asyncio
import copy
import pickle
import random
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import aiohttp
import httpx2
import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from reactive_aio import Backoff, Flow
from reactive_aio.io import Peer, serve
from reactive_aio.testing import run_virtual
from reactive_aio.web import (
    DisconnectedError,
    Event,
    EventStream,
    Resumable,
    TooLargeError,
    UnexpectedResponseError,
    follow_events,
    split_events,
)
from tests import tls
from tests.subscribers import Recorder, idle

from .origin import LIBRARIES, origin, settled, sockets
from .test_servers import PATIENCE, on_uvicorn, reset

# -- what the standard says


def parsed(*chunks: bytes) -> list[Event]:
    return split_events(Flow.of(*chunks)).run_sync()


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"data: a\n\n", [Event("a")]),
        (b"data:a\n\n", [Event("a")]),
        (b"data:  a\n\n", [Event(" a")]),
        (b"data: a\ndata\ndata: b\n\n", [Event("a\n\nb")]),
        (b"data\n\n", [Event("")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [Event("a"), Event("b"), Event("c")]),
        (b"event: e\r\ndata: a\r\ndata: b\r\n\r\n", [Event("a\nb", event="e")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b": comment\n:\n\ndata: a\n\n", [Event("a")]),
        (b"event: price\ndata: 1\n\ndata: 2\n\n", [Event("1", event="price"), Event("2")]),
        (b"event: price\n\ndata: 2\n\n", [Event("2")]),
        (b"event: a\0b\ndata: 2\n\n", [Event("2", event="a\0b")]),
        (b"id: 7\ndata: 1\n\ndata: 2\n\n", [Event("1", id="7"), Event("2", id="7")]),
        (b"id: 7\n\ndata: 2\n\n", [Event("2", id="7")]),
        (b"id: 7\ndata: 1\n\nid\ndata: 2\n\n", [Event("1", id="7"), Event("2")]),
        (b"id: 7\ndata: 1\n\nid: 8\0\ndata: 2\n\n", [Event("1", id="7"), Event("2", id="7")]),
        (b"retry: 10\ndata: 1\n\nretry: -1\nretry: 1.5\ndata: 2\n\n", [Event("1", retry=10), Event("2")]),
        (b"retry: " + b"9" * 5000 + b"\ndata: 1\n\n", [Event("1")]),
        ("retry: ²\ndata: é\n\n".encode(), [Event("é")]),
        (b"unknown: 1\nDATA: 2\ndata: a\n\n", [Event("a")]),
        (b"data: a\xff\n\n", [Event("a\ufffd")]),
        (b"data: a\n\ndata: cut off\n", [Event("a")]),
        (b"", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says_however_it_is_cut(text: bytes, events: list[Event]) -> None:
    assert events == parsed(text)
    assert events == parsed(*(text[at : at + 1] for at in range(len(text))))


TEXT = st.text(st.sampled_from("aé \u2028:"), max_size=4)
EVENTS = st.builds(
    Event,
    st.lists(TEXT).map("\n".join),
    event=st.none() | TEXT.filter(bool),
    id=TEXT.filter(bool),
    retry=st.none() | st.integers(0, 10**9),
)


@given(st.lists(EVENTS, max_size=4), st.sampled_from([b"\n", b"\r", b"\r\n"]), st.data())
def test_what_is_written_is_read(events: list[Event], line_break: bytes, data: st.DataObject) -> None:
    text = b"".join(event.encode() for event in events).replace(b"\n", line_break)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})

    assert events == parsed(*(text[start:stop] for start, stop in pairwise(cuts)))


async def test_a_line_that_a_return_ends_needs_nothing_behind_it() -> None:
    text = Flow.of(b"data: a\r\r").concat(Flow[bytes].never())

    assert Event("a") == await split_events(text).first()


async def test_a_chunk_is_asked_for_when_the_events_of_the_one_before_are_taken() -> None:
    asked: list[bytes] = []
    body = Flow.of(b"data: a\n\ndata: b\n\n", b"data: c\n\n").do_on_next(asked.append)
    async with split_events(body).open() as events:
        for _ in range(2):
            await anext(events)
            assert 1 == len(asked)
        assert Event("c") == await anext(events)


async def test_for_several_events_that_are_wanted_one_chunk_is_asked_for() -> None:
    asked: list[int] = []
    recorder = Recorder()
    body = Flow.of(b"data: a\n\ndata: b\n\n", b"data: c\n\n").do_on_request(asked.append)
    split_events(body).subscribe(recorder)
    recorder.request(2)
    await idle()

    assert ([Event("a"), Event("b")], [1]) == (recorder.items, asked)


@pytest.mark.parametrize("text", [b"data: 123456", b"data: 1\ndata: 2", b":" + b"x" * 12])
def test_an_event_beyond_the_limit_is_a_failure_before_it_has_ended(text: bytes) -> None:
    with pytest.raises(TooLargeError, match="more than the 11 bytes"):
        split_events(Flow.of(text), max_event=11).run_sync()


def test_the_limit_is_that_of_one_event() -> None:
    assert 100 == len(split_events(Flow.of(b"data: 1\n\n" * 100), max_event=11).run_sync())


def test_what_is_no_event_has_no_limit_but_that_of_a_line() -> None:
    assert [Event("a")] == split_events(Flow.of(b": beat\n\n" * 100, b"data: a\n\n"), max_event=11).run_sync()


# -- connections, without a server


@define(eq=False)
class Service:
    """Answers each connection by the next of what it has: chunks and perhaps a failure, a status, or a failure to connect."""

    answers: list[Any]
    content_type: str = "text/event-stream"
    asked: list[dict[str, str]] = field(init=False, factory=list[dict[str, str]])
    times: list[float] = field(init=False, factory=list[float])
    closed: int = field(init=False, default=0)

    @asynccontextmanager
    async def open(self, headers: dict[str, str]) -> AsyncGenerator[Answer]:
        self.asked.append(headers)
        self.times.append(asyncio.get_running_loop().time())
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        try:
            yield Answer(answer, {"content-type": self.content_type})
        finally:
            self.closed += 1

    def last_ids(self) -> list[str | None]:
        return [headers.get("Last-Event-ID") for headers in self.asked]

    def waits(self) -> list[float]:
        return [round(after - before, 3) for before, after in pairwise(self.times)]


@define(eq=False)
class Answer:
    answer: Any
    headers: dict[str, str]

    @property
    def status_code(self) -> int:
        return self.answer if isinstance(self.answer, int) else 200

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for chunk in self.answer:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def aclose(self) -> None: ...


EXACT = Backoff(1.0, jitter=0.0)


def texts(service: Service, **options: Any) -> list[str]:
    flow = follow_events(service.open, **{"backoff": EXACT, **options})
    return run_virtual(flow.map(lambda event: event.data).to_list())


def test_it_goes_on_behind_the_last_event_until_there_is_no_content() -> None:
    service = Service([[b"data: 0\n\nid: a\ndata: 1\n\nid: b\nda"], [b"id: c\ndata: 2\n\n", OSError("lost")], 204])

    assert ["0", "1", "2"] == texts(service)
    assert [None, "a", "c"] == service.last_ids()
    assert 3 == service.closed
    assert "text/event-stream" == service.asked[0]["Accept"]


def test_it_begins_behind_an_event_that_is_known() -> None:
    service = Service([204])
    texts(service, last_id="7")

    assert ["7"] == service.last_ids()


def test_each_subscription_begins_anew() -> None:
    service = Service([[b"id: a\ndata: 1\n\n"], 204, 204])
    flow = follow_events(service.open, backoff=EXACT)
    run_virtual(flow.concat(flow).drain())

    assert [None, "a", None] == service.last_ids()


def test_an_event_that_was_not_taken_is_not_the_last() -> None:
    service = Service([[b"id: a\ndata: 1\n\nid: b\ndata: 2\n\n"]])
    flow = follow_events(service.open)

    assert ["a"] == [event.id for event in run_virtual(flow.take(1).to_list())]
    assert 1 == service.closed


def test_it_waits_longer_each_time_and_anew_behind_an_event() -> None:
    lost = OSError("lost")
    service = Service([lost, lost, 503, [b"data: 1\n\n"], 429, 204])

    assert ["1"] == texts(service)
    assert [1.0, 2.0, 4.0, 1.0, 2.0] == service.waits()


def test_it_waits_behind_the_time_that_the_service_asks_for() -> None:
    service = Service([[b"retry: 5000\n\n"], [b"retry: 86400000\ndata: 1\n\n"], 204])

    assert ["1"] == texts(service)
    assert [6.0, 61.0] == service.waits()


def test_it_gives_up_with_the_failure_of_the_last_connection() -> None:
    service = Service([OSError("1"), OSError("2"), [b"data: 1\n\n"], [], [], []])
    with pytest.raises(DisconnectedError, match="ended the response"):
        texts(service, backoff=Backoff(1.0, max_retries=2))

    assert 5 == len(service.asked)


def test_a_count_of_retries_may_hold_for_the_whole() -> None:
    service = Service([[b"data: 1\n\n"]] * 10)
    with pytest.raises(DisconnectedError):
        texts(service, backoff=Backoff(1.0, max_retries=2, reset=False))

    assert 3 == len(service.asked)


@pytest.mark.parametrize("status", [201, 301, 400, 404])
def test_another_status_is_a_failure_at_once(status: int) -> None:
    with pytest.raises(UnexpectedResponseError, match=f"status {status}") as caught:
        texts(Service([status]))
    assert status == caught.value.status


def test_a_copy_of_the_failure_keeps_the_status_and_the_notes() -> None:
    error = UnexpectedResponseError("the service answered with status 404", 404)
    error.add_note("in map(parse)")

    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(error), 404, ["in map(parse)"]) == (str(other), other.status, other.__notes__)


def test_another_content_type_is_a_failure_at_once() -> None:
    with pytest.raises(UnexpectedResponseError, match="with the type 'text/html', not text/event-stream"):
        texts(Service([[b"data: 1\n\n"]], content_type="text/html"))
    assert ["1"] == texts(Service([[b"data: 1\n\n"], 204], content_type="Text/Event-Stream; charset=utf-8"))


@pytest.mark.parametrize("wrong", [LookupError("open"), [LookupError("read")], [b"data:" + b"x" * 100]])
def test_what_is_no_lost_connection_is_not_tried_again(wrong: Any) -> None:
    service = Service([wrong])
    with pytest.raises((LookupError, TooLargeError)):
        texts(service, max_event=100)
    assert 1 == len(service.asked)


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_url_that_is_wrong_each_time_is_not_tried_again(library: str) -> None:
    asked: list[dict[str, str]] = []
    async with LIBRARIES[library](read_timeout=1.0) as request:

        def ask(headers: dict[str, str]) -> Any:
            asked.append(headers)
            return request("GET", "localhost:1/events", headers=headers)

        with pytest.raises((httpx2.UnsupportedProtocol, aiohttp.NonHttpUrlClientError)):
            await follow_events(ask, backoff=Backoff(0.0, max_retries=2)).drain()
    assert 1 == len(asked)


@pytest.mark.parametrize(
    ("make", "method"),
    [(httpx2.AsyncClient, "stream"), (aiohttp.ClientSession, "request")],
    ids=["httpx", "aiohttp"],
)
async def test_a_certificate_that_nobody_knows_is_not_tried_again(make: Any, method: str, tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []

    async def answer(peer: Peer) -> None:
        await peer.chunks().drain()

    async with make() as client, serve(answer, "127.0.0.1", 0, ssl=tls.made_in(tmp_path)[0]) as server:

        def ask(headers: dict[str, str]) -> Any:
            asked.append(headers)
            return getattr(client, method)("GET", f"https://127.0.0.1:{server.port}/events", headers=headers)

        with pytest.raises((httpx2.ConnectError, aiohttp.ClientConnectorCertificateError)):
            await follow_events(ask, backoff=Backoff(0.0, max_retries=2)).drain()
    assert 1 == len(asked)


async def test_a_header_that_can_not_be_sent_is_not_tried_again() -> None:
    service = Service([[b"id: a\x0bb\n\n"], httpx2.LocalProtocolError("Illegal header value"), 204])
    with pytest.raises(httpx2.LocalProtocolError):
        await follow_events(service.open, backoff=Backoff(0.0)).drain()
    assert 2 == len(service.asked)


@pytest.mark.parametrize(("status", "connections"), [(302, 1), (401, 1), (429, 2), (503, 2)])
async def test_a_status_that_the_library_raises_is_tried_again_as_one_that_it_returns(
    status: int, connections: int
) -> None:
    raised = aiohttp.ClientResponseError(Mock(), (), status=status)
    service = Service([raised, 204])
    with nullcontext() if connections > 1 else pytest.raises(aiohttp.ClientResponseError):
        await follow_events(service.open, backoff=Backoff(0.0)).drain()
    assert connections == len(service.asked)


def test_an_id_that_no_event_has_is_refused() -> None:
    for wrong in ("a\nb", "a\rb", "a\0b"):
        with pytest.raises(ValueError, match=r"follow_events\(last_id=.*must not have"):
            follow_events(Service([]).open, last_id=wrong)
    number: Any = 7
    with pytest.raises(TypeError, match="takes a str, not int"):
        follow_events(Service([]).open, last_id=number)
    service = Service([204])
    texts(service, last_id="")
    assert [None] == service.last_ids()


def test_what_opens_nothing_is_refused_by_name() -> None:
    wrong: Any = "http://localhost"
    with pytest.raises(TypeError, match=r"follow_events\(\) takes a function"):
        follow_events(wrong)
    with pytest.raises(ValueError, match="max_event"):
        follow_events(Service([]).open, max_event=0)


# -- on a server


@define(eq=False)
class Cutting:
    """Stands between a client and a server, and resets each connection behind some bytes of the answer."""

    port: int
    cuts: list[int]
    connections: int = field(init=False, default=0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        left = self.cuts.pop() if self.cuts else 1_000_000
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                to_server.write(await reader.readuntil(b"\r\n\r\n"))
                while left and (chunk := await from_server.read(left)):
                    writer.write(chunk)
                    await writer.drain()
                    left -= len(chunk)
        finally:
            reset(writer)
            to_server.transport.abort()
        with suppress(OSError):
            await to_server.wait_closed()


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_reset_half_a_close_and_a_stall_are_lost_connections_and_leave_nothing(library: str) -> None:
    tasks = asyncio.all_tasks()
    async with origin() as server, LIBRARIES[library](read_timeout=0.1) as request:
        before = sockets()
        fates = iter(["resets", "half_closes", "stalls", "has_no_more"])
        events = follow_events(
            lambda headers: request("GET", server.url(next(fates)), headers=headers), backoff=Backoff(0.0)
        )
        read = await events.to_list()
        await server.all_ended()
        await settled(lambda: len(asyncio.all_tasks()))

        assert before >= sockets()
        assert 4 == server.ended
    assert {Event("begun")} == set(read)  # a reset may be faster than what comes before it
    assert tasks == asyncio.all_tasks()


@pytest.mark.parametrize("library", LIBRARIES)
async def test_an_id_is_sent_back_as_a_browser_does(library: str) -> None:
    found: list[str | None] = []

    def one(last_id: str | None) -> Flow[Event]:
        found.append(last_id)
        return Flow.of(Event("a", id=f" {last_id or ''}é漢 "))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with on_uvicorn(EventStream(one), listener), LIBRARIES[library]() as request:
            events = follow_events(lambda headers: request("GET", url, headers={**headers}), backoff=Backoff(0.0))
            async with asyncio.timeout(PATIENCE):
                assert 3 == len(await events.take(3).to_list())

    assert [None, "é漢", "é漢é漢"] == found


@pytest.mark.parametrize("library", LIBRARIES)
async def test_nothing_is_lost_and_nothing_comes_twice_when_connections_are_cut_anywhere(library: str) -> None:
    cleaned = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            for n in range(100):
                await asyncio.sleep(0)
                yield n
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    chance = random.Random(1)
    resumable = Resumable(Flow.from_async_iterable(numbers), lambda n: Event(f"{n}\n"), replay=100)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cutting = Cutting(listener.getsockname()[1], [chance.randrange(100, 1500) for _ in range(20)])
        async with (
            on_uvicorn(EventStream(resumable), listener),
            resumable,
            await asyncio.start_server(cutting.serve, "127.0.0.1", 0) as between,
            LIBRARIES[library](read_timeout=PATIENCE) as request,
        ):
            url = f"http://127.0.0.1:{between.sockets[0].getsockname()[1]}/"
            events = follow_events(lambda headers: request("GET", url, headers=headers), backoff=Backoff(0.0))
            async with asyncio.timeout(PATIENCE):
                read = await events.take(100).to_list()
            await settled(lambda: len(asyncio.all_tasks()))

    assert [(f"{n}\n", None) for n in range(100)] == [(event.data, event.event) for event in read]
    assert cleaned.is_set()
    assert cutting.connections > 5
