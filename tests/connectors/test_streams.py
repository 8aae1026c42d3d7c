"""The streams of anyio as flows, and flows into them."""

from __future__ import annotations

from itertools import count
from typing import Any

import anyio
import pytest
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream
from attrs import define, field

from reactive_aio import Flow
from reactive_aio.io import from_stream, send_to


@define(eq=False)
class Numbers(ObjectReceiveStream[int]):
    received: int = field(init=False, default=0)

    async def receive(self) -> int:
        self.received += 1
        return self.received

    async def aclose(self) -> None: ...


@define(eq=False)
class Slots(ObjectSendStream[int]):
    taken: list[int] = field(init=False, factory=list[int])
    places: int

    async def send(self, item: int) -> None:
        if len(self.taken) == self.places:
            await anyio.sleep_forever()
        self.taken.append(item)

    async def aclose(self) -> None: ...


async def test_objects_come_until_the_stream_ends() -> None:
    send, receive = anyio.create_memory_object_stream[int](10)
    async with receive:
        async with send:
            await send_to(send, Flow.range(5))

        assert [0, 1, 2, 3, 4] == await from_stream(receive).to_list()


async def test_an_object_is_received_for_each_that_is_wanted() -> None:
    stream = Numbers()
    async with from_stream(stream).open() as numbers:
        assert 0 == stream.received
        for number in range(1, 4):
            assert number == await anext(numbers)
            assert number == stream.received


async def test_a_reader_that_stops_stops_the_writer() -> None:
    made = count()
    send, receive = anyio.create_memory_object_stream[int](3)
    async with send, receive, anyio.create_task_group() as tasks:
        tasks.start_soon(send_to, send, Flow.from_iterable(made))
        async with from_stream(receive).open() as numbers:
            assert [0, 1] == [await anext(numbers), await anext(numbers)]
            await anyio.wait_all_tasks_blocked()

            # Two read, three in the stream, one on its way.
            assert 6 == next(made)
        tasks.cancel_scope.cancel()


async def test_bytes_come_in_chunks_of_the_size_asked_for() -> None:
    send, receive = anyio.create_memory_object_stream[bytes](1)
    async with send, receive:
        await send.send(b"abcdefg")
        stream = BufferedByteReceiveStream(receive)

        assert [b"abc", b"def", b"g"] == await from_stream(stream, size=3).take(3).to_list()


async def test_a_flow_that_fails_is_raised_and_the_stream_stays_open() -> None:
    send, receive = anyio.create_memory_object_stream[int](10)
    async with send, receive:
        with pytest.raises(LookupError):
            await send_to(send, Flow.error(LookupError()).start_with(1))
        await send_to(send, Flow.of(2))

        assert [1, 2] == [await receive.receive(), await receive.receive()]


async def test_a_stream_that_breaks_closes_the_flow() -> None:
    ended: list[bool] = []
    send, receive = anyio.create_memory_object_stream[int](1)
    async with send:
        await receive.aclose()
        with pytest.raises(anyio.BrokenResourceError):
            await send_to(send, Flow.never().start_with(1).do_finally(lambda *_: ended.append(True)))

    assert [True] == ended


async def test_a_stream_that_takes_too_long_is_given_up() -> None:
    stream = Slots(2)
    with pytest.raises(TimeoutError):
        await send_to(stream, Flow.range(5), send_timeout=0.01)

    assert [0, 1] == stream.taken


def test_what_is_no_stream_is_refused() -> None:
    nothing: Any = object()
    with pytest.raises(TypeError, match="from_stream"):
        from_stream(nothing)


async def test_what_can_only_be_read_is_not_sent_to() -> None:
    stream: Any = Numbers()
    with pytest.raises(TypeError, match="send_to"):
        await send_to(stream, Flow.of(1))


async def test_a_closed_stream_fails_the_flow() -> None:
    send, receive = anyio.create_memory_object_stream[int](1)
    closed: MemoryObjectReceiveStream[int] = receive
    async with send:
        await receive.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await from_stream(closed).to_list()
