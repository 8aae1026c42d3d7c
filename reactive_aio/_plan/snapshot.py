"""The progress of a running flow: what has crossed each boundary, and what waits there.

In the terms of the specification, at a boundary: P elements have been requested, N have been processed, and B wait
in the buffer. Then at most P - B - N may still arrive, until more is requested.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class BoundarySnapshot:
    """The input of a region from upstream, at one moment."""

    requested: int
    """P: elements that the region has requested from upstream, in all."""
    delivered: int
    """Elements that have come, in all."""
    buffered: int
    """B: elements that have come and that the region has not begun."""
    prefetch: int | None
    """The most elements that may be requested ahead and not begun. None if demand passes one for one."""

    @property
    def processed(self) -> int:
        """N: elements that the region has begun."""
        return self.delivered - self.buffered

    @property
    def outstanding(self) -> int:
        """P - B - N: the most elements that may come until more is requested."""
        return self.requested - self.delivered


@frozen
class OverflowSnapshot:
    """The elements that a source without demand, or an ``on_backpressure`` operator, keeps and drops, at one moment."""

    size: int
    """The most elements that may wait for demand."""
    buffered: int
    """The elements that wait."""
    dropped: int
    """Elements for which there was neither demand nor room, in all."""


@frozen
class TasksSnapshot:
    """The tasks of a region that a cluster runs, one for each part of the data, at one moment."""

    total: int
    """All of them, as far as it is known; 0 before it is."""
    running: int
    """The tasks that have begun and not ended."""
    done: int
    """The tasks that have ended."""
    preparing: bool = False
    """Whether these are tasks before those of the region, which compute or sort the data."""


@frozen
class RegionSnapshot:
    """One region at one moment."""

    place: str
    """The place where the region runs."""
    delivered: int
    """Elements that have left the region."""
    boundary: BoundarySnapshot | None = None
    """Elements that have come in from upstream; None for a region that reads its source itself."""
    overflow: OverflowSnapshot | None = None
    """Elements kept and dropped in front of the region, where its source can't be slowed."""
    tasks: TasksSnapshot | None = None
    """The tasks that run the region, where it is a cluster's."""
    inner: tuple[InnerSnapshot, ...] = ()
    """The flows that a combinator reads here, or keeps elements of, in the order of their start, if it reads several."""


@frozen
class InnerSnapshot:
    """A flow that a combinator reads beside others, at one moment."""

    regions: tuple[RegionSnapshot, ...]
    """The regions of the flow, from its source to its end; none when it has ended."""
    boundary: BoundarySnapshot
    """Elements that the combinator has requested from the flow, has got, and keeps until there is demand."""


@frozen
class Snapshot:
    """The regions that elements pass through at one moment, from the source to the end.

    A combinator that reads one flow after another, such as ``retry``, stands for the flow that it reads now. One that
    has read several at a time, such as ``merge``, is the region that the row begins with, and has them as its ``inner``.
    Regions that only pass on what another has made are left out. Taken from another thread than that of a region, its
    figures may be an element or a chunk apart.
    """

    regions: tuple[RegionSnapshot, ...]
    """The regions, from the source to the end."""

    @property
    def boundaries(self) -> tuple[BoundarySnapshot, ...]:
        """The inputs of the regions that do not read their source themselves, from the source to the end."""
        return tuple(region.boundary for region in self.regions if region.boundary is not None)

    @property
    def dropped(self) -> int:
        """The elements that have been dropped without demand and room, in total."""
        return sum(region.overflow.dropped for region in self.regions if region.overflow is not None)


@frozen
class SubscriberSnapshot:
    """One of several subscribers of a shared flow or a hub, at one moment."""

    behind: int
    """Elements that have been made and that it has not taken."""
    demand: int
    """Elements that it has requested and not got; ``UNBOUNDED`` at most."""


@frozen
class SharedSnapshot:
    """The elements that a shared flow or a hub has made and keeps, at one moment."""

    made: int
    """Elements that have come, in all."""
    kept: int
    """Elements that are kept, for subscribers and for later ones."""
    subscribers: tuple[SubscriberSnapshot, ...]
    """The subscribers, in no fixed order. The slowest is the one that is furthest behind."""
