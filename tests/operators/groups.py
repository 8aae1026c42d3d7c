"""The key, the readers and the flow by hand that the tests of groups share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from reactive_aio import (
    Flow,
    GroupedFlow,
    hooks,
)
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def parity(n: int) -> str:
    """Return the key of most of these tests."""
    return "odd" if n % 2 else "even"


async def listed(groups: Flow[GroupedFlow[Any, Any]]) -> dict[Any, list[Any]]:
    """Read all groups at a time."""
    async with asyncio.TaskGroup() as tasks:
        lists = [(group.key, tasks.create_task(group.to_list())) async for group in groups]
    return {key: task.result() for key, task in lists}


async def in_turn(groups: Flow[GroupedFlow[Any, Any]]) -> None:
    """Read one group after another."""
    async for group in groups:
        await group.to_list()


class ByHand:
    """Groups of a flow that is driven by hand."""

    def __init__(self, demand: int = 9, *, key: Callable[[int], Any] = parity, **options: Any) -> None:
        self.source, self.subscriber = Sessions(), Recorder(demand)
        self.discarded: list[Any] = []
        self.dropped: list[BaseException] = []
        with hooks.using(on_discard=self.discarded.append, on_error_dropped=self.dropped.append):
            Flow.from_publisher(self.source).group_by(key, **options).subscribe(self.subscriber)

    async def give(self, *items: int) -> None:
        self.source.last.next(*items)
        await idle()

    async def read(self, place: int, demand: int = 9) -> Recorder:
        reader = Recorder(demand)
        with hooks.using(on_discard=self.discarded.append, on_error_dropped=self.dropped.append):
            self.subscriber.items[place].subscribe(reader)
        await idle()
        return reader
