"""The jobs that are running on a cluster."""

from __future__ import annotations

from typing import Any


def active_jobs(context: Any) -> int:
    """Count the jobs that have begun and not ended.

    By Spark's scheduler itself, which forgets a job before it tells whoever waits for it. What Spark shows to users lags
    behind by its queue of events, into which the end of a cancelled job is put only after that.
    """
    count: int = context._jsc.sc().dagScheduler().activeJobs().size()
    return count


def jobs_begun(context: Any) -> int:
    """Count the jobs that have begun since there is this cluster."""
    count: int = context._jsc.sc().dagScheduler().numTotalJobs()
    return count
