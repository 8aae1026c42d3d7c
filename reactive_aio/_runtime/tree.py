"""The tree of the regions of one subscription: what feeds what, and which flows a combinator reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from .._plan import Elsewhere, Gauge, TasksSnapshot
    from .driver import RegionDriver
    from .given import Given, PassedOn
    from .handover import Handover
    from .iterator_subscription import IteratorSubscription
    from .passage import Passage

Read: TypeAlias = "RegionDriver | Passage | Given | PassedOn | IteratorSubscription"
"""The readable subscriptions of a combinator."""
DEEPEST: Final = 16
"""Levels of nested combinators that a signal passes on one stack."""


class Place:
    """The place of a region in the tree; confined to its event loop."""

    __slots__ = ("before", "depth", "handover", "hops", "inners", "is_transparent", "leaves", "outer")

    def __init__(self) -> None:
        self.before: RegionDriver | None = None
        """The region that feeds this one."""
        self.handover: Handover | None = None
        """Takes the elements that are held in front of this region to it."""
        self.inners: dict[RegionDriver, None] = {}  # an empty one is smaller than a set
        """The last regions of the flows that a combinator here reads and that have not ended."""
        self.outer: RegionDriver | Passage | None = None
        """The region of the combinator that reads the flow of this one."""
        self.is_transparent = False
        """Whether it reads one flow, whose end is the region's own."""
        self.depth = 0
        self.hops = False
        """Whether a signal waits for a turn here, so that the stack stays flat."""
        self.leaves = False
        """Whether elements leave for another event loop, after this region or after one that reads it."""

    @classmethod
    def within(cls, outer: RegionDriver | Passage) -> Place:
        """Return a place of what has no region of its own: the regions that it reads count as read by the one around it."""
        place = cls()
        place.outer = outer
        place.depth = outer.place.depth + 1
        place.leaves = outer.place.leaves
        place.inners = outer.place.inners
        return place

    def nest(self, outer: RegionDriver | Passage) -> None:
        """Take a place inside the region that reads this one. At some depths a signal waits for a turn.

        Else a flow that is defined by itself, or by a long row of combinators, would end in a RecursionError.
        """
        self.depth = outer.place.depth + 1
        self.hops = self.depth % DEEPEST == 0

    def read_by(self, driver: RegionDriver, outer: RegionDriver | Passage) -> None:
        """Add ``driver``, whose place this is, to the regions that a combinator reads, until it has ended."""
        self.outer = outer
        outer.place.inners[driver] = None

    def leave(self, driver: RegionDriver) -> None:
        """Remove ``driver``, which has ended, from the regions that are read."""
        outer, self.outer = self.outer, None
        if outer is not None:
            outer.place.inners.pop(driver, None)

    def dependents(self, driver: RegionDriver) -> list[RegionDriver]:
        """Return the regions of the flows that a combinator in ``driver`` reads, as far as they are on the same loop."""
        found: list[RegionDriver] = []
        todo = [*self.inners]
        while todo:
            each = todo.pop()
            found += [each] if each.loop is driver.loop else []
            todo += each.place.inners
            if each.place.before is not None:
                todo.append(each.place.before)
        return found


def after_end(driver: RegionDriver | Passage, call: Callable[[], None]) -> None:
    """Call something when the downstream of a region has got its end. The latest one is called first.

    A region whose time is up may still have elements to work on, which the end is behind. So may one that reads this one.
    """
    while not driver.closed and (outer := driver.place.outer) is not None and outer.place.is_transparent:
        driver = outer
    if driver.closed:
        call()
    else:
        driver.behind = (call, *driver.behind)


class View:
    """The parts, for snapshots, of a region that a pushed source feeds, beside its figures."""

    __slots__ = ("elsewhere", "gauge", "inner", "tasks")

    def __init__(self, elsewhere: Elsewhere | None) -> None:
        self.elsewhere = elsewhere
        """The place where the elements are made, if that is not a region of an event loop."""
        self.inner: Read | None = None
        """The last region of the flow that a combinator began with most lately."""
        self.gauge: Gauge | None = None
        """Elements that a source that can't be slowed keeps and drops."""
        self.tasks: Callable[[], TasksSnapshot] | None = None
        """The progress of the tasks that make the elements elsewhere."""
