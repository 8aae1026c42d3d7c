"""The lines that a process with a session of Spark writes to stderr though nothing is wrong."""

from __future__ import annotations

import re
from typing import Final

OF_THE_DAEMON: Final = re.compile(
    r"Traceback \(most recent call last\):\n"
    r'(?:  File "[^"]*/pyspark/daemon\.py", .*\n(?:    .*\n)*)+'
    r"BrokenPipeError: .*\n"
)
"""Spark hangs up on the worker of a task that it stops, and then kills it; in between, PySpark may find the pipe broken."""


def noise(stderr: str) -> list[str]:
    """Return the lines of errors, but for what nobody but PySpark can keep it from saying."""
    lines = OF_THE_DAEMON.sub("", stderr).splitlines()
    return [line for line in lines if "ERROR" in line or "Exception" in line or "Traceback" in line]
