"""Direct runs of a part of a flow: the task that awaits an end of a window or a group needs no driver.

A flow of many small groups has an end for each of them. The one region of such an end takes the lists that its source keeps. It
does so in the step of the task that awaits the end, while that has time left, and else in turns of the event loop. Order, demand and
failures are those of a driver.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextvars import Context, copy_context
from operator import length_hint
from typing import Any

from .._core import budgets
from .._core.budgets import Budget, Taker
from .._core.guard import FAILURES, Failed, as_failure, as_of_a_generator
from .._core.missing import MISSING
from .._core.notes import add_note
from .._fusion import READING, Call, Placed, RegionRun
from .._plan import Buffered
from ..hooks import discard, drop_error
from ..spec import UNBOUNDED
from .direct import Direct
from .iterating import Kept, discard_kept, raise_held


async def run_buffered(feed: Placed[Any], stages: Sequence[Placed[Any]], default: Any, *, kept: Kept | None) -> Any:
    """Run stages over a source that is `Buffered`, and return their element, or ``default``.

    If nobody gets it, the elements that it has ``kept`` go to the hook.
    """
    loop = asyncio.get_running_loop()
    budget = Budget.of(loop)
    run = _begun(feed, stages, budget)
    if isinstance(run, Failed):
        raise run.take()
    ready = run.context.run(run.open)
    try:
        if ready and (budgets.clock() < budget.lent or budget.turn_now()):
            run.context.run(run.work, budget.lent)
        elif ready:
            run.wake()
        if not run.closed:
            run.done = loop.create_future()
            await run.done
    except (asyncio.CancelledError, GeneratorExit):  # somebody closes this coroutine
        run.abandon(kept)
        raise
    if run.as_it_came() is not None:
        run.raises()
        discard_kept(run.value, kept)
        raise_held(run)
    return default if run.value is MISSING else run.value


def _begun(feed: Placed[Any], stages: Sequence[Placed[Any]], budget: Budget) -> DirectBuffered | Failed:
    """Begin with the stages, which may fail in that."""
    try:
        return DirectBuffered(RegionRun(stages, feed, counted=True), feed.operator, budget)
    except FAILURES as error:
        add_note(error, f"in {feed}")
        return Failed(as_failure(error))


class DirectBuffered(Direct, Taker):
    """One run of one region over the lists of a source that is `Buffered`. It is the reader of the source."""

    __slots__ = ("_at_work", "_budget", "_due", "_items", "_shared", "_source", "closed", "context", "done")

    def __init__(self, run: RegionRun, source: Buffered[Any], budget: Budget) -> None:
        super().__init__(run)
        self.context: Context = copy_context()
        self._budget = budget
        self._source = source
        self._holds = False  # until it is the reader: the source may have another one, which reads on
        self._items: Iterator[Any] | None = None
        """The latest list, while there is more of it."""
        self._due = False
        """Whether a turn is to come."""
        self._at_work = False
        """Whether a turn is running. Lists that arrive in it are worked on in it."""
        self._shared = False
        """Whether it has failed with the failure of the source, which other readers may have too."""
        self.closed = False
        """Whether the region has ended."""
        self.done: asyncio.Future[None] | None = None
        """Wakes the task that awaits the end, when all is over."""

    def open(self) -> bool:
        """Begin to read, unless a stage says already that it needs no elements. Return whether there is something to do."""
        run = self._run
        try:
            if run.may_stop and run.done:
                return True
            self._source.read_by(self)
            self._holds = True
            return run.phase is not READING or self._request()
        except FAILURES as error:
            self._fail(error, locate=True)
            return False

    def abandon(self, kept: Kept | None) -> None:
        """End because the task was cancelled, or its coroutine closed. The hooks get the elements and errors that reach nobody."""
        if not self.closed:
            for error in self.context.run(self.close):
                drop_error(error)
            return
        if (failure := self.as_it_came()) is not None:
            if self._shared:
                self._source.missed(failure, drop_error)
            else:
                drop_error(failure)
        discard_kept(self.value, kept)

    def raises(self) -> None:
        """Note that the task raises the failure."""
        if self._shared:
            self._source.got()

    # -- turns

    def on_ready(self) -> None:
        """Take what has come, in the turn of the source."""
        if self._at_work or self._due or self.closed:
            return
        if sys.exception() is None:
            self.context.run(self.work, self._budget.moment())
        else:  # Python would make it the context of whatever fails here
            self.wake()

    def wake(self) -> None:
        """Have a turn come."""
        if not self._due and not self.closed:
            self._due = True
            self._budget.add(self)

    def come(self) -> None:
        """Take a turn. The task that it wakes may read on without one of its own."""
        self._due = False
        budget = self._budget
        self.context.run(self.work, budget.until)
        if self.closed:
            budget.leave_rest()

    def strand(self, closed: RuntimeError) -> None:
        """Nothing: the loop has no step for the task any more."""

    def work(self, until: float) -> None:
        """Work on what has come, and request the missing elements, until there is nothing to do or the time is up."""
        source = self._source
        self._at_work = True
        try:
            while not self.closed:
                if not self._step(until) and (source.demand == UNBOUNDED or not self._request()):
                    return
                if budgets.clock() >= until:
                    self.wake()
                    return
        except FAILURES as error:
            if not self.closed:
                self._fail(as_failure(error))
        finally:
            self._at_work = False

    def _request(self) -> bool:
        """Request what the stages need for the result. Return whether something is there already."""
        if self.closed:
            return False
        source = self._source
        need = self._run.demand(1)
        missing = need if need == UNBOUNDED else need - source.demand - length_hint(self._items or ())
        return missing > 0 and source.request(missing)

    def _read_on(self, until: float) -> bool:
        """Begin a pass over the next list. Return False if there is none, and after a failure."""
        run, source, items = self._run, self._source, self._items
        if items is None:
            taken = source.take() if source.kept else None
            if taken is None:
                return source.ended and not source.kept and self._end()
            run.total += len(taken)
            items = self._items = iter(taken)
        if run.mute and (gather := run.gather(until)) is not None:
            return self._gather(gather, items)
        return self._take(run.begin(items, until))

    def _end(self) -> bool:
        """Take the end of the source. Return True if the stages have more to emit."""
        run = self._run
        self._read, self._holds = True, False
        error = self._source.finish()
        if error is not None:
            self._shared = True
            self._fail(error)
            return False
        if not (run.mute and run.ends):
            return True
        self._finish()
        return False

    def _gather(self, gather: Call, items: Iterator[Any]) -> bool:
        """Run a pass that emits nothing before the end."""
        run = self._run
        try:
            gather[0](items, run.pace, [], 1, *gather[1])
        except FAILURES as error:
            self._fail(as_of_a_generator(error), locate=True)
            return False
        if run.may_stop:
            run.ended(input_ended=False)
        if not run.pace.ended:
            return True
        self._items = None
        return bool(self._source.kept) or self._source.ended or run.phase is not READING

    def _used_up(self) -> None:
        self._items = None

    # -- the end

    def _signal(self, failures: list[BaseException]) -> None:
        super()._signal(failures)
        assert self.error is not None
        # Readers of other groups may raise the same failure first, and each raise adds to its traceback.
        self.hold(self.error)

    def close(self) -> list[BaseException]:
        """Let go of all, and wake the task that awaits the end."""
        self.closed = True
        failures = super().close()
        done = self.done
        if done is not None and not done.done() and not done.get_loop().is_closed():
            done.set_result(None)
        return failures

    def _close_source(self) -> None:
        """Leave the source, and discard the rest of the latest list."""
        items, self._items = self._items, None
        try:
            self._source.leave(drop_error)
        finally:
            if items is not None:
                discard(items)
