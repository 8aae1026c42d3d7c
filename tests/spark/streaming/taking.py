"""The reader of the tests of micro-batches, for each way by which they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

if TYPE_CHECKING:
    from reactive_aio import Flow
    from reactive_aio.spark.streaming import Consumable

NOW: Final = {"availableNow": True}


@attrs.frozen
class Reading:
    """A row of `files`."""

    id: int
    name: str


def reading(n: int) -> Reading:
    return Reading(n, f"r{n}")


async def taken(flow: Flow[Any]) -> list[tuple[int, list[Any]]]:
    """Consume all."""
    found: list[tuple[int, list[Any]]] = []

    async def take(batch: Consumable[Any]) -> None:
        async with batch as rows:
            found.append((batch.id, await rows.to_list()))

    await flow.for_each(take)
    return found
