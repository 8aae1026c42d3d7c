"""WebSockets that carry demand: both directions, what is refused, and what is left when a client goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, hooks
from reactive_aio.errors import ProtocolViolation, SourceCancelledError
from reactive_aio.testing import run_virtual
from reactive_aio.web import Connection, DisconnectedError, RemoteError, StreamError, StreamSocket

PROTOCOL = "reactive-streams.v1"
GONE: dict[str, object] = {"type": "websocket.disconnect", "code": 1001}


@define(eq=False)
class Browser:
    """A client of a WebSocket, without a server."""

    app: StreamSocket
    headers: list[tuple[bytes, bytes]] = field(factory=list[tuple[bytes, bytes]])
    scheme: str = "ws"
    protocols: tuple[str, ...] = (PROTOCOL,)
    closed: tuple[int, str] | None = field(init=False, default=None)
    limits: dict[str, Any] | None = field(init=False, default=None)
    """The first message of the service."""
    accepted: bool = field(init=False, default=False)
    reads: asyncio.Event = field(init=False, factory=asyncio.Event)
    heard: list[dict[str, Any]] = field(init=False, factory=list[dict[str, Any]])
    _said: asyncio.Queue[Mapping[str, object]] = field(init=False, factory=asyncio.Queue[Mapping[str, object]])
    _served: asyncio.Task[None] = field(init=False)

    async def __aenter__(self) -> Browser:
        self.reads.set()
        self._said.put_nowait({"type": "websocket.connect"})
        scope = {
            "type": "websocket",
            "scheme": self.scheme,
            "headers": self.headers,
            "subprotocols": self.protocols,
        }
        self._served = asyncio.create_task(self.app(scope, self._said.get, self._send))
        await self.wait()
        if self.accepted:
            self.limits, self.heard[:] = self.heard[0], []
            await self.say(type="limits")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._said.put_nowait(GONE)
        await self._served

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.accept":
            self.accepted = True
        elif message["type"] == "websocket.close":
            self.closed = (message["code"], message["reason"])
        else:
            await self.reads.wait()
            self.heard.append(json.loads(message["text"]))

    async def say(self, **frame: object) -> list[dict[str, Any]]:
        """Send a frame, and return what comes of it."""
        return await self.say_text(json.dumps(frame))

    async def say_text(self, text: str) -> list[dict[str, Any]]:
        before = len(self.heard)
        self._said.put_nowait({"type": "websocket.receive", "text": text})
        await self.wait()
        return self.heard[before:]

    async def say_at_once(self, *frames: Mapping[str, object]) -> list[dict[str, Any]]:
        """Send frames that the service reads one behind the other, and return what comes of them."""
        before = len(self.heard)
        for frame in frames:
            self._said.put_nowait({"type": "websocket.receive", "text": json.dumps(frame)})
        await self.wait()
        return self.heard[before:]

    async def wait(self) -> None:
        await asyncio.sleep(1.0)  # of virtual time: until all is quiet

    @property
    def over(self) -> bool:
        return self._served.done()

    @property
    def items(self) -> list[Any]:
        return [frame["item"] for frame in self.heard if frame["type"] == "next"]


@define(eq=False)
class Source:
    """The source of a client: how much of it has been made, and whether it has been cleaned up."""

    made: int = field(init=False, default=0)
    cleaned: int = field(init=False, default=0)

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            while True:
                self.made += 1
                yield self.made
        finally:
            await asyncio.sleep(0.1)
            self.cleaned += 1

    def app(self) -> StreamSocket:
        return StreamSocket({"numbers": lambda _: Flow.from_async_iterable(self)})


def test_an_element_is_made_and_sent_for_each_that_is_requested() -> None:
    async def main() -> None:
        source = Source()
        async with Browser(source.app()) as browser:
            await browser.say(type="subscribe", id=1, stream="numbers", n=0)
            assert 0 == source.made
            assert [1, 2] == [frame["item"] for frame in await browser.say(type="request", id=1, n=2)]
            assert [3] == [frame["item"] for frame in await browser.say(type="request", id=1, n=1)]
            assert 3 == source.made
            assert [] == await browser.say(type="cancel", id=1)
            assert 1 == source.cleaned
            assert [] == await browser.say(type="request", id=1, n=1)

    run_virtual(main())


def test_a_stream_is_told_to_have_ended() -> None:
    async def main() -> list[dict[str, Any]]:
        app = StreamSocket({"range": lambda args: Flow.range(args["stop"])})
        async with Browser(app) as browser:
            return await browser.say(type="subscribe", id=7, stream="range", n=10, args={"stop": 2})

    assert [
        {"type": "next", "id": 7, "item": 0},
        {"type": "next", "id": 7, "item": 1},
        {"type": "complete", "id": 7},
    ] == run_virtual(main())


def test_the_largest_number_is_an_unbounded_demand() -> None:
    async def main() -> int:
        async with Browser(StreamSocket({"range": lambda _: Flow.range(1000)})) as browser:
            await browser.say(type="subscribe", id=1, stream="range", n=2**53 - 1)
            await browser.say(type="request", id=1, n=2**53 - 1)
            return len(browser.items)

    assert 1000 == run_virtual(main())


@pytest.mark.parametrize("n", [0, -1, -(2**60)])
def test_a_request_for_nothing_ends_the_stream_with_the_rule(n: int) -> None:
    async def main() -> None:
        source = Source()
        async with Browser(source.app()) as browser:
            await browser.say(type="subscribe", id=1, stream="numbers", n=1)
            (last,) = await browser.say(type="request", id=1, n=n)
            assert ("error", 1) == (last["type"], last["id"])
            assert "3.9" in last["message"]
            assert 1 == source.cleaned

    run_virtual(main())


def test_a_request_for_nothing_is_heard_while_the_source_is_quiet() -> None:
    async def main() -> list[dict[str, Any]]:
        async with Browser(StreamSocket({"never": lambda _: Flow.never()})) as browser:
            await browser.say(type="subscribe", id=1, stream="never", n=1)
            return await browser.say(type="request", id=1, n=0)

    (last,) = run_virtual(main())
    assert "3.9" in last["message"]


def test_a_failure_is_told_without_its_text_and_goes_to_the_hook() -> None:
    async def main() -> None:
        dropped: list[BaseException] = []
        streams = {
            "secret": lambda _: Flow.error(LookupError("password")),
            "said": lambda _: Flow.error(StreamError("come back later")),
            "broken": lambda _: 1 // 0,
            "no JSON": lambda _: Flow.of(object()),
        }
        offers: Any = streams
        with hooks.using(on_error_dropped=dropped.append):
            async with Browser(StreamSocket(offers)) as browser:
                for number, name in enumerate([*streams, "unknown"], 1):
                    await browser.say(type="subscribe", id=number, stream=name, n=1)

        failed = "the stream has failed"
        assert [failed, "come back later", failed, failed, "there is no such stream"] == [
            frame["message"] for frame in browser.heard
        ]
        assert [LookupError, ZeroDivisionError, TypeError] == [type(error) for error in dropped]

    run_virtual(main())


def test_streams_are_read_side_by_side_up_to_a_limit() -> None:
    async def main() -> None:
        app = StreamSocket({"never": lambda _: Flow.never()}, max_streams=2)
        async with Browser(app) as browser:
            for number in (1, 2):
                assert [] == await browser.say(type="subscribe", id=number, stream="never", n=1)
            (refused,) = await browser.say(type="subscribe", id=3, stream="never", n=1)
            assert "at most 2 streams" in refused["message"]
            await browser.say(type="cancel", id=1)
            assert [] == await browser.say(type="subscribe", id=4, stream="never", n=1)

    run_virtual(main())


def test_streams_that_are_cancelled_at_once_are_not_counted() -> None:
    async def main() -> None:
        source = Source()
        async with Browser(source.app()) as browser:
            for number in range(1, 201):
                subscribe = {"type": "subscribe", "id": number, "stream": "numbers", "n": 1}
                assert [] == await browser.say_at_once(subscribe, {"type": "cancel", "id": number})
            (element,) = await browser.say(type="subscribe", id=201, stream="numbers", n=1)
            assert 1 == element["item"]

    run_virtual(main())


def test_a_cleanup_is_not_cut_short_by_another_cancel() -> None:
    async def main() -> None:
        source = Source()
        async with Browser(source.app()) as browser:
            await browser.say(type="subscribe", id=1, stream="numbers", n=1)
            await browser.say_at_once({"type": "cancel", "id": 1}, {"type": "cancel", "id": 1})
            await browser.say(type="request", id=1, n=0)
            assert 1 == source.cleaned

    run_virtual(main())


def test_a_client_that_reads_no_refusals_does_not_pile_them_up() -> None:
    async def main() -> None:
        async with Browser(StreamSocket({}, max_streams=2)) as browser:
            browser.reads.clear()
            for number in range(1, 5):
                await browser.say(type="subscribe", id=number, stream="none", n=1)
            assert browser.closed is None
            await browser.say(type="subscribe", id=5, stream="none", n=1)
            assert browser.closed is not None
            assert (1002, 0) == (browser.closed[0], len(browser.heard))

    run_virtual(main())


def test_a_client_that_takes_no_frame_in_time_has_stalled() -> None:
    async def main() -> None:
        source = Source()
        app = StreamSocket({"numbers": lambda _: Flow.from_async_iterable(source)}, send_timeout=30.0)
        browser = Browser(app)
        async with browser:
            browser.reads.clear()
            await browser.say(type="subscribe", id=1, stream="numbers", n=5)
            assert (1, 0) == (source.made, source.cleaned)
            await asyncio.sleep(29.5)
            assert (1, 1) == (source.made, source.cleaned)
            assert 1 == len(asyncio.all_tasks())

    run_virtual(main())


def test_a_function_that_raises_a_cancel_has_failed() -> None:
    async def main() -> list[dict[str, Any]]:
        def cancelled(_: object) -> Flow[int]:
            raise asyncio.CancelledError

        with hooks.using(on_error_dropped=lambda _: None):
            async with Browser(StreamSocket({"cancelled": cancelled})) as browser:
                return await browser.say(type="subscribe", id=1, stream="cancelled", n=1)

    assert [{"type": "error", "id": 1, "message": "the stream has failed"}] == run_virtual(main())


def test_a_service_says_first_what_it_takes() -> None:
    async def main() -> dict[str, Any] | None:
        async with Browser(StreamSocket({}, max_frame=2048, max_credit=16)) as browser:
            return browser.limits

    assert {"type": "limits", "frame": 2048, "credit": 16} == run_virtual(main())


# -- what the client offers


def test_a_stream_of_the_client_is_read_under_demand() -> None:
    taken: list[Any] = []

    async def main() -> None:
        async def read(connection: Connection) -> None:
            await connection.read("orders", {"since": 7}, prefetch=4).for_each(taken.append)

        async with Browser(StreamSocket({}, on_connect=read)) as browser:
            (subscribe,) = browser.heard
            assert {"type": "subscribe", "id": 1, "stream": "orders", "args": {"since": 7}, "n": 4} == subscribe
            assert [] == await browser.say(type="next", id=1, item="a")
            await browser.say(type="next", id=1, item="b")
            assert [{"type": "request", "id": 1, "n": 3}] == await browser.say(type="next", id=1, item="c")
            for item in "def":
                await browser.say(type="next", id=1, item=item)
            await browser.say(type="complete", id=1)

    run_virtual(main())
    assert [*"abcdef"] == taken


@pytest.mark.parametrize(
    ("frames", "error", "text"),
    [
        ([{"type": "error", "id": 1, "message": "sold out"}], RemoteError, "sold out"),
        ([{"type": "next", "id": 1, "item": n} for n in range(3)], ProtocolViolation, "1.1"),
        ([], DisconnectedError, "in the middle"),
    ],
)
def test_how_a_stream_of_the_client_fails(frames: list[dict[str, Any]], error: type[Exception], text: str) -> None:
    async def main() -> None:
        connections: list[Connection] = []

        async def keep(connection: Connection) -> None:
            connections.append(connection)

        async def slowly(_: object) -> None:
            await asyncio.sleep(100)

        async with Browser(StreamSocket({}, on_connect=keep)) as browser:
            reading = asyncio.create_task(connections[0].read("orders", prefetch=2).for_each(slowly))
            await browser.wait()
            for frame in frames:
                await browser.say(**frame)
            if error is ProtocolViolation:
                await asyncio.sleep(1000)  # behind the elements that were requested
                assert {"type": "cancel", "id": 1} == browser.heard[-1]

        with pytest.raises(error, match=text):
            await reading
        with pytest.raises(DisconnectedError, match="before the subscription"):
            await connections[0].read("orders").drain()

    run_virtual(main())


async def in_a_group(connection: Connection) -> None:
    async with asyncio.TaskGroup() as group:
        for name in ("orders", "returns"):
            group.create_task(connection.read(name).drain())


async def one_by_one(connection: Connection) -> None:
    async for _ in connection.read("orders", prefetch=2):
        pass


@pytest.mark.parametrize("read", [one_by_one, in_a_group])
def test_a_client_that_goes_while_it_is_read_from_is_no_error(read: Any) -> None:
    dropped: list[BaseException] = []

    async def main() -> None:
        with hooks.using(on_error_dropped=dropped.append):
            async with Browser(StreamSocket({}, on_connect=read)) as browser:
                await browser.say(type="next", id=1, item="a")

    run_virtual(main())
    assert [] == dropped


def test_who_leaves_a_stream_of_the_client_cancels_it() -> None:
    async def main() -> list[dict[str, Any]]:
        async def read(connection: Connection) -> None:
            await connection.read("orders", prefetch=4).take(1).drain()

        async with Browser(StreamSocket({}, on_connect=read)) as browser:
            return await browser.say(type="next", id=1, item=1)

    assert [{"type": "cancel", "id": 1}] == run_virtual(main())


# -- who is let in, and what ends the connection


@pytest.mark.parametrize(
    ("origin", "allowed", "accepted"),
    [
        (None, [], True),
        ("https://here.example", [], True),
        ("https://there.example", [], False),
        ("null", [], False),
        ("http://[", [], False),
        ("https://here.example.evil.example", [], False),
        ("https://there.example", ["https://there.example"], True),
        ("http://there.example", ["https://there.example"], False),
        ("https://anywhere.example", ["*"], True),
    ],
)
def test_a_page_of_another_host_is_not_let_in(origin: str | None, allowed: list[str], accepted: bool) -> None:
    async def main() -> Browser:
        headers = [(b"Host", b"here.example")] + ([] if origin is None else [(b"Origin", origin.encode())])
        async with Browser(StreamSocket({}, origins=allowed), headers=headers) as browser:
            return browser

    browser = run_virtual(main())
    assert (accepted, None if accepted else 1008) == (browser.accepted, browser.closed and browser.closed[0])


@pytest.mark.parametrize(
    ("scheme", "origin", "accepted"),
    [
        ("ws", "http://here.example", True),
        ("ws", "https://here.example", True),  # a proxy has ended TLS
        ("wss", "https://here.example", True),
        ("wss", "http://here.example", False),
    ],
)
def test_a_page_without_tls_is_not_let_in_with_tls(scheme: str, origin: str, accepted: bool) -> None:
    async def main() -> Browser:
        headers = [(b"Host", b"here.example"), (b"Origin", origin.encode())]
        async with Browser(StreamSocket({}), headers=headers, scheme=scheme) as browser:
            return browser

    assert accepted == run_virtual(main()).accepted


def test_who_does_not_speak_the_protocol_is_not_let_in() -> None:
    async def main() -> Browser:
        async with Browser(StreamSocket({}), protocols=("graphql-ws",)) as browser:
            return browser

    assert not run_virtual(main()).accepted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", 1002),
        ("[]", 1002),
        ("[" * 100_000, 1002),
        ('{"type": "subscribe"}', 1002),
        ('{"type": []}', 1002),
        ('{"type": "shout", "id": 1}', 1002),
        ('{"type": "request", "id": 1, "n": "all"}', 1002),
        ('{"type": "request", "id": 1, "n": true}', 1002),
        ('{"type": "request", "id": 0, "n": 1}', 1002),
        ('{"type": "next", "id": 1}', 1002),
        (f'"{"x" * 200_000}"', 1009),
    ],
)
def test_a_frame_that_is_none_ends_the_connection(text: str, code: int) -> None:
    async def main() -> None:
        source = Source()
        app = StreamSocket({"numbers": lambda _: Flow.from_async_iterable(source)}, max_frame=150_000)
        async with Browser(app) as browser:
            await browser.say(type="subscribe", id=1, stream="numbers", n=1)
            await browser.say_text(text)
            assert browser.closed is not None
            assert code == browser.closed[0]
            assert 1 == source.cleaned

    run_virtual(main())


def test_a_client_that_goes_leaves_nothing() -> None:
    async def main() -> None:
        source = Source()
        async with Browser(source.app()) as browser:
            for number in range(1, 4):
                await browser.say(type="subscribe", id=number, stream="numbers", n=1)
        assert (3, 3) == (source.made, source.cleaned)
        assert 1 == len(asyncio.all_tasks())

    run_virtual(main())


def test_what_runs_beside_ends_the_connection_by_its_failure() -> None:
    async def main() -> None:
        async def fail(_: Connection) -> None:
            raise LookupError("beside")

        browser = Browser(StreamSocket({}, on_connect=fail))
        with pytest.raises(LookupError):
            async with browser:
                pass

    run_virtual(main())


def test_a_cancel_that_what_runs_beside_raises_itself_is_a_failure() -> None:
    async def main() -> None:
        async def awaits(_: Connection) -> None:
            waited = asyncio.ensure_future(asyncio.Event().wait())
            waited.cancel()
            await waited

        browser = Browser(StreamSocket({}, on_connect=awaits))
        with pytest.raises(SourceCancelledError):
            async with browser:
                pass

    run_virtual(main())


@pytest.mark.parametrize("where", ["element", "cleanup"])
def test_a_source_that_closes_the_connection_ends_it_whatever_runs_beside(where: str) -> None:
    async def main() -> None:
        connections: list[Connection] = []
        log: list[str] = []

        async def keep(connection: Connection) -> None:
            connections.append(connection)
            await asyncio.Event().wait()

        async def source() -> AsyncIterator[int]:
            try:
                yield 1
                if where == "element":
                    connections[0].close()
                    yield 2
            finally:
                if where == "cleanup":
                    connections[0].close()
                log.append("cleaned")

        app = StreamSocket({"numbers": lambda _: Flow.from_async_iterable(source)}, on_connect=keep)
        async with Browser(app) as browser:
            await browser.say(type="subscribe", id=1, stream="numbers", n=5)
            await browser.wait()
            assert [1] == browser.items
            assert ["cleaned"] == log
            assert browser.over

    run_virtual(main())


def test_a_closed_connection_begins_no_stream() -> None:
    async def main() -> None:
        async def close(connection: Connection) -> None:
            with suppress(DisconnectedError):
                await connection.read("orders").for_each(lambda _: connection.close())

        source = Source()
        app = StreamSocket({"numbers": lambda _: Flow.from_async_iterable(source)}, on_connect=close)
        async with Browser(app) as browser:
            subscribe = {"type": "subscribe", "id": 1, "stream": "numbers", "n": 1}
            assert [] == await browser.say_at_once({"type": "next", "id": 1, "item": 1}, subscribe)
            assert 0 == source.made
            assert browser.over

    run_virtual(main())
