"""Iterating over what several share: ``async for`` and `open`, in the task that awaits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define, field

from ..._core import budgets
from ..._plan import BoundarySnapshot, OverflowSnapshot, RegionSnapshot, Snapshot
from .reader import Distance
from .taking import Steps, several

if TYPE_CHECKING:
    from ..._plan.nodes import FlowLike

HERE = "the subscriber's loop"


@define(eq=False)
class Iterating:
    """The iterator of one subscription. It leaves when no reference to it is left."""

    _steps: Steps
    _lag: int

    @staticmethod
    def over(flow: FlowLike) -> Iterating:
        """Subscribe, on the running loop."""
        return Iterating(Steps.begin(flow), several(flow).lag)

    def __aiter__(self) -> Iterating:
        return self

    async def __anext__(self) -> Any:
        steps = self._steps
        reader = steps.reader
        if reader.items and budgets.clock() < steps.until:
            return reader.take_one()
        return await steps.next()

    def snapshot(self) -> Snapshot:
        """Look at how far the subscription has come, from any thread."""
        reader = self._steps.reader
        requested, delivered, buffered = reader.figures
        boundary = BoundarySnapshot(requested, delivered, buffered, reader.prefetch)
        kept = Distance(reader.broadcast.log, reader.cursor, self._lag).buffered
        return Snapshot((RegionSnapshot(HERE, delivered - buffered, boundary, OverflowSnapshot(self._lag, kept, 0)),))

    async def aclose(self) -> None:
        """Leave, and wait for all cleanup. A task that waits for an element then gets the end."""
        await self._steps.close()

    def __del__(self) -> None:
        # Left by `break`.
        self._steps.leave()


@define(eq=False)
class Opened:
    """A subscription for the length of a block. After it all cleanup is done (an async context manager)."""

    _flow: FlowLike
    _items: Iterating = field(init=False)

    async def __aenter__(self) -> Iterating:
        self._items = Iterating.over(self._flow)
        return self._items

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self._items.aclose()
