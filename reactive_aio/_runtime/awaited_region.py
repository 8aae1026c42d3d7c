"""Regions that read an async iterator: it is pulled through the stages like any iterator, and may suspend in between.

The iterator is wrapped in a generator that gives its elements, and, in between, what it awaits. The pass ends at the latter, and its
owner awaits that. A consumer on the same loop that takes one element at a time (``async for``) advances the pass itself while the
owner waits for demand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextvars import Context
from types import GeneratorType, coroutine
from typing import Any, cast

from .._core import budgets
from .._core.guard import FAILURES
from .._core.identity import next_as
from .._core.missing import NOTHING
from .._fusion import BARE, READING, RegionRun
from .._plan import Receiver, Region
from ..spec import MOST_AT_ONCE
from .awaited import MANY, AwaitedInput
from .driver import RegionDriver
from .host import FlowHost
from .life import OPEN
from .owner import Owner
from .shared_wait import SharedWait


class AwaitedDriver(RegionDriver):
    """One region of one subscription that reads an async iterator (a Reader)."""

    __slots__ = ("_here", "_out", "_owner", "_pass", "_taken", "_unreleased", "_wait", "source")

    awaits = True

    def __init__(
        self,
        source: AwaitedInput,
        run: RegionRun,
        region: Region,
        context: Context,
        receiver: Receiver[Any],
        host: FlowHost,
        release: Callable[[], None],
    ) -> None:
        super().__init__(run, region, source, source.loop, context, receiver, host, release)
        self.source = source
        self.run.pace.budget = self.budget
        self._owner = Owner(source, self.budget, context)
        self._here = False
        """Whether the region is at work under the owner's identity."""
        self._pass: GeneratorType[Any, int | None, None] | None = None
        """The pass that gathers, while the iterator suspends in the middle of it."""
        self._out: list[Any] = []
        """The elements that it has gathered."""
        self._taken = 0
        """The number of elements that have been taken from there while it waits. It gets the number when it goes on."""
        self._wait: SharedWait | None = None
        """Stands for what the iterator waits for, while a consumer is to wait for that in its own task."""
        self._unreleased: Callable[[], None] | None = None
        """Releases the region's place when the owner has ended."""

    # -- where the region may work

    def _work(self) -> bool:
        pace = self.run.pace
        if (
            self._here
            or self.cancelled
            or not (self._demand and self._owner.waits and self._reads)
            or pace.awaiting is not None
        ):
            return super()._work()
        late = self._owner.run(self.work_here)
        if self.closed or pace.awaiting is not None:
            self._hand_over()
        return late

    def _hand_over(self) -> None:
        """Leave the iterator's wait to the owner, which is quicker for many elements, and alone goes on with a pass that gathers."""
        if self._demand >= MANY or self._pass is not None:
            self._owner.call(self)
        else:
            self._owner.hand_over(self)

    def go_on(self, behind: object) -> None:
        """Work behind what the iterator has waited for."""
        owner = self._owner
        if owner.goes_on(self, behind):
            late = owner.run(self.work_here)
            if self.closed or self.run.pace.awaiting is not None:
                self._hand_over()
            elif late:
                self.call_again()

    def _step(self, until: float) -> bool:
        if self._here:
            return super()._step(until) and self.run.pace.awaiting is None
        if not self._reads:
            return super()._step(until)
        self._owner.call(self)
        return False

    @property
    def _reads(self) -> bool:
        """Whether the next step reads the iterator, which is done in the name of the owner."""
        run = self.run
        over = self.source.ended or (run.current is None and run.may_stop and run.done)
        return run.phase is READING and not over

    def work_here(self) -> bool:
        """Work under the owner's identity; True if the time is up before all is done."""
        self._here = True
        try:
            return self._work()
        except FAILURES as error:
            self.caught(error)
            return False
        finally:
            self._here = False

    # -- what gathers goes on behind a suspension

    def _emit_chunk(self, items: Iterator[Any]) -> bool:
        call, self._gather = self._gather, None
        if call is None:
            return super()._emit_chunk(items)
        self._out = []
        gathers = self._pass = call[0](items, self.run.pace, self._out, min(self._demand, MOST_AT_ONCE), *call[1])
        awaited = self._gather_on(gathers, None)
        if awaited is not NOTHING:
            self.run.pace.awaiting = (awaited,)
        return True

    def _gather_on(self, gathers: GeneratorType[Any, int | None, None], taken: int | None) -> Any:
        """Gather until the iterator suspends or the pass has ended, and deliver that.

        Return what is awaited, or NOTHING.
        """
        self._taken = 0
        try:
            awaited = gathers.send(taken)
        except StopIteration:
            awaited = NOTHING
        except FAILURES as error:
            self._pass = None
            self._flush()
            self._fail(error, locate=True)
            return NOTHING
        if awaited is NOTHING:
            self._pass = None
        if self._out:
            self._flush()
        return awaited

    def _list_on(self) -> Any:
        """As `_gather_on`, without a stage."""
        listed = self.source.whole_chunk(self._demand)
        if listed is not None:
            self._deliver(listed)
        awaiting, self.run.pace.awaiting = self.run.pace.awaiting, None
        return NOTHING if awaiting is None else awaiting[0]

    def _flush(self) -> None:
        out, self._out[:] = self._out[:], ()
        self._taken = len(out)
        if out:
            self._deliver(out)

    def break_off(self) -> None:
        """Drop the pass."""
        gathers, self._pass = self._pass, None
        if gathers is not None and not gathers.gi_running:
            gathers.close()

    @coroutine
    def read_on(self) -> Generator[Any, None, BaseException | None]:
        """Await, and gather the next elements, as long as the iterator suspends. Return the failure of a wait, if one fails.

        Each element may come alone.
        """
        pace, gathers = self.run.pace, self._pass
        lists = self.run.empty and not self.each
        (awaited,), pace.awaiting = cast("tuple[Any]", pace.awaiting), None
        while True:
            try:
                yield awaited
            except GeneratorExit:
                raise
            except FAILURES as failure:
                return failure
            if (gathers is None and not lists) or self._pass is not gathers or self.cancelled:
                return None
            self._here = True
            try:
                awaited = self._list_on() if gathers is None else self._gather_on(gathers, self._taken)
            except FAILURES as error:
                self.caught(error)
                awaited = NOTHING
            finally:
                self._here = False
            if awaited is NOTHING:
                return None
            if self._pass is not gathers:
                pace.awaiting = (awaited,)
                return None

    def call_again(self) -> None:
        """Schedule a turn."""
        if not self._awake:
            self._wake()

    def left(self, task: asyncio.Task[None]) -> None:
        """Release the region's place."""
        self._owner.ended(self, task)
        self._release_place()

    def _release_place(self) -> None:
        self.abandoned.pop(self._release_place, None)
        release, self._unreleased = self._unreleased, None
        if release is not None:
            release()

    # -- the end

    def _end(self) -> list[BaseException]:
        self.break_off()
        if self.run.current is self.source.reading:
            self.run.current = None  # which is not a pass, and is closed by the owner
        failures = super()._end()
        if not self._here:
            self._owner.close(self)
        if self._wait is not None:
            self._wait.end()
        return failures

    def _give_up(self, release: Callable[[], None]) -> None:
        if self._owner.over:
            release()
        else:
            self._unreleased = release
            self.abandoned[self._release_place] = None

    # -- a consumer on the same loop that takes one element at a time

    def poll(self) -> Any:
        """Return the next element of the current pass, or NOTHING, under the owner's identity."""
        run, owner = self.run, self._owner
        items, going = run.current, owner.going
        # As `Owner.waits` and `Owner.run`, without their calls: each element of an `async for` comes by here.
        if items is None or going is None or going.done() or owner.behind is not None or self._draining:
            return NOTHING
        if self.cancelled:
            return NOTHING
        try:
            item = next_as(self.loop, owner.task, owner.context, items)
        except FAILURES as error:
            self._fail(error, locate=True)
            return NOTHING
        if item is NOTHING:
            read = run.phase is READING
            if read and not (run.may_stop or run.made):
                run.current = None  # as `ended` has it, without a call
            else:
                run.ended(input_ended=False)
            if read and run.pace.ended and run.current is None:
                self.source.used_up()
            elif run.pace.awaiting not in (None, BARE):
                self._wait = owner.shared_wait()
                if self._wait is None:
                    self._hand_over()
            return NOTHING
        self.delivered += 1
        return item

    def pull(self, n: int) -> None:
        """Take demand, and see to it under the owner's identity, as far as the iterator does not suspend."""
        if self.life is not OPEN or not self._owner.begun or self._awake or self._draining or self._posted:
            super().pull(n)
            return
        self._demand += n
        if not self._owner.waits:
            return  # the owner is at work, and sees to it
        if self._work() and not self._awake:
            self._wake()

    @property
    def bare(self) -> bool:
        """Whether the consumer can wait itself: for a turn of the event loop, or for the future that the iterator waits for. Not once the owner has been called."""
        run, owner = self.run, self._owner
        going = owner.going
        if going is None or going.done():  # as `Owner.waits`, without a call
            return False
        if owner.behind is not None:
            return self._wait is not None
        awaiting = run.pace.awaiting
        return awaiting is BARE or (awaiting is None and run.current is None and self._reads)

    @coroutine
    def let_turn(self) -> Generator[Any, None, None]:
        """Wait in the task of the consumer, and begin the next pass."""
        wait, owner = self._wait, self._owner
        try:
            if wait is not None:
                yield wait
            elif self.run.pace.awaiting is BARE:
                yield
            else:
                yield from self.budget.breath().__await__()
        except FAILURES:
            self._wait = None
            if not self.loop.is_closed():
                owner.call(self)
            raise
        going_on = self.bare and not self.cancelled
        self._wait = None
        if going_on:
            owner.behind = self.run.pace.awaiting = None
            until = budgets.clock() + self.budget.part  # as `Budget.deadline`, without a call
            self.run.begin(self.source.stretch(), until)
