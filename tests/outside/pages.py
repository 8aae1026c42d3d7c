"""A source of somebody else's that has to wait for its elements; docs/writing-a-source.md begins with it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from attrs import frozen

from reactive_aio import Flow
from reactive_aio.extend import Awaited, flow_of


@frozen
class Paged(Awaited[Any]):
    """The elements that a service gives page by page, until a page is empty."""

    fetch: Callable[[int], Awaitable[Sequence[Any]]]

    async def iterator(self, where: object) -> AsyncIterator[Any]:
        number = 0
        while page := await self.fetch(number):
            for item in page:
                yield item
            number += 1


def paged(fetch: Callable[[int], Awaitable[Sequence[Any]]]) -> Flow[Any]:
    return flow_of(Paged(fetch))
