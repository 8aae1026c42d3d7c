"""Where the tasks of an event loop wait that has nothing to do any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

INSIDE: Final = (str(Path(asyncio.__file__).parent), str(Path(__file__).parents[1]))
"""The folders of asyncio and of this package. A line of the program says more than theirs."""


def waiting(loop: asyncio.AbstractEventLoop) -> str:
    """Return where the tasks of a loop are."""
    lines: list[str] = []
    for task in asyncio.all_tasks(loop):
        name, where = getattr(task.get_coro(), "__qualname__", str(task.get_coro())), "its end"
        for frame in _frames(task.get_coro()):
            if where == "its end" or not frame.f_code.co_filename.startswith(INSIDE):
                name, where = frame.f_code.co_qualname, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        lines.append(f"{task.get_name()} waits in {name} at {where}")
    return "; ".join(sorted(lines)) if lines else "no task is left"


def _frames(awaited: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of what it awaits, the innermost last."""
    while awaited is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(awaited, f"{kind}_frame")), None)
        if kind is None:
            return
        frame = getattr(awaited, f"{kind}_frame")
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
