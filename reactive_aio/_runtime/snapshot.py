"""The progress of a running flow, read from its drivers."""

from __future__ import annotations

from typing import Final

from .._arbiter import Gathering, Inner
from .._plan import BoundarySnapshot, InnerSnapshot, OverflowSnapshot, RegionSnapshot, Snapshot
from ..spec import add_demand
from .driver import RegionDriver
from .given import Given, PassedOn
from .inputs import PushedInput
from .iterator_subscription import IteratorSubscription
from .passage import Passage
from .staged import StagedGiven, StagedPassage
from .tree import Read, View

HERE: Final = "the subscriber's loop"
NOTHING: Final = View(None)
"""The figures of a region that no pushed source feeds."""


def snapshot(last: RegionDriver) -> Snapshot:
    """Look at a flow by the driver of its last region, from any thread, without stopping it."""
    return Snapshot(_regions(last))


def _regions(last: RegionDriver | Passage) -> tuple[RegionSnapshot, ...]:
    found: list[RegionSnapshot] = []
    now: Read | None = last
    while now is not None:
        while isinstance(now, Passage):
            if isinstance(now, StagedPassage):
                found.append(RegionSnapshot(HERE, now.delivered))
            now = now.view.inner
        if isinstance(now, (Given, PassedOn, IteratorSubscription)):
            found.append(RegionSnapshot(HERE, now.delivered))
        now = _add(found, now) if isinstance(now, RegionDriver) else None
    return tuple(reversed(found))


def _add(found: list[RegionSnapshot], driver: RegionDriver) -> Read | None:
    """Add the figures of a region, unless a combinator stands for it. Return what feeds it."""
    fed, view, before = driver.fed, driver.view or NOTHING, driver.place.before
    # A combinator stands for this one, unless it reads several flows at a time.
    now = view.inner if _several(driver) is None else None
    reads = before is None and now is None and view.elsewhere is None
    if reads or view.gauge is not None or not driver.run.empty:
        found.append(_region(driver))
    if view.elsewhere is not None and fed is not None:
        tasks = None if view.tasks is None else view.tasks()
        found.append(RegionSnapshot(view.elsewhere.place, delivered=fed.received, tasks=tasks))
    return now if isinstance(now, (Given, PassedOn, IteratorSubscription)) else before or now


def _region(driver: RegionDriver) -> RegionSnapshot:
    scheduler, fed, several = driver.region.scheduler, driver.fed, _several(driver)
    gauge = None if driver.view is None else driver.view.gauge
    return RegionSnapshot(
        HERE if scheduler is None else scheduler.name,
        driver.delivered,
        None if fed is None else _boundary(fed),
        None if gauge is None else OverflowSnapshot(gauge.size, gauge.buffered, gauge.dropped),
        inner=() if several is None else tuple(map(_inner, tuple(several.inners))),
    )


def _several(driver: RegionDriver) -> Gathering | None:
    """Return the gathering that reads several flows for the region, if there is one."""
    reader = None if driver.fed is None else driver.fed.upstream
    return reader if isinstance(reader, Gathering) and reader.several else None


def _boundary(fed: PushedInput) -> BoundarySnapshot:
    # In this order: while another thread goes on, each figure is read when it can only have grown beyond the one before.
    buffered = fed.buffered
    delivered = fed.received
    return BoundarySnapshot(fed.requested, delivered, buffered, fed.prefetch)


def _inner(inner: Inner) -> InnerSnapshot:
    driver = inner.subscription
    buffered = len(inner.kept)
    delivered = inner.received
    if isinstance(driver, IteratorSubscription):
        uncounted = driver.uncounted
        requested = add_demand(delivered, driver.demand)
        delivered += uncounted
        regions = (RegionSnapshot(HERE, driver.delivered + uncounted),)
        return InnerSnapshot(regions, BoundarySnapshot(requested, delivered, buffered, inner.prefetch))
    if isinstance(driver, StagedGiven):
        requested = add_demand(delivered, driver.demand)
        regions = (RegionSnapshot(HERE, driver.delivered),)
        return InnerSnapshot(regions, BoundarySnapshot(requested, delivered, buffered, inner.prefetch))
    if not isinstance(driver, (RegionDriver, Passage)):
        return InnerSnapshot((), BoundarySnapshot(delivered, delivered, buffered, inner.prefetch))
    requested = add_demand(delivered, driver.demand)
    return InnerSnapshot(_regions(driver), BoundarySnapshot(requested, delivered, buffered, inner.prefetch))
