"""Run tasks that do next to nothing, and tell what one costs a Python worker: python -m benchmarks.spark_tasks DAEMON TASKS."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from statistics import median
from typing import Any, Final

from reactive_aio.spark.session import local_session

JOBS: Final = 4
"""Jobs that are run. The first one starts the workers, and does not count."""


def cpu_of_this_worker(_: int) -> tuple[int, float]:
    """Return the process, and the seconds of CPU that it has had."""
    return os.getpid(), sum(os.times()[:2])


def milliseconds_a_task(context: Any, tasks: int) -> float:
    """Run a job, and give the CPU of its workers from each one's first task to its last, for a task."""
    seen: defaultdict[int, list[float]] = defaultdict(list)
    for process, seconds in context.parallelize(range(tasks), tasks).map(cpu_of_this_worker).collect():
        seen[process].append(seconds)
    spent = sum(max(times) - min(times) for times in seen.values())
    return 1_000 * spent / (tasks - len(seen))


def main(daemon: str, tasks: int) -> None:
    """Measure."""
    session = local_session("tasks", quick_start=False, spark__python__daemon__module=daemon)
    context = session.sparkContext
    context.setLogLevel("OFF")
    jobs = [milliseconds_a_task(context, tasks) for _ in range(JOBS)]
    print(json.dumps({"milliseconds": median(jobs[1:])}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
