"""Direct runs: the task that awaits an end runs the flow itself.

Most flows of a service are small: some given elements, a few functions, a list. Such a flow has one region, which pulls
its source on the subscriber's loop. It waits for no signal and no other thread. So no driver
is made. The passes of the region run in the task that awaits the end, in a context of the flow's own. Order and
failures are those that a driver would have. The loop has a turn whenever its tasks have run flows for as long as a turn
lasts.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from operator import length_hint
from typing import Any

from .._core import budgets
from .._core.budgets import Budget
from .._core.guard import FAILURES, Failed, as_failure, as_of_a_generator, close_all
from .._core.missing import MISSING, NOTHING
from .._core.notes import add_note
from .._fusion import OVER, READING, Call, Placed, RegionRun, sized
from .._plan import Pulled
from ..hooks import also_failed, drop_error
from .iterating import Held, Kept, discard_kept, raise_held


async def run_directly(feed: Placed[Any], stages: Sequence[Placed[Any]], default: Any, *, kept: Kept | None) -> Any:
    """Run stages over a source in this task, and return the element that they emit, or ``default``.

    If nobody gets it, the elements that it has ``kept`` go to the hook.
    """
    budget = Budget.of(asyncio.get_running_loop())
    if budgets.clock() >= budget.lent and not budget.turn_now():
        budget.lent = await budget.turn()
    run = _begun(feed, stages)
    if isinstance(run, Failed):
        raise run.take()
    context = copy_context()
    try:
        while context.run(run.work, budget):
            budget.lent = await budget.turn()
    except FAILURES:  # cancelled, or left behind by the loop
        for error in context.run(run.close):
            drop_error(error)
        raise
    if run.error is not None:
        discard_kept(run.value, kept)
        raise_held(run)
    return default if run.value is MISSING else run.value


def _begun(feed: Placed[Any], stages: Sequence[Placed[Any]]) -> DirectPulled | Failed:
    """Begin with the stages, which may fail in that."""
    source: Pulled[Any] = feed.operator
    try:
        return DirectPulled(RegionRun(stages, feed, counted=source.at_hand), source)
    except FAILURES as error:
        add_note(error, f"in {feed}")
        return Failed(as_failure(error))


class Direct(Held, ABC):
    """One run of one region, for the one element that it emits at most."""

    __slots__ = ("_holds", "_read", "_run", "value")

    def __init__(self, run: RegionRun) -> None:
        self._run = run
        self._read = False
        """Whether the source has ended."""
        self._holds = True
        """Whether the source may hold something to let go of."""
        self.value: Any = MISSING
        self.error: BaseException | None = None  # as `Held`, without a call
        self._traceback = None

    @abstractmethod
    def _read_on(self, until: float) -> bool:
        """Begin a pass over the elements of the source. Return False after the end."""

    @abstractmethod
    def _used_up(self) -> None:
        """Note that a pass has come to the end of its input."""

    def _step(self, until: float) -> bool:
        """Run one pass, or the next part of it. Return False after the end."""
        run = self._run
        items = run.current
        if items is not None:
            run.pace.deadline = until
            return self._take(items)
        if run.phase is not READING or self._read or (run.may_stop and run.done):
            if run.phase is READING:
                run.finish()
            return self._take(run.begin(None, until))
        return self._read_on(until)

    def _take(self, items: Iterator[Any] | None) -> bool:
        """Take the element of a pass that emits it at once."""
        assert items is not None
        run = self._run
        try:
            item = next(items, NOTHING)
        except FAILURES as error:
            self._fail(error, locate=True)
            return False
        if item is NOTHING:
            read = run.phase is READING
            run.ended(input_ended=False)
            if read and run.pace.ended and run.current is None:
                self._used_up()
            if run.phase is not OVER:
                return True
        else:
            self.value = item
        self._complete()
        return False

    # -- the end

    def _finish(self) -> None:
        """Take the element of the last stage, if no other stage has one. A pass does the same in more calls."""
        try:
            for item in self._run.transforms[-1].finish():
                self.value = item
        except FAILURES as error:
            self._fail(as_of_a_generator(error), locate=True)
        else:
            if failures := self.close():
                self._signal(failures)

    def _complete(self) -> None:
        failures: list[BaseException] = []
        try:
            self._run.check_over()
        except FAILURES as error:
            failures.append(error)
        if failures := [*failures, *self.close()]:
            self._signal(failures)

    def _fail(self, error: BaseException, *, locate: bool = False) -> None:
        """End with a failure. With ``locate`` it is one of the region's own functions."""
        if locate:
            self._run.locate(error)
        self._signal([error, *self.close()])

    def _signal(self, failures: list[BaseException]) -> None:
        """Keep the first of several failures for the end. The others are noted on it."""
        first, *others = map(as_failure, failures)
        try:
            for other in others:
                also_failed(first, other)
            self.error = first
        finally:
            del first, others, failures  # a traceback leads back to here

    def close(self) -> list[BaseException]:
        """Let go of the pass, of what the stages hold, and of the source. Return the errors of that."""
        run = self._run
        items, run.current = run.current, None
        close: Callable[[], object] | None = getattr(items, "close", None)
        closers = (run.close, self._close_source) if self._holds else (run.close,)
        return close_all(closers if close is None else (close, *closers))

    @abstractmethod
    def _close_source(self) -> None:
        """Let go of the source."""


class DirectPulled(Direct):
    """A direct run of a source that is pulled."""

    __slots__ = ("_items", "_source")

    def __init__(self, run: RegionRun, source: Pulled[Any]) -> None:
        super().__init__(run)
        self._source = source
        self._items: Iterator[Any] | None = None
        """The iterator of the source, once it is open."""

    def work(self, budget: Budget) -> bool:
        """Run passes until the end; True if the time is up before. To be called in the context of the flow."""
        outer = budget.until  # that of a region which pulls an async generator that awaits the end
        until = budget.until = budget.lent
        try:
            while self._step(until):
                if budgets.clock() >= until:
                    return True
        except FAILURES as error:
            self._fail(error)
        finally:
            budget.until = outer
        return False

    def _read_on(self, until: float) -> bool:
        run = self._run
        try:
            items = self._items
            if items is None:
                items = self._items = self._source.iterate()
                if sized(items):
                    self._holds = False
                    run.total = length_hint(items)
        except FAILURES as error:
            self._fail(error, locate=True)
            return False
        if run.mute and (gather := run.gather(until)) is not None:
            return self._gather(gather, items)
        return self._take(run.begin(items, until))

    def _used_up(self) -> None:
        self._read = True

    def _gather(self, gather: Call, items: Iterator[Any]) -> bool:
        """Run a pass that emits nothing before the end."""
        run = self._run
        run.current = items
        try:
            gather[0](items, run.pace, [], 1, *gather[1])
            self._read = run.pace.ended
            if not (self._read and run.ends):
                run.ended(input_ended=False)
                return True
            run.current = None
            for item in run.transforms[-1].finish():  # as `_finish`, without a call: a service runs many small flows
                self.value = item
        except FAILURES as error:
            self._fail(as_of_a_generator(error), locate=True)
        else:
            if failures := self.close():
                self._signal(failures)
        return False

    def _close_source(self) -> None:
        items, self._items = self._items, None
        close = getattr(items, "close", None)
        if close is not None:
            close()
