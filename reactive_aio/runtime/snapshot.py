"""How far a running flow has come, read off its drivers."""

from __future__ import annotations

from ..segments import BoundarySnapshot, OverflowSnapshot, RegionSnapshot, Snapshot
from .driver import RegionDriver
from .inputs import PushedInput

HERE = "the subscriber's loop"


def snapshot(last: RegionDriver) -> Snapshot:
    """Look at a flow by the driver of its last region, from any thread, without stopping it."""
    found: list[RegionSnapshot] = []
    driver: RegionDriver | None = last
    while driver is not None:
        fed = driver.fed
        reads = driver.before is None and driver.inner is None and driver.elsewhere is None
        if reads or driver.gauge is not None or not driver.run.empty:
            found.append(_region(driver))
        if driver.elsewhere is not None and fed is not None:
            tasks = None if driver.tasks is None else driver.tasks()
            found.append(RegionSnapshot(driver.elsewhere.place, delivered=fed.received, tasks=tasks))
        driver = driver.before or driver.inner
    return Snapshot(tuple(reversed(found)))


def _region(driver: RegionDriver) -> RegionSnapshot:
    scheduler, fed, gauge = driver.region.scheduler, driver.fed, driver.gauge
    return RegionSnapshot(
        HERE if scheduler is None else scheduler.name,
        driver.delivered,
        None if fed is None else _boundary(fed),
        None if gauge is None else OverflowSnapshot(gauge.size, gauge.buffered, gauge.dropped),
    )


def _boundary(fed: PushedInput) -> BoundarySnapshot:
    # In this order: while another thread goes on, each figure is read when it can only have grown beyond the one before.
    buffered = fed.buffered
    delivered = fed.received
    return BoundarySnapshot(fed.requested, delivered, buffered, fed.prefetch)
