"""Which task is the current one: for code that goes on in the name of another task, in the middle of a step of the running one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextvars import Context
from operator import is_
from typing import Any, TypeVar

from .missing import NOTHING

AnyTask = asyncio.Task[Any]
R = TypeVar("R")
T = TypeVar("T")

if sys.version_info >= (3, 12):
    _swap: Callable[[asyncio.AbstractEventLoop, AnyTask | None], AnyTask | None]
    _swap = getattr(asyncio.tasks, "_swap_current_task")  # noqa: B009, as its type is not known

    def run_as(
        loop: asyncio.AbstractEventLoop, task: AnyTask | None, context: Context, call: Callable[..., R], *args: Any
    ) -> R:
        """Call in the name of another task, in its context."""
        before = _swap(loop, task)
        try:
            return context.run(call, *args)
        finally:
            _swap(loop, before)

    def next_as(loop: asyncio.AbstractEventLoop, task: AnyTask | None, context: Context, items: Iterator[T]) -> T | Any:
        """Do so for the next element, or NOTHING. Passing on unknown arguments would take as long as all the rest."""
        before = _swap(loop, task)
        try:
            return context.run(next, items, NOTHING)
        finally:
            _swap(loop, before)

else:
    _tasks: dict[asyncio.AbstractEventLoop, AnyTask | None] = getattr(asyncio.tasks, "_current_tasks")  # noqa: B009

    def run_as(
        loop: asyncio.AbstractEventLoop, task: AnyTask | None, context: Context, call: Callable[..., R], *args: Any
    ) -> R:
        """Call in the name of another task, in its context. Inlined: two more calls would take as long again."""
        before = _tasks.get(loop)
        _tasks[loop] = task
        try:
            return context.run(call, *args)
        finally:
            if before is None:
                del _tasks[loop]
            else:
                _tasks[loop] = before

    def next_as(loop: asyncio.AbstractEventLoop, task: AnyTask | None, context: Context, items: Iterator[T]) -> T | Any:
        """Do so for the next element, or NOTHING. Passing on unknown arguments would take as long as all the rest."""
        before = _tasks.get(loop)
        _tasks[loop] = task
        try:
            return context.run(next, items, NOTHING)
        finally:
            if before is None:
                del _tasks[loop]
            else:
                _tasks[loop] = before


def same_context(one: Context, other: Context) -> bool:
    """Return whether two contexts hold the same objects. They are not compared by `==`, which may be any code."""
    if len(one) != len(other):
        return False
    return not one or (all(map(is_, one.values(), other.values())) and all(map(is_, one, other)))
