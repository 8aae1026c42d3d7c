"""The jobs that are running on a cluster."""

from __future__ import annotations

from typing import Any


def active_jobs(context: Any) -> list[int]:
    """Give the jobs that have begun and not ended; Spark's own list of them lags behind, by its queue of events."""
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return list(context.statusTracker().getActiveJobsIds())
