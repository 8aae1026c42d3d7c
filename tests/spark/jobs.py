"""The jobs that are running on a cluster."""

from __future__ import annotations

from typing import Any


def active_jobs(context: Any) -> int:
    """Count the jobs that have begun and not ended.

    It asks Spark's scheduler, which forgets a job before it reports the end to the waiting caller. The status that Spark
    shows to users is later: it comes by a queue of events, and the end of a cancelled job enters that queue only then.
    """
    count: int = context._jsc.sc().dagScheduler().activeJobs().size()
    return count


def jobs_begun(context: Any) -> int:
    """Count the jobs that have begun since there is this cluster."""
    count: int = context._jsc.sc().dagScheduler().numTotalJobs()
    return count
