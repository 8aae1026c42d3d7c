"""Connections to a flow's port that say nothing of who they are."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow
from reactive_aio._remote.handshake import REPLY, Greeter, Guard
from reactive_aio.spark._delivery import link, subscription
from reactive_aio.spark._job import job
from reactive_aio.spark._task import connecting

pytestmark = pytest.mark.spark

LIMIT = 60.0


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Callable[[], connecting.Address]:
    """Return where the flow listens that has begun, and its secret."""
    found: list[connecting.Address] = []

    def noted(host: str, port: int, secret: bytes) -> connecting.Address:
        found.append(connecting.Address(host, port, secret))
        return found[-1]

    monkeypatch.setattr(job, "Address", noted)
    return lambda: found[-1]


async def stranger(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def gone(end: tuple[asyncio.StreamReader, asyncio.StreamWriter], *, said: bool = False) -> None:
    """Wait until the flow has hung up, which has said something or not."""
    reader, writer = end
    async with asyncio.timeout(LIMIT):
        with suppress(ConnectionResetError):
            assert await reader.read() == b"" or said
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_one_that_says_nothing_is_turned_out_in_time_and_the_task_is_not(
    sc: Any, monkeypatch: pytest.MonkeyPatch, listening: Callable[[], connecting.Address]
) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        monkeypatch.setattr(link, "MANNERS", 0)
        await gone(await stranger(listening().port))
        assert [*range(1, 200)] == [await anext(items) for _ in range(199)]


async def test_of_too_many_the_oldest_is_turned_out(
    sc: Any, monkeypatch: pytest.MonkeyPatch, listening: Callable[[], connecting.Address]
) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        monkeypatch.setattr(link, "MANNERS", 1000)
        monkeypatch.setattr(subscription, "MOST_STRANGERS", 2)
        first, second, third = [await stranger(listening().port) for _ in range(3)]
        await gone(first)
        assert [False, False] == [reader.at_eof() for reader, _ in (second, third)]
        assert [*range(1, 200)] == [await anext(items) for _ in range(199)]
    await gone(second)  # with the flow
    await gone(third)


async def test_a_guest_that_has_greeted_is_not_turned_out_by_any_number_of_strangers(
    sc: Any, monkeypatch: pytest.MonkeyPatch, listening: Callable[[], connecting.Address]
) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        monkeypatch.setattr(link, "MANNERS", 1000)
        monkeypatch.setattr(subscription, "MOST_STRANGERS", 2)
        address = listening()
        guest = await stranger(address.port)
        guest[1].write(Greeter(address.secret, 0, 1).greeting)
        assert REPLY.size == len(await guest[0].readexactly(REPLY.size))
        others = []
        for _ in range(50):
            others.append(await stranger(address.port))
            others[-1][1].write(Greeter(b"", 0, 1).greeting)  # as one who knows how guests greet, and not the secret
        for other in others[:-2]:
            await gone(other, said=True)
        assert [False] * 3 == [reader.at_eof() for reader, _ in (guest, *others[-2:])]
    await gone(guest)
    await gone(others[-2], said=True)
    await gone(others[-1], said=True)


async def test_tasks_get_in_while_strangers_crowd_in(
    sc: Any, monkeypatch: pytest.MonkeyPatch, listening: Callable[[], connecting.Address]
) -> None:
    monkeypatch.setattr(subscription, "MOST_STRANGERS", 1)
    over, came = threading.Event(), 0

    def crowd(port: int) -> None:
        nonlocal came
        inside: deque[socket.socket] = deque()
        with suppress(ConnectionError):  # when the flow has ended
            while not over.is_set():
                inside.append(socket.create_connection(("127.0.0.1", port)))
                came += 1
                if len(inside) > 50:
                    inside.popleft().close()
        for each in inside:
            each.close()

    async with Flow.from_spark(sc.parallelize(range(60), 20)).open() as items:
        found = [await anext(items)]
        with ThreadPoolExecutor(1) as threads:
            threads.submit(crowd, listening().port)
            try:
                found += [item async for item in items]
            finally:
                over.set()

    assert [*range(60)] == found
    assert came > 100


def test_a_task_that_is_turned_out_before_its_greeting_is_read_comes_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        address = connecting.Address("127.0.0.1", listening.getsockname()[1], b"secret")
        listening.settimeout(LIMIT)
        connected = threads.submit(connecting.connect, address, 3, 1)
        for _ in range(2):
            listening.accept()[0].close()
        connection, _ = listening.accept()
        guard = Guard(address.secret)
        while not guard.through:
            connection.sendall(guard.feed(connection.recv(guard.wants)))

        assert (3, 1) == (guard.partition, guard.attempt)
        connected.result(LIMIT).close()
        connection.close()


def test_a_task_that_is_never_let_in_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "monotonic", iter([0.0, connecting.PATIENCE + 1]).__next__)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        address = connecting.Address("127.0.0.1", listening.getsockname()[1], b"secret")
        connected = threads.submit(connecting.connect, address, 0, 0)
        listening.accept()[0].close()

        with pytest.raises(ConnectionError):
            connected.result(LIMIT)
