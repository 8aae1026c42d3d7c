"""Connections to a flow's port that say nothing of who they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs
import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow
from reactive_aio._remote.handshake import REPLY, Greeter
from reactive_aio.spark._delivery import link, subscription
from reactive_aio.spark._delivery.entrance import next_out
from reactive_aio.spark._job import job
from reactive_aio.spark._task import connecting

pytestmark = pytest.mark.spark

LIMIT = 60.0


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Tell on which port the flow listens that has begun."""
    found: list[int] = []

    def noted(host: str, port: int, secret: bytes) -> connecting.Address:
        found.append(port)
        return connecting.Address(host, port, secret)

    monkeypatch.setattr(job, "Address", noted)
    return lambda: found[-1]


async def stranger(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def gone(end: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Wait until the flow has hung up."""
    reader, writer = end
    async with asyncio.timeout(LIMIT):
        with suppress(ConnectionResetError):
            assert b"" == await reader.read()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_one_that_says_nothing_is_turned_out_in_time_and_the_task_is_not(
    sc: Any, monkeypatch: pytest.MonkeyPatch, port: Callable[[], int]
) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        monkeypatch.setattr(link, "MANNERS", 0)
        await gone(await stranger(port()))
        assert [*range(1, 200)] == [await anext(items) for _ in range(199)]


async def test_of_too_many_the_oldest_is_turned_out(
    sc: Any, monkeypatch: pytest.MonkeyPatch, port: Callable[[], int]
) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        monkeypatch.setattr(link, "MANNERS", 1000)
        monkeypatch.setattr(subscription, "MOST_GUESTS", 2)
        first, second, third = [await stranger(port()) for _ in range(3)]
        await gone(first)
        assert [False, False] == [reader.at_eof() for reader, _ in (second, third)]
        assert [*range(1, 200)] == [await anext(items) for _ in range(199)]
    await gone(second)  # with the flow
    await gone(third)


async def test_one_that_has_greeted_is_not_turned_out_by_any_number_that_say_nothing(
    sc: Any, monkeypatch: pytest.MonkeyPatch, port: Callable[[], int]
) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        monkeypatch.setattr(link, "MANNERS", 1000)
        monkeypatch.setattr(subscription, "MOST_GUESTS", 2)
        guest = await stranger(port())
        guest[1].write(Greeter(b"", 0, 0).greeting)
        assert REPLY.size == len(await guest[0].readexactly(REPLY.size))
        others = [await stranger(port()) for _ in range(50)]
        for other in others[:-1]:
            await gone(other)
        assert [False, False] == [reader.at_eof() for reader, _ in (guest, others[-1])]
    await gone(guest)
    await gone(others[-1])


def test_where_all_have_greeted_the_oldest_goes() -> None:
    @attrs.frozen
    class Somebody:
        answered: bool

    silent, first, second = Somebody(False), Somebody(True), Somebody(True)

    assert silent is next_out([first, silent, second])
    assert first is next_out([first, second])
