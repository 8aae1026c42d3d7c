"""The streams of anyio as flows, and flows into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import count
from typing import Any

import anyio
import pytest
from anyio.abc import ByteSendStream, ObjectReceiveStream, ObjectSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream
from attrs import define, field

from reactive_aio import Flow
from reactive_aio._core import budgets
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


def test_an_argument_that_is_no_stream_is_refused() -> None:
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


@define(eq=False)
class Sent(ByteSendStream):
    """A stream of bytes that keeps what it has been sent, and holds up the writer for a turn of the loop each time."""

    chunks: list[bytes] = field(init=False, factory=list[bytes])

    async def send(self, item: bytes) -> None:
        self.chunks.append(bytes(item))
        await anyio.sleep(0)

    async def aclose(self) -> None: ...


def lines(numbers: Iterable[int]) -> Flow[bytes]:
    return Flow.from_iterable(numbers).map(b"%d\n".__mod__)


@pytest.mark.usefixtures("still")
async def test_bytes_that_are_there_at_once_go_together_up_to_a_limit() -> None:
    stream = Sent()

    await send_to(stream, lines(range(5)), max_chunk=4)

    assert [b"0\n1\n", b"2\n3\n", b"4\n"] == stream.chunks


async def test_bytes_that_are_made_in_more_than_a_turn_are_sent_meanwhile(still: list[float]) -> None:
    stream, made = Sent(), list[int]()

    def slow(n: int) -> int:
        made.append(n)
        still[0] += budgets.TURN / 2
        return n

    await send_to(stream, lines(range(1_000)).map(len).map(slow).map(b"%d\n".__mod__))

    assert 1_000 == len(b"".join(stream.chunks).splitlines())
    assert 64 >= max(len(chunk.splitlines()) for chunk in stream.chunks)  # the clock is looked at once a slice


async def test_no_bytes_are_asked_for_before_those_before_them_are_sent() -> None:
    stream = Sent()
    seen: list[int] = []

    async def made() -> AsyncIterator[bytes]:
        for _ in range(4):
            seen.append(len(stream.chunks))
            yield b"x"

    await send_to(stream, Flow.from_async_iterable(made))

    assert [0, 1, 2, 3] == seen


async def test_bytes_before_a_failure_are_sent() -> None:
    stream = Sent()

    def fail_at_3(n: int) -> int:
        if n == 3:
            raise LookupError
        return n

    with pytest.raises(LookupError):
        await send_to(stream, lines(range(9)).map(int).map(fail_at_3).map(b"%d\n".__mod__))

    assert b"0\n1\n2\n" == b"".join(stream.chunks)


async def test_an_element_that_is_no_bytes_is_refused_behind_those_before_it() -> None:
    stream = Sent()
    mixed: Any = Flow.of(b"a", b"b", "c")
    with pytest.raises(TypeError, match="a stream of bytes is sent bytes, not str"):
        await send_to(stream, mixed)

    assert b"ab" == b"".join(stream.chunks)


@pytest.mark.usefixtures("still")
async def test_an_error_of_a_stream_of_bytes_says_behind_which_element_it_came() -> None:
    class Broken(Sent):
        async def send(self, item: bytes) -> None:
            await super().send(item)
            if len(self.chunks) == 2:
                raise anyio.BrokenResourceError

    with pytest.raises(anyio.BrokenResourceError) as failed:
        await send_to(Broken(), lines(range(9)), max_chunk=6)

    assert "on element #3 of" in failed.value.__notes__[0]


async def test_a_limit_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="max_chunk"):
        await send_to(Sent(), Flow.of(b"x"), max_chunk=0)
