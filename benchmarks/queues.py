"""The queues that people put between two tasks, all with the same two coroutine methods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from attrs import frozen

from .workload import peer


class Queue(Protocol):
    """The queue between two tasks; None is the end."""

    def put(self, item: Any, /) -> Awaitable[Any]:
        """Wait for room."""
        ...

    def get(self) -> Awaitable[Any]:
        """Wait for an item."""
        ...


Maker = Callable[[int], Queue]


@frozen
class Methods:
    """Two methods that go by other names, or the ends of two things."""

    put: Callable[[Any], Awaitable[Any]]
    get: Callable[[], Awaitable[Any]]


class AiochanQueue:
    """A channel, which is closed instead of taking a None."""

    def __init__(self, size: int) -> None:
        self._channel = peer("aiochan").Chan(size)
        self.get = self._channel.get

    async def put(self, item: Any, /) -> None:
        if item is None:
            self._channel.close()
        else:
            await self._channel.put(item)


def culsans_queue(size: int) -> Queue:
    queue: Queue = peer("culsans").Queue(size).async_q
    return queue


def aiologic_queue(size: int) -> Queue:
    queue = peer("aiologic").Queue(size)
    return Methods(queue.async_put, queue.async_get)


def janus_queue(size: int) -> Queue:
    queue: Queue = peer("janus").Queue(size).async_q
    return queue


async def produce(n: int, queue: Queue) -> None:
    """Put the numbers below ``n``, and the end."""
    for item in range(n):
        await queue.put(item)
    await queue.put(None)


async def count(queue: Queue) -> int:
    """Count what comes."""
    number = 0
    while await queue.get() is not None:
        number += 1
    return number


async def through(n: int, queue: Queue) -> int:
    """Count what another task of the same loop has put."""
    task = asyncio.create_task(produce(n, queue))
    number = await count(queue)
    await task
    return number


async def relay(fn: Callable[[int], int], queue: Queue, to: Queue) -> None:
    """Put on what comes, after a function."""
    while (item := await queue.get()) is not None:
        await to.put(fn(item))
    await to.put(None)
