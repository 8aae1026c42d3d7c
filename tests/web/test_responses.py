"""Responses whose bodies are flows: what the client gets, what it asks for, and what is left when it goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow
from reactive_aio.testing import run_virtual
from reactive_aio.web import Event, EventStream, FlowResponse, JSONLinesResponse
from tests.web.client import Client


@define(eq=False)
class Lines:
    """A source that suspends, says what it has made, and takes its time to clean up."""

    wait: float = 0.01
    most: int = 1000
    made: int = field(init=False, default=0)
    cleanups: list[str] = field(init=False, factory=list[str])

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            for n in range(self.most):
                await asyncio.sleep(self.wait)
                self.made += 1
                yield f"{n}\n"
        finally:
            self.cleanups.append("begun")
            await asyncio.sleep(0.1)
            self.cleanups.append("ended")

    @property
    def flow(self) -> Flow[str]:
        return Flow.from_async_iterable(self)


async def test_the_body_is_the_elements_as_they_come() -> None:
    client = Client()
    response = FlowResponse(
        Flow.of("é", "b"), media_type="text/plain; charset=utf-8", status=203, headers={"X-Of": "us"}
    )
    await client.ask(response)

    start, *_ = client.messages
    assert (203, [(b"content-type", b"text/plain; charset=utf-8"), (b"x-of", b"us")]) == (
        start["status"],
        start["headers"],
    )
    assert (["é".encode(), b"b"], True) == (client.chunks, client.complete)


async def test_each_request_subscribes_anew() -> None:
    response = FlowResponse(Flow.range(3).map(str))

    for client in (Client(), Client()):
        await client.ask(response)
        assert b"012" == client.body


async def test_nothing_is_made_for_a_head_request() -> None:
    client, called = Client(method="HEAD"), list[int]()
    await client.ask(FlowResponse(Flow.range(3).do_on_next(called.append).map(str)))

    assert (b"", True, []) == (client.body, client.complete, called)
    assert ["http.response.start", "http.response.body"] == [message["type"] for message in client.messages]


async def test_lines_of_json() -> None:
    client = Client()
    await client.ask(JSONLinesResponse(Flow.of({"n": 1}, [None])))

    assert b'{"n": 1}\n[null]\n' == client.body
    assert (b"content-type", b"application/x-ndjson") in client.messages[0]["headers"]


async def test_what_would_be_two_lines_of_json_is_a_failure() -> None:
    with pytest.raises(ValueError, match="line break"):
        await Client().ask(JSONLinesResponse(Flow.of("x"), encode=lambda _: "[\n]"))


# -- what is left when the client goes


def test_when_the_client_disconnects_the_cleanup_has_ended_before_the_call_returns() -> None:
    async def main() -> None:
        lines = Lines()
        await Client(leaves_after=3).ask(FlowResponse(lines.flow))

        assert ["begun", "ended"] == lines.cleanups
        assert 1 == len(asyncio.all_tasks())

    run_virtual(main())


@pytest.mark.parametrize(
    "respond",
    [FlowResponse, JSONLinesResponse, lambda flow: EventStream(lambda _: flow.map(Event))],
    ids=["body", "lines", "events"],
)
@pytest.mark.parametrize("awaited", [False, True])
async def test_a_source_that_never_suspends_is_left_when_the_client_disconnects(
    respond: Callable[[Flow[str]], Any], awaited: bool
) -> None:
    closed: list[str] = []

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.append("closed")

    async def ready() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.append("closed")

    flow = Flow.from_async_iterable(ready) if awaited else Flow.from_iterable(endless)
    await Client(leaves_after=100).ask(respond(flow))

    assert ["closed"] == closed


@pytest.mark.parametrize("cancels", [1, 3])
def test_a_request_that_is_cancelled_again_and_again_cuts_no_cleanup_short(cancels: int) -> None:
    async def main() -> None:
        lines = Lines()
        request = asyncio.create_task(Client().ask(FlowResponse(lines.flow)))
        await asyncio.sleep(0.055)
        for _ in range(cancels):
            request.cancel()
            await asyncio.sleep(0.01)

        with pytest.raises(asyncio.CancelledError):
            await request
        assert ["begun", "ended"] == lines.cleanups

    run_virtual(main())


# -- a client that does not read


def test_a_client_that_does_not_read_is_waited_for_and_nothing_is_made_meanwhile() -> None:
    async def main() -> float:
        lines, client = Lines(), Client(stalls_after=4)
        await client.ask(FlowResponse(lines.flow, send_timeout=30.0))

        # The start, three chunks, and the one that is on its way.
        assert (4, 4) == (len(client.messages), lines.made)
        assert ["begun", "ended"] == lines.cleanups
        return asyncio.get_running_loop().time()

    assert 30.14 == pytest.approx(run_virtual(main()), abs=0.001)


@pytest.mark.parametrize(("taken", "what"), [(0, "the status"), (1, "the chunk"), (2, "the end")])
@pytest.mark.parametrize("make", [FlowResponse, lambda flow, **more: EventStream(lambda _: flow.map(Event), **more)])
def test_whatever_a_client_does_not_take_has_a_timeout(make: Callable[..., Any], taken: int, what: str) -> None:
    async def main() -> float:
        client = Client(stalls_after=taken)
        async with asyncio.timeout(100.0):
            await client.ask(make(Flow.of("a"), send_timeout=30.0))
        assert (taken, False) == (len(client.messages), client.complete), what
        return asyncio.get_running_loop().time()

    assert 30 == run_virtual(main())


def test_without_a_timeout_it_is_waited_for_without_end() -> None:
    async def main() -> None:
        lines = Lines()
        request = asyncio.create_task(Client(stalls_after=4).ask(FlowResponse(lines.flow, send_timeout=None)))
        await asyncio.sleep(10 * 3600)

        assert (4, False) == (lines.made, request.done())
        request.cancel()
        await asyncio.wait([request])

    run_virtual(main())


def test_a_client_that_takes_chunks_slowly_is_not_taken_for_stalled() -> None:
    class Slow(Client):
        async def _send(self, message: dict[str, object]) -> None:
            await asyncio.sleep(20.0)
            await super()._send(message)

    async def main() -> bytes:
        client = Slow()
        await client.ask(FlowResponse(Lines(most=5).flow, send_timeout=30.0))
        return client.body

    assert b"0\n1\n2\n3\n4\n" == run_virtual(main())


# -- failures


async def test_a_failure_before_the_first_chunk_comes_before_anything_is_sent() -> None:
    client = Client()
    with pytest.raises(LookupError):
        await client.ask(FlowResponse(Flow[str].error(LookupError("gone"))))

    assert [] == client.messages


async def test_a_later_failure_cuts_the_body_short() -> None:
    client = Client()
    with pytest.raises(LookupError):
        await client.ask(FlowResponse(Flow.of("a").concat(Flow[str].error(LookupError("gone")))))

    assert (b"a", False) == (client.body, client.complete)


async def test_an_element_that_is_no_chunk_is_a_failure_that_says_so() -> None:
    body: Any = Flow.of(7)
    with pytest.raises(TypeError, match="the body of a response is bytes or str, not int"):
        await Client().ask(FlowResponse(body))


@pytest.mark.parametrize("headers", [{"x": "a\r\nset-cookie: b"}, {"x\n": "a"}, {"": "a"}])
def test_a_header_that_would_be_another_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="header"):
        FlowResponse(Flow.of("a"), headers=headers)


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan")])
def test_a_timeout_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="send_timeout"):
        FlowResponse(Flow.of("a"), send_timeout=wrong)


async def test_a_websocket_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="FlowResponse answers HTTP requests, not a scope of type 'websocket'"):
        await FlowResponse(Flow.of("a"))({"type": "websocket"}, Client()._receive, Client()._send)
    with pytest.raises(TypeError, match="EventStream answers HTTP requests"):
        await EventStream(lambda _: Flow.empty())({"type": "lifespan"}, Client()._receive, Client()._send)
