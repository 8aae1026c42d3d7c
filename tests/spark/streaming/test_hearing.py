"""When a task of a query is taken for lost though it has not hung up, and a query for gone; on virtual time."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio._remote.frames import BEAT, LAST, Decoder, Frame
from reactive_aio.spark.streaming._arrival import Arrival, Writing
from reactive_aio.spark.streaming._datasink import Conversation, Pulse
from reactive_aio.spark.streaming._hearing import hearing
from reactive_aio.spark.streaming._inboxwire import Delivery
from reactive_aio.testing import run_virtual


def test_one_that_has_said_nothing_for_thirty_seconds_is_lost() -> None:
    async def silent() -> float:
        reader = asyncio.StreamReader()
        hear = hearing(reader)
        reader.feed_data(Frame(BEAT).whole())
        assert BEAT == (await hear()).kind
        with pytest.raises(ConnectionError, match="has sent nothing for 30 seconds"):
            await hear()
        return asyncio.get_running_loop().time()

    assert 30.0 == pytest.approx(run_virtual(silent()))


def test_one_that_says_that_it_is_alive_may_take_as_long_as_it_likes() -> None:
    async def alive() -> list[int]:
        reader = asyncio.StreamReader()
        hear = hearing(reader)

        async def speak() -> None:
            for _ in range(100):
                await asyncio.sleep(29.0)
                reader.feed_data(Frame(BEAT).whole())
            reader.feed_data(Frame(LAST).whole())

        async with asyncio.TaskGroup() as group:
            group.create_task(speak())
            return [(await hear()).kind for _ in range(101)]

    assert [BEAT] * 100 + [LAST] == run_virtual(alive())


def test_a_loop_that_was_held_up_itself_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactive_aio.spark.streaming._hearing.BEAT", 0.01)

    async def held_up() -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            hearing_it = asyncio.ensure_future(hearing(reader)())
            await asyncio.sleep(0)
            time.sleep(0.1)
            theirs.sendall(Frame(LAST).whole())
            kind: int = (await hearing_it).kind
            writer.close()
            await writer.wait_closed()
            return kind

    assert LAST == asyncio.run(held_up())


def test_a_task_says_again_and_again_that_it_is_alive() -> None:
    task, loop = socket.socketpair()
    decoder = Decoder()
    heard: list[Frame] = []
    with loop, Conversation(task) as conversation, Pulse(conversation, batch=7, seconds=0.001):
        while len(heard) < 3:
            heard += decoder.feed(loop.recv(4096))

    assert {(BEAT, 7)} == {(frame.kind, frame.number) for frame in heard}


def test_a_task_whose_loop_has_hung_up_hears_of_it_elsewhere() -> None:
    task, loop = socket.socketpair()
    loop.close()
    with Conversation(task) as conversation:
        pulse = Pulse(conversation, batch=7, seconds=0.001)
        with pulse:
            pulse._thread.join(20)  # pyright: ignore[reportPrivateUsage] - it has ended by itself, and in peace
        assert not pulse._thread.is_alive()  # pyright: ignore[reportPrivateUsage]


# -- a query


class NoWriter:
    """Takes what is said to a task."""

    def is_closing(self) -> bool:
        return False

    def writelines(self, pieces: Any) -> None:
        pass


async def written(arrival: Arrival, *, lost: bool = False) -> None:
    """Have a task come and go."""

    async def hear() -> Frame:
        if lost:
            raise ConnectionError
        return Frame(LAST)

    nobody: Any = NoWriter()
    try:
        await arrival.write(Writing(0, nobody), hear)
    except ConnectionError:
        assert lost


def arriving() -> Arrival:
    nothing: Any = None
    loop = asyncio.get_running_loop()

    def post(handle: Callable[[Any], None], value: Any) -> None:
        loop.call_soon(handle, value)

    arrival = Arrival(Delivery("query", "run", 3), nothing, post, 300.0)
    arrival.hand_over(lambda error: pytest.fail(str(error)))
    return arrival


@pytest.mark.parametrize("lost", [True, False])
def test_one_of_which_no_task_comes_any_more_is_gone_after_a_time(lost: bool) -> None:
    async def deserted() -> Arrival:
        arrival = arriving()
        await written(arrival)
        await asyncio.sleep(290.0)
        await written(arrival, lost=lost)  # from here on
        await asyncio.sleep(299.0)
        assert not arrival.handover.settled
        await asyncio.sleep(2.0)
        return arrival

    arrival = run_virtual(deserted())
    assert arrival.decided.is_set()
    assert "no task of query query has been connected for 300 seconds, in micro-batch 3" in arrival.why


def test_one_that_has_written_all_may_wait_as_long_as_the_subscriber_likes() -> None:
    async def confirmed() -> Arrival:
        arrival = arriving()
        await written(arrival)
        arrival.confirmed({"0": 0})
        await asyncio.sleep(100_000.0)
        return arrival

    assert not run_virtual(confirmed()).handover.settled
