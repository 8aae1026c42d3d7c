"""The spare owner: one task for short iterators that are read one after another.

An owner needs a task, since the code of an iterator may ask for the current one, and wait in it. But most short iterators
never wait. They run in the name of a task that has not taken its first step::

    a task is made ──► lent to an iterator ──► it ends without a wait ──► lent to the next one
                                │                                             │
                                └── it suspends: the task is its own from now on
                                                                              └── the first step comes: the task ends
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextvars import Context
from types import coroutine

from .._core.budgets import Budget
from .._core.identity import same_context
from .._core.tasks import begin_task
from ..schedulers.base import Released
from .awaited import AwaitedInput
from .owner import Owner, Reader


class SpareOwner(Owner):
    """An owner that lends its task to one iterator after another, until one of them suspends or the task takes its first step.

    Each has a context of its own: if one has changed a variable, the task is not lent again.
    """

    __slots__ = ("_fresh", "_hold", "_reader")

    def __init__(self, source: AwaitedInput, reader: Reader, budget: Budget, context: Context, hold: Released) -> None:
        super().__init__(source, budget, context.copy())
        self._reader: Reader | None = reader
        self._hold: Released | None = hold
        """Keeps the subscription from ending before the task has."""
        self._fresh = source.loop.get_task_factory() is None
        """Whether the task has not taken its first step. A task factory may take that step at once, so with one an iterator waits for it."""
        steps = self._steps(None if self._fresh else reader)
        if self._fresh:
            steps.send(None)  # to where it waits for its first step, and can be cancelled
            self.task = source.loop.create_task(steps, context=self.context)
        else:
            self.task = begin_task(steps, self.context, source.loop)
        budget.begun.add(self.task)
        self.task.add_done_callback(self._over, context=context)

    @property
    def waits(self) -> bool:
        """Whether the owner waits to be called, so that its reader may work in its name."""
        return self._fresh or super().waits

    def call(self, reader: Reader) -> None:
        """Let the owner work for its reader, in its own step."""
        if self._fresh:
            self._budget.lend()  # its first step is due
        else:
            super().call(reader)

    def close(self, reader: Reader) -> None:
        """Close the iterator, because the reader reads no more. Call this outside of the owner's steps."""
        if not self._fresh:
            super().close(reader)

    def lend(self, source: AwaitedInput, reader: Reader, context: Context) -> bool:
        """Lend the task to one more iterator. Return False if it can't be lent."""
        task = self.task
        if not self._fresh or self._reader is not None or task is None:
            return False
        # Before Python 3.13 a cancel that has been taken back still comes at the next wait.
        if task.cancelling() or getattr(task, "_must_cancel", False):
            return False
        if not same_context(self.context, context):
            return False
        self._source, self._reader = source, reader
        return True

    def take_back(self, reader: Reader) -> bool:
        """Take the task back from an iterator that has ended without a wait. Return False if it has not."""
        if not self._fresh or self._source.reading is not None or not reader.closed:
            return False
        if self._source.cleanup is not None or self._source.error is not None:
            self.report(reader)
        self._reader = None
        return True

    async def _lent(self) -> Reader | None:
        """Return the reader whose iterator has suspended, or has not ended."""
        try:
            await _first_step()
        except asyncio.CancelledError as cancelled:
            if self._reader is not None:
                self._interrupt(self._reader, cancelled)
        finally:
            self._fresh = False
        return self._reader

    def _over(self, task: asyncio.Task[None]) -> None:
        reader, self._reader = self._reader, None
        if reader is None:
            self._budget.begun.discard(task)
        else:
            reader.left(task)
        hold, self._hold = self._hold, None  # it refers to the region, which refers to its latest owner
        if hold is not None:
            hold()


@coroutine
def _first_step() -> Generator[None, None, None]:
    yield
