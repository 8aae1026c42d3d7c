"""Sparing Python workers.

A worker whose input has not been read to its end is not used again. A new one takes most of a second to start, for all
that it imports. So where a stage needs no more, the rest of the input is read, if that takes next to no time.

By default the garbage collector runs after every 700 new objects, or 2,000 from Python 3.13 on. A task makes a tuple or
two for each element, and keeps those of a batch. The collector looks at each of them up to three times, which shows in
the cost of a row. So it runs less often while a task runs.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from ..._core import budgets
from ..._core.guard import FAILURES

NEXT_TO_NO_TIME: Final = 0.02
"""Seconds; less than the job leaves its tasks before it kills them."""
YOUNG: Final = 40_000
"""New objects after which the collector runs: more than those of a batch, which has 10,000 elements."""


def read_on(items: Iterator[Any]) -> None:
    """Read the rest of a task's input, if it is little. Ignore failures in it."""
    deadline = budgets.clock() + NEXT_TO_NO_TIME
    with suppress(FAILURES):
        for _ in items:
            if budgets.clock() >= deadline:
                return


@contextmanager
def rare_collections() -> Generator[None]:
    """Have the garbage collector run less often. It stays off where it is off."""
    often, *others = gc.get_threshold()
    if 0 < often < YOUNG:
        gc.set_threshold(YOUNG, *others)
    try:
        yield
    finally:
        gc.set_threshold(often, *others)  # the worker may be used again
