"""The bodies that a client reads and sends: under demand, with nothing left when either side breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx2
import pytest
from attrs import define, field

from reactive_aio import Flow
from reactive_aio.errors import SourceConsumedError
from reactive_aio.web import TooLargeError, response_body, split_lines
from tests.subscribers import Recorder, idle

from .origin import CHUNK, LIBRARIES, MOST_CHUNKS, Open, by_aiohttp, origin, settled, sockets

LOST = (httpx2.TransportError, aiohttp.ClientError, OSError)
each_library = pytest.mark.parametrize("library", LIBRARIES)
UNDER_WAY = 16_777_216
"""Bytes that the sockets of both sides and the library may hold; the whole body has half a gigabyte."""


def body(request: Open, url: str) -> Flow[bytes]:
    return Flow.using(lambda: request("GET", url), response_body)


async def rest() -> set[asyncio.Task[Any]]:
    """Let what has been closed end, and return the tasks that there are."""
    await settled(lambda: len(asyncio.all_tasks()))
    return asyncio.all_tasks()


@each_library
async def test_a_body_is_read_to_its_end(library: str) -> None:
    async with origin() as server, LIBRARIES[library]() as request:
        assert [b"one", b"two", b"th"] == await split_lines(body(request, server.url("lines"))).to_list()


@each_library
async def test_a_flow_that_opens_its_response_can_be_read_again(library: str) -> None:
    async with origin() as server, LIBRARIES[library]() as request:
        lines = split_lines(body(request, server.url("lines")))

        assert 6 == await lines.repeat(2).count()


@each_library
async def test_a_reader_that_stops_stops_the_writer(library: str) -> None:
    async with origin() as server, LIBRARIES[library]() as request:
        received = 0
        async with body(request, server.url("endless")).open() as chunks:
            for _ in range(3):
                received += len(await anext(chunks))
            written = await server.stopped() * len(CHUNK)

            assert received <= written + len(CHUNK) < received + UNDER_WAY
        await server.all_ended()
    assert server.written < MOST_CHUNKS


@each_library
async def test_a_reader_that_leaves_ends_the_writer_and_leaves_nothing(library: str) -> None:
    async with origin() as server, LIBRARIES[library]() as request:
        await body(request, server.url("endless")).take(1).drain()
        await server.all_ended()
        tasks, before = await rest(), sockets()
        for _ in range(3):
            await body(request, server.url("endless")).take(1).drain()
        await server.all_ended()

        assert tasks == await rest()
        assert before >= sockets()


@each_library
@pytest.mark.parametrize("fate", ["resets", "half_closes"])
async def test_a_server_that_breaks_off_is_a_failure_and_leaves_nothing(library: str, fate: str) -> None:
    async with origin() as server, LIBRARIES[library]() as request:
        before = sockets()
        for _ in range(3):
            with pytest.raises(LOST):
                await body(request, server.url(fate)).drain()
        await server.all_ended()
        await rest()

        assert before >= sockets()


@each_library
async def test_a_server_that_stalls_is_given_up_by_the_timeout_of_the_library(library: str) -> None:
    async with origin() as server, LIBRARIES[library](read_timeout=0.05) as request:
        before = sockets()
        with pytest.raises((TimeoutError, httpx2.ReadTimeout)):
            await body(request, server.url("stalls")).drain()
        await server.all_ended()
        await rest()

        assert before >= sockets()


async def test_a_response_that_is_open_already_is_closed_behind_its_body() -> None:
    async with origin() as server, aiohttp.ClientSession() as session, httpx2.AsyncClient(verify=False) as client:
        by_session = await session.get(server.url("endless"))
        by_client = await client.send(client.build_request("GET", server.url("endless")), stream=True)
        await response_body(by_session).take(1).drain()
        await response_body(by_client).take(1).drain()

        assert (True, True) == (by_session.closed, by_client.is_closed)
        await server.all_ended()


@each_library
async def test_a_read_that_waits_is_cancelled(library: str) -> None:
    begun = asyncio.Event()
    async with origin() as server, LIBRARIES[library]() as request:
        before = sockets()
        reading = asyncio.create_task(body(request, server.url("stalls")).for_each(lambda _: begun.set()))
        await begun.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.all_ended()
        await rest()

        assert before >= sockets()


@each_library
async def test_a_body_beyond_the_limit_is_a_failure(library: str) -> None:
    async with origin() as server, LIBRARIES[library]() as request:
        with pytest.raises(TooLargeError, match="more than the 7 bytes"):
            await Flow.using(
                lambda: request("GET", server.url("lines")), lambda response: response_body(response, max_bytes=7)
            ).drain()
        await server.all_ended()


@each_library
async def test_a_server_that_does_not_read_stops_an_upload_and_its_end_closes_the_flow(library: str) -> None:
    made = 0
    closed: list[int] = []

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal made
        try:
            for _ in range(MOST_CHUNKS):
                made += 1
                yield CHUNK
        finally:
            closed.append(made)

    async def upload(request: Open, url: str) -> None:
        async with Flow.from_async_iterable(chunks).open() as content, request("POST", url, data=content):
            raise AssertionError("it has answered")

    async with origin() as server, LIBRARIES[library]() as request:
        sending = asyncio.create_task(upload(request, server.url("reads_nothing")))
        assert UNDER_WAY > await settled(lambda: made) * len(CHUNK)
        assert made
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert [made] == closed
        server.leave.set()
        await server.all_ended()


async def test_a_server_that_answers_before_it_has_read_everything_ends_an_upload() -> None:
    closed: list[bool] = []
    content = Flow.from_iterable([CHUNK] * MOST_CHUNKS).do_finally(lambda: closed.append(True))
    tasks = asyncio.all_tasks()

    async with origin() as server, by_aiohttp() as request:  # httpx reads no answer before it has written everything
        async with content.open() as chunks, request("POST", server.url("answers_early"), data=chunks) as response:
            assert 413 == response.status
        assert [True] == closed
        server.leave.set()
        await server.all_ended()
    assert tasks == await rest()


# -- without a server


@define(eq=False)
class Response:
    """The parts of an httpx response that are used."""

    chunks: list[bytes]
    read: int = field(init=False, default=0)
    closed: int = field(init=False, default=0)

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            self.read += 1
            yield chunk

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_chunk_is_read_for_each_that_is_wanted() -> None:
    response = Response([b"x"] * 100)
    async with response_body(response).open() as chunks:
        for number in range(1, 4):
            await anext(chunks)
            assert number == response.read


async def test_a_response_is_closed_at_every_end() -> None:
    ends = [Response([b"xx"]) for _ in range(4)]
    await response_body(ends[0]).drain()
    await response_body(ends[1]).take(1).drain()
    with pytest.raises(TooLargeError):
        await response_body(ends[2], max_bytes=1).drain()
    unasked = Recorder()
    response_body(ends[3]).subscribe(unasked)
    await idle()
    unasked.cancel()
    await idle()

    assert [1, 1, 1, 1] == [response.closed for response in ends]


async def test_a_response_can_be_read_once() -> None:
    read = response_body(Response([b"x"]))
    await read.drain()

    with pytest.raises(SourceConsumedError):
        await read.drain()


def test_what_is_no_response_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="a response of httpx or aiohttp, not str"):
        response_body("body")
    with pytest.raises(ValueError, match="max_bytes"):
        response_body(Response([]), max_bytes=0)
