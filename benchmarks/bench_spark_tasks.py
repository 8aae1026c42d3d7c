"""A task in Python that does next to nothing, in a session with our daemon, and with PySpark's."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import Final

from .harness import Bar, Contestant, Figures, Row

WORKER: Final = "CPU ms of the worker"
DAEMONS: Final = {"reactive_aio.spark.daemon": "reactive_aio.spark.daemon", "PySpark's daemon": "pyspark.daemon"}


def rows(n: int) -> list[Row]:
    """One row, each daemon in a session of its own: its workers are those of the session."""
    tasks = 100 if n >= 1_000_000 else 60
    return [
        Row(
            "a task in Python that does next to nothing",
            tasks,
            tuple(Contestant(name, partial(_figures, module, tasks)) for name, module in DAEMONS.items()),
            (Bar(at_most=3, metric=WORKER),),
            rounds=3,
            metrics=(WORKER,),
            limit="PySpark's daemon",
            expect=lambda _: True,
        )
    ]


def _figures(daemon: str, tasks: int) -> Figures:
    command = [sys.executable, "-m", "benchmarks.spark_tasks", daemon, str(tasks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{daemon}: {done.stderr[-2000:]}")
    found: float = json.loads(done.stdout.splitlines()[-1])["milliseconds"]
    return Figures({WORKER: found}, result=found > 0)
