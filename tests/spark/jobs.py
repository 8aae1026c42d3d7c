"""The jobs that are running on a cluster, and what is printed when they are stopped."""

from __future__ import annotations

import re
from typing import Any, Final

HUNG_UP: Final = re.compile(
    r"-{40}\nException occurred during processing of request(?:(?!-{40}\n).)*-{40}\n", re.DOTALL
)


def active_jobs(context: Any) -> list[int]:
    """Give the jobs that have begun and not ended; Spark's own list of them lags behind, by its queue of events."""
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return list(context.statusTracker().getActiveJobsIds())


def noise(captured: str) -> str:
    """Give what was printed, but for what PySpark's server of accumulators says now and then when the JVM hangs up on it."""
    return HUNG_UP.sub(lambda block: "" if "accumulators.py" in block[0] else block[0], captured)
