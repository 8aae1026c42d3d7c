"""RSocket over TCP: flows in both directions, with the demand that is seen on the wire."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import reactivex
from attrs import define, field
from rsocket.exceptions import RSocketProtocolError
from rsocket.frame import CancelFrame, RequestChannelFrame, RequestNFrame, RequestStreamFrame
from rsocket.payload import Payload
from rsocket.reactivex.back_pressure_publisher import (
    from_observable_with_backpressure,
    observable_from_async_generator,
    observable_to_publisher,
)
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_server import RSocketServer
from rsocket.transports.tcp import TransportTCP

from reactive_aio import Flow, schedulers

PATIENCE = 20.0
"""Seconds after which what should come at once counts as lost."""
PAGE = Path(__file__).parents[2] / "docs" / "rsocket.md"


def of_the_page() -> dict[str, Any]:
    """Return what the page defines: it is the adapter of the page that is tested."""
    found = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {"__name__": "rsocket_page"}
    exec(found[1], names)
    return names


STREAM, READING, SERVING, CONNECTED = (of_the_page()[name] for name in ("Stream", "Reading", "serving", "connected"))


@define(eq=False)
class Wire:
    """A service, and the frames of demand that it hears."""

    requested: list[int] = field(init=False, factory=list[int])
    """By the frame that opens a stream, and by each REQUEST_N."""
    cancelled: int = field(init=False, default=0)
    made: int = field(init=False, default=0)
    cleaned: asyncio.Event = field(init=False, factory=asyncio.Event)
    taken: list[bytes] = field(init=False, factory=list[bytes])
    over: asyncio.Event = field(init=False, factory=asyncio.Event)
    writer: Any = field(init=False, default=None)
    """That of the last connection, at the service."""

    def transport(self, *streams: Any) -> Any:
        wire = self
        self.writer = streams[1]

        class Heard(TransportTCP):  # type: ignore[misc] # rsocket ships no types
            async def next_frame_generator(self) -> Any:
                frames = await super().next_frame_generator()
                return None if frames is None else wire.heard(frames)

        return Heard(*streams)

    async def heard(self, frames: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for frame in frames:
            if isinstance(frame, RequestStreamFrame | RequestChannelFrame):
                self.requested.append(frame.initial_request_n)
            elif isinstance(frame, RequestNFrame):
                self.requested.append(frame.request_n)
            elif isinstance(frame, CancelFrame):
                self.cancelled += 1
            yield frame

    async def numbers(self, most: int) -> AsyncIterator[Payload]:
        try:
            for n in range(most):
                self.made += 1
                yield Payload(b"%d" % n)
        finally:
            self.cleaned.set()

    def handler(self) -> Any:
        wire = self

        class Handler(BaseRequestHandler):  # type: ignore[misc] # rsocket ships no types
            async def request_stream(self, payload: Payload) -> Any:
                if payload.data == b"failing":
                    return Flow.error(LookupError("failed"))
                return Flow.from_async_iterable(wire.numbers(int(payload.data)))

            async def request_channel(self, payload: Payload) -> Any:
                if payload.data != b"squares":
                    return None, Taking(wire)
                numbers = READING()
                return Flow[bytes].from_publisher(numbers).map(lambda n: Payload(b"%d" % int(n) ** 2)), numbers

        return Handler()


@define(eq=False)
class Taking:
    """A subscriber that asks for two elements at a time."""

    wire: Wire
    subscription: Any = field(init=False)

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, payload: Payload, is_complete: bool = False) -> None:
        self.wire.taken.append(payload.data)
        if is_complete:
            self.on_complete()
        elif len(self.wire.taken) % 2 == 0:
            self.subscription.request(2)

    def on_error(self, error: Exception) -> None:
        raise AssertionError(error)

    def on_complete(self) -> None:
        self.wire.over.set()


@asynccontextmanager
async def talking() -> AsyncGenerator[tuple[Wire, Any]]:
    wire = Wire()
    async with asyncio.timeout(PATIENCE), SERVING(wire.handler, wire.transport) as port, CONNECTED(port) as client:
        yield wire, client


def numbers(client: Any, most: int) -> Flow[bytes]:
    return Flow.from_publisher(STREAM(lambda: client.request_stream(Payload(b"%d" % most))))


async def test_what_an_end_asks_for_is_what_the_wire_has() -> None:
    async with talking() as (wire, client):
        async with numbers(client, 1_000).open() as items:
            assert [b"0", b"1", b"2"] == [await anext(items) for _ in range(3)]
        await wire.cleaned.wait()
        assert ([1, 1, 1], 3, 1) == (wire.requested, wire.made, wire.cancelled)


async def test_elements_that_are_asked_for_ahead_are_asked_for_together() -> None:
    async with talking() as (wire, client):
        flow = numbers(client, 20).publish_on(schedulers.current(), prefetch=8)
        assert [b"%d" % n for n in range(20)] == await flow.to_list()
        assert 8 == wire.requested[0]
        assert all(6 <= n <= 8 for n in wire.requested)


async def test_each_subscription_is_a_request_of_its_own() -> None:
    async with talking() as (wire, client):
        flow = numbers(client, 2)
        assert [[b"0", b"1"], [b"0", b"1"]] == [await flow.to_list(), await flow.to_list()]
        assert 4 == wire.made


async def test_a_failure_of_the_other_side_arrives() -> None:
    async with talking() as (_, client):
        failing = Flow.from_publisher(STREAM(lambda: client.request_stream(Payload(b"failing"))))
        with pytest.raises(Exception, match="failed"):
            await failing.to_list()


async def test_a_lost_connection_fails_what_is_read_and_closes_what_is_offered() -> None:
    async with talking() as (wire, client):
        async with numbers(client, 1_000).open() as items:
            assert b"0" == await anext(items)
            wire.writer.transport.abort()
            with pytest.raises(RSocketProtocolError):
                await anext(items)
        await wire.cleaned.wait()


async def test_a_flow_goes_to_the_other_side_as_it_asks() -> None:
    asked: list[int] = []

    async with talking() as (wire, client):
        flow = Flow.range(5).do_on_request(asked.append).map(lambda n: Payload(b"%d" % n))
        answers = Flow.from_publisher(STREAM(lambda: client.request_channel(Payload(), flow)))
        reading = asyncio.create_task(answers.drain())
        await wire.over.wait()
        reading.cancel()
        await asyncio.wait([reading])

        assert [b"0", b"1", b"2", b"3", b"4"] == wire.taken
        assert [2, 2, 2] == asked


@asynccontextmanager
async def channel() -> AsyncGenerator[tuple[Wire, Wire, Flow[bytes]]]:
    """Yield what the service and the client hear, and the answers to the numbers that the client sends."""
    there, here = Wire(), Wire()
    async with (
        asyncio.timeout(PATIENCE),
        SERVING(there.handler, there.transport) as port,
        CONNECTED(port, here.transport) as client,
    ):
        sent = Flow.from_async_iterable(lambda: here.numbers(1_000))
        yield there, here, Flow.from_publisher(STREAM(lambda: client.request_channel(Payload(b"squares"), sent)))


async def test_both_sides_of_a_channel_ask_for_what_is_wanted() -> None:
    async with channel() as (there, here, squares):
        async with squares.open() as items:
            assert [b"0", b"1", b"4"] == [await anext(items) for _ in range(3)]
        await here.cleaned.wait()

        # The client asks for squares, and the service for as many numbers, which are made then.
        assert ([1, 1, 1], [1, 1, 1], 3) == (there.requested, here.requested, here.made)


async def test_who_leaves_a_channel_ends_both_of_its_streams() -> None:
    async with channel() as (there, here, squares):
        async with squares.open() as items:
            await anext(items)
        await here.cleaned.wait()

        assert (1, 1) == (there.cancelled, here.cancelled)


async def test_a_lost_connection_ends_both_streams_of_a_channel() -> None:
    async with channel() as (there, here, squares), squares.open() as items:
        await anext(items)
        there.writer.transport.abort()
        with pytest.raises(RSocketProtocolError):
            await anext(items)
        await here.cleaned.wait()


async def test_the_service_reads_a_flow_of_the_client_as_it_asks() -> None:
    servers = asyncio.Queue[Any]()
    here = Wire()

    def accept(reader: Any, writer: Any) -> None:
        RSocketServer(TransportTCP(reader, writer), on_ready=servers.put_nowait)

    async with asyncio.timeout(PATIENCE), await asyncio.start_server(accept, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with CONNECTED(port, here.transport, here.handler):
            server = await servers.get()
            async with numbers(server, 1_000).open() as items:
                assert [b"0", b"1"] == [await anext(items) for _ in range(2)]
            await here.cleaned.wait()

    assert ([1, 1], 2, 1) == (here.requested, here.made, here.cancelled)


async def test_an_observable_is_read_by_the_bridge_of_rsocket() -> None:
    letters = observable_to_publisher(reactivex.from_iterable("abc"))

    assert ["A", "B", "C"] == await Flow.from_publisher(letters).map(str.upper).to_list()


async def test_an_observable_that_is_made_under_demand_is_asked_for_what_is_wanted() -> None:
    made: list[int] = []

    async def generated() -> AsyncIterator[int]:
        for n in range(1_000):
            made.append(n)
            yield n

    publisher: Any = observable_to_publisher(
        from_observable_with_backpressure(lambda demand: observable_from_async_generator(generated(), demand))
    )

    assert [0, 1, 2] == await Flow[int].from_publisher(publisher).take(3).to_list()
    assert [0, 1, 2] == made
