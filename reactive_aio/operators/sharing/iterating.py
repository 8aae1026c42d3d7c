"""Iterating over what several share: ``async for`` and `open`, in the task that awaits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from ..._core.entered import Entered
from ..._plan import BoundarySnapshot, OverflowSnapshot, RegionSnapshot, Snapshot
from .reader import Distance
from .taking import Steps

if TYPE_CHECKING:
    from ..._plan.nodes import FlowLike

HERE = "the subscriber's loop"


@define(eq=False, repr=False)
class Iterating(Steps):
    """The iterator of one subscription. It leaves when no reference to it is left."""

    def __aiter__(self) -> Iterating:
        return self

    def snapshot(self) -> Snapshot:
        """Look at how far the subscription has come, from any thread."""
        reader = self.reader
        lag = reader.broadcast.lag
        requested, delivered, buffered = reader.figures
        boundary = BoundarySnapshot(requested, delivered, buffered, reader.prefetch)
        kept = Distance(reader.broadcast.log, reader.cursor, lag).buffered
        return Snapshot((RegionSnapshot(HERE, delivered - buffered, boundary, OverflowSnapshot(lag, kept, 0)),))

    async def aclose(self) -> None:
        """Leave, and wait for all cleanup. A task that waits for an element then gets the end."""
        await self.close()

    def __del__(self) -> None:
        # Left by `break`.
        self.leave()


@define(eq=False)
class Opened(Entered):
    """A subscription for the length of a block. After it all cleanup is done (an async context manager)."""

    _flow: FlowLike
    _items: Iterating = field(init=False)

    async def __aenter__(self) -> Iterating:
        self._items = Iterating.begin(self._flow)
        return self._items

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self._items.aclose()
