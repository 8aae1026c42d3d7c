"""What an import of the library takes beyond `import asyncio`, in a Python of its own."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from .harness import Bar, Contestant, Figures, Row

SECONDS, MODULES = "CPU s beyond asyncio", "modules"
PEERS = ("streamable", "aiostream", "reactivex", "anyio")

PROGRAM = """\
import sys, time, asyncio
began, modules = time.process_time(), len(sys.modules)
import {name}
print(time.process_time() - began, len(sys.modules) - modules)
"""


def rows(_: int) -> list[Row]:
    """An element is an import."""
    ours = Contestant("reactive_aio", partial(imported, "reactive_aio"))
    peers = tuple(Contestant(name, partial(imported, name), needs=name) for name in PEERS)
    bars = (Bar(at_most=0.12),)
    return [Row("import beyond asyncio", 1, (ours, *peers), bars, metrics=(SECONDS, MODULES))]


def imported(name: str) -> Figures:
    """Import a module, and have it measured there."""
    command = [sys.executable, "-c", PROGRAM.format(name=name)]
    seconds, modules = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return Figures({SECONDS: float(seconds), MODULES: float(modules)})
