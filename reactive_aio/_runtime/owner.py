"""Regions that read an async iterator: it is pulled through the stages like any iterator, and may suspend in between.

An async generator that is advanced or closed by another task than the one that started it breaks its own timeouts,
scopes and context variables. So one task, the *owner* of the iterator, does all three, in one context. It is never cut
off. The stages work in the owner's task too, in the middle of its step. So an element that is there costs no switch of
tasks. Nothing is read ahead: the pass of the region asks for the next element, as it does of a list.

::

    the owner:  wait for demand ──► pass over the iterator ──► the iterator suspends: await that, go on with the next pass
                      ▲                        │
                      └── demand is met ───────┘

The iterator is wrapped in a generator that gives its elements, and, in between, what it awaits. The pass ends at the latter.
A consumer on the same loop that takes one element at a time (``async for``) advances the pass itself while the owner waits for
demand. It does so under the owner's identity and in its context, and leaves the rest to the owner as soon as the iterator suspends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextvars import Context
from types import GeneratorType, coroutine
from typing import Any, TypeVar, cast

from .._core.guard import FAILURES
from .._core.identity import swap_current_task
from .._fusion import BARE, READING
from .._plan import Receiver, Region
from ..spec import MOST_AT_ONCE
from .awaited import AwaitedInput
from .driver import RegionDriver
from .emission import NOTHING
from .host import FlowHost, begun
from .life import OPEN

R = TypeVar("R")


class AwaitedDriver(RegionDriver):
    """One region of one subscription that reads an async iterator."""

    __slots__ = ("_context", "_going", "_here", "_out", "_owner", "_pass", "_taken", "_told", "_unreleased", "source")

    def __init__(
        self,
        source: AwaitedInput,
        region: Region,
        context: Context,
        receiver: Receiver[Any],
        host: FlowHost,
        release: Callable[[], None],
    ) -> None:
        super().__init__(source.run, region, source, source.loop, context, receiver, host, release)
        self.source = source
        self.run.pace.budget = self.budget
        self._owner: asyncio.Task[None] | None = None
        self._context = context
        """The context of the owner, once there is one."""
        self._going: asyncio.Future[None] | None = None
        """The future that the owner waits for, while there is no demand."""
        self._here = False
        """Whether the region is at work under the owner's identity."""
        self._pass: GeneratorType[Any, int | None, None] | None = None
        """The pass that gathers, while the iterator suspends in the middle of it."""
        self._out: list[Any] = []
        """The elements that it has gathered."""
        self._taken = 0
        """The number of elements that have been taken from there while it waits. It gets the number when it goes on."""
        self._told = False
        """Whether the iterator, which waits for something, has been told that it is left."""
        self._unreleased: Callable[[], None] | None = None
        """Releases the region's place when the owner has ended."""

    # -- where the region may work

    def _work(self) -> bool:
        pace = self.run.pace
        if (
            self._here
            or self.cancelled
            or not (self._demand and self._waits and self._reads)
            or pace.awaiting is not None
        ):
            return super()._work()
        late = self._as_owner(self._work_here)
        if self.closed or pace.awaiting is not None:
            self._call_owner()
        return late

    def _step(self, until: float) -> bool:
        if self._here:
            return super()._step(until) and self.run.pace.awaiting is None
        if not self._reads:
            return super()._step(until)
        self._call_owner()
        return False

    @property
    def _reads(self) -> bool:
        """Whether the next step reads the iterator, which is done in the name of the owner."""
        run = self.run
        over = self.source.ended or (run.current is None and run.may_stop and run.done)
        return run.phase is READING and not over

    @property
    def _waits(self) -> bool:
        """Whether the owner waits to be called, so that others may work in its name."""
        return self._going is not None and not self._going.done()

    def _call_owner(self) -> None:
        """Have the owner work, in a step of its own."""
        self.budget.lend()
        if self._owner is None:
            self._context = self.context.copy()
            self._owner = self.loop.create_task(self._own(), context=self._context)
            begun(self.loop).add(self._owner)
            self._owner.add_done_callback(self._owner_ended, context=self.context)
        elif self._waits:
            cast("asyncio.Future[None]", self._going).set_result(None)

    def _work_here(self) -> bool:
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
        """As `_gather_on`, where there is no stage."""
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

    def _close_pass(self) -> None:
        gathers, self._pass = self._pass, None
        if gathers is not None and not gathers.gi_running:
            gathers.close()

    def _stream(self) -> Generator[Any, None, None]:
        """Await, and gather what comes behind that, as long as the iterator suspends: an element may come alone each time."""
        pace, gathers = self.run.pace, self._pass
        lists = self.run.empty and not self.each
        (awaited,), pace.awaiting = cast("tuple[Any]", pace.awaiting), None
        while True:
            yield awaited
            if (gathers is None and not lists) or self._pass is not gathers or self.cancelled:
                return
            self._here = True
            try:
                awaited = self._list_on() if gathers is None else self._gather_on(gathers, self._taken)
            except FAILURES as error:
                self.caught(error)
                awaited = NOTHING
            finally:
                self._here = False
            if awaited is NOTHING:
                return
            if self._pass is not gathers:
                pace.awaiting = (awaited,)
                return

    # -- the owner

    async def _own(self) -> None:
        await self._steps()

    @coroutine
    def _steps(self) -> Generator[Any, None, None]:
        source, pace = self.source, self.run.pace
        try:
            while True:
                if pace.awaiting is not None:
                    if self.closed:
                        self._cancel_source()
                    try:
                        yield from self._stream()
                    except GeneratorExit:
                        raise
                    except FAILURES as error:
                        # A cancel, or what the future has failed with: a task raises it where it waits.
                        self._close_pass()
                        source.throw(error)
                    else:
                        if not pace.awaiting and source.suspended and (source.interrupted or not self._demand):
                            source.resume()
                elif self.closed:
                    if not source.leave():
                        break
                    self._told = True
                else:
                    yield from self._rest(self._work_here())
        except GeneratorExit:
            source.abandon()
            raise
        self._report()

    def _report(self) -> None:
        """Tell of what the iterator has raised that the region does not."""
        failure = self.source.cleanup_failure()
        if failure is not None:
            self.context.copy().run(self.host.cleanup_failed, failure)
        # An error that it raised before it was left, behind elements that nobody takes.
        for late in self._late_failure():
            self.context.copy().run(self.host.dropped, late)

    def _rest(self, late: bool) -> Generator[Any, None, None]:
        """Wait until there is something to be done. Where the time is up, the region's turn sees to the rest."""
        if self.closed or self.run.pace.awaiting is not None:
            return
        self._going = self.loop.create_future()
        if late and not self._awake:
            self._wake()
        try:
            yield from self._going
            self._turn_passed()
        except asyncio.CancelledError as cancelled:
            if self.run.pace.awaiting is not None:
                # It comes to where the iterator waits, which its consumer has just left to the owner.
                owner = cast("asyncio.Task[None]", self._owner)
                owner.uncancel()
                owner.cancel()
            elif not self.closed:
                self.source.interrupt(cancelled)
        finally:
            self._going = None

    def _turn_passed(self) -> None:
        """Forget of an iterator that only lets the event loop have a turn, when it has had one."""
        if self.run.pace.awaiting is BARE and not self.closed:
            self.run.pace.awaiting = None

    def _cancel_source(self) -> None:
        """Cancel what the iterator waits for, once."""
        if not self._told and not self.source.closing:
            self._told = True
            assert self._owner is not None
            self._owner.cancel()

    def _owner_ended(self, owner: asyncio.Task[None]) -> None:
        begun(self.loop).discard(owner)
        if not self.closed and not owner.cancelled() and (error := owner.exception()) is not None:
            self.caught(error)
        self._release_place()

    # -- the end

    def _end(self) -> list[BaseException]:
        self._close_pass()
        if self.run.current is self.source.reading:
            self.run.current = None  # which is not a pass, and is closed by the owner
        failures = super()._end()
        if self._owner is not None and not self._here and not self.loop.is_closed():
            if self._going is not None:
                self._call_owner()
            elif self.source.suspended and self.run.pace.awaiting is None:
                self._cancel_source()
        return failures

    def _give_up(self, release: Callable[[], None]) -> None:
        if self._owner is None or self._owner.done():
            release()
        else:
            self._unreleased = release
            self.abandoned[self._release_place] = None

    def _release_place(self) -> None:
        self.abandoned.pop(self._release_place, None)
        release, self._unreleased = self._unreleased, None
        if release is not None:
            release()

    # -- a consumer on the same loop that takes one element at a time

    def poll(self) -> Any:
        """Give the next element of the current pass, or NOTHING, under the owner's identity."""
        run, items = self.run, self.run.current
        if items is None or not self._waits or self._draining or self.cancelled:
            return NOTHING
        me = swap_current_task(self.loop, self._owner)
        try:
            item = self._context.run(next, items, NOTHING)
        except FAILURES as error:
            self._fail(error, locate=True)
            return NOTHING
        finally:
            swap_current_task(self.loop, me)
        if item is NOTHING:
            read = run.phase is READING
            run.ended(input_ended=False)
            if read and run.pace.ended:
                self.source.used_up()
            elif run.pace.awaiting not in (None, BARE):
                self._call_owner()
            return NOTHING
        self.delivered += 1
        return item

    def pull(self, n: int) -> None:
        """Take demand, and see to it under the owner's identity, as far as the iterator does not suspend."""
        if self.life is not OPEN or self._owner is None or self._awake or self._draining or not self._events.empty():
            super().pull(n)
            return
        self._demand += n
        if not self._waits:
            return  # the owner is at work, and sees to it
        if self._work() and not self._awake:
            self._wake()

    @property
    def bare(self) -> bool:
        """Whether the iterator only lets the event loop have a turn, and the owner has not been called for that."""
        return self.run.pace.awaiting is BARE and self._waits

    @coroutine
    def let_turn(self) -> Generator[Any, None, None]:
        """Let the event loop have that turn in the task of the consumer, and begin the next pass."""
        try:
            yield
        except FAILURES:
            if not self.loop.is_closed():
                self._call_owner()
            raise
        if self.bare and not self.cancelled:
            self.run.pace.awaiting = None
            self.run.begin(self.source.stretch(), self.budget.deadline())

    def _as_owner(self, call: Callable[..., R], *args: Any) -> R:
        loop = self.loop
        me = swap_current_task(loop, self._owner)
        try:
            return self._context.run(call, *args)
        finally:
            swap_current_task(loop, me)
