"""Direct runs of a part of a flow: the task that awaits an end of a window or a group needs no driver.

A flow of many small groups has an end for each of them. The one region of such an end runs in turns of the event loop, on the lists that it
gets. Order, demand and failures are those of a driver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from typing import Any

from .._core import budgets
from .._core.budgets import Budget, Taker
from .._core.guard import FAILURES, Failed, as_failure, as_of_a_generator
from .._core.missing import MISSING
from .._core.notes import add_note
from .._fusion import READING, Call, Placed, RegionRun
from .._plan import Pushed
from ..hooks import drop_error
from .direct import Direct
from .inputs import PushedInput
from .iterating import Kept, discard_kept, raise_held


async def run_pushed(feed: Placed[Any], stages: Sequence[Placed[Any]], default: Any, *, kept: Kept | None) -> Any:
    """Run stages over a source that `is_bare`, and return their element, or ``default``.

    If nobody gets it, the elements that it has ``kept`` go to the hook.
    """
    run = _begun(feed, stages)
    if isinstance(run, Failed):
        raise run.take()
    run.context.run(run.open)
    try:
        if not run.closed:
            await run.done
    except (asyncio.CancelledError, GeneratorExit):  # somebody closes this coroutine
        run.abandon(kept)
        raise
    if run.as_it_came() is not None:
        discard_kept(run.value, kept)
        raise_held(run)
    return default if run.value is MISSING else run.value


def _begun(feed: Placed[Any], stages: Sequence[Placed[Any]]) -> DirectPushed | Failed:
    """Begin with the stages, which may fail in that."""
    try:
        return DirectPushed(RegionRun(stages, feed, counted=True), feed.operator, asyncio.get_running_loop())
    except FAILURES as error:
        add_note(error, f"in {feed}")
        return Failed(as_failure(error))


class DirectPushed(Direct, Taker):
    """One run of one region over lists (an Outlet). Its source sees as much of an inlet as a source that `is_bare` needs."""

    __slots__ = ("_at_work", "_budget", "_due", "_events", "_input", "_source", "closed", "context", "done", "loop")

    def __init__(self, run: RegionRun, source: Pushed[Any], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(run)
        self.loop = loop
        self.context: Context = copy_context()
        self._budget = Budget.of(loop)
        self._source = source
        self._input = PushedInput(source.prefetch, run, told=source.is_told)
        self._events: tuple[tuple[Callable[[Any], None], Any], ...] = ()
        """The calls that the source has posted: one or two."""
        self._due = False
        """Whether a turn is to come."""
        self._at_work = False
        """Whether a turn is running. Lists that arrive in it are worked on in it."""
        self.closed = False
        """Whether the region has ended."""
        self.done: asyncio.Future[None] = loop.create_future()
        """Wakes the task that awaits the end, when all is over."""

    def open(self) -> None:
        """Open the source, unless a stage says already that it needs none."""
        run = self._run
        try:
            if not run.done:
                inlet: Any = self
                self._input.upstream = self._source.open(inlet)
                self._input.start()
            if run.phase is READING and not run.done:
                self._input.more(1)
            else:
                self._wake()
        except FAILURES as error:
            self._fail(error, locate=True)

    def abandon(self, kept: Kept | None) -> None:
        """End because the task was cancelled, or its coroutine closed. The hooks get the elements and errors that reach nobody."""
        if not self.closed:
            for error in self.context.run(self.close):
                drop_error(error)
            return
        if (failure := self.as_it_came()) is not None:
            drop_error(failure)
        discard_kept(self.value, kept)

    # -- the inlet, on the event loop

    def on_chunk(self, items: list[Any]) -> None:
        """Take elements and work on them."""
        self._input.add(items)
        self._go()

    def on_error(self, error: BaseException) -> None:
        """Take the failure. It stays behind the elements."""
        if self.closed:
            drop_error(error)
            return
        self._input.end(error)
        self._go()

    def on_complete(self) -> None:
        """Take the end. It stays behind the elements."""
        self._input.end(None)
        self._go()

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call the source in a turn."""
        self._events += ((handle, value),)
        self._wake()

    # -- turns

    def _wake(self) -> None:
        if not self._due and not self.closed:
            self._due = True
            self._budget.add(self)

    def come(self) -> None:
        """Take a turn."""
        self._due = False
        self.context.run(self._work, self._budget.until)

    def strand(self, closed: RuntimeError) -> None:
        """Nothing: the loop has no step for the task any more."""

    def _go(self) -> None:
        """Work in the turn of the source."""
        if not (self._at_work or self._due or self.closed):
            self.context.run(self._work, self._budget.moment())

    def _work(self, until: float) -> None:
        """Work on the lists that have arrived, and request the missing elements."""
        self._at_work = True
        try:
            while self._events:
                handle, value = self._events[0]
                self._events = self._events[1:]
                handle(value)
            while not self.closed and self._step(until):
                if budgets.clock() >= until:
                    self._wake()
                    return
            if not self.closed:
                self._input.more(1)
        except FAILURES as error:
            if not self.closed:
                self._fail(as_failure(error))
        finally:
            self._at_work = False

    def _read_on(self, until: float) -> bool:
        """Begin a pass over the next list; False if there is none, and after a failure."""
        run, fed = self._run, self._input
        items = fed.stretch()
        if items is not None:
            if run.mute and (gather := run.gather(until)) is not None:
                return self._gather(gather, items)
            return self._take(run.begin(items, until))
        if not fed.ended:
            return False
        error, fed.error = fed.error, None
        if error is not None:
            self._fail(error)
            return False
        self._read = True
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
        return not run.pace.ended or self._input.used_up() or run.phase is not READING

    def _used_up(self) -> None:
        self._input.used_up()

    # -- the end

    def _signal(self, failures: list[BaseException]) -> None:
        super()._signal(failures)
        if self.error is not None:
            # Readers of other groups may raise the same failure first, and each raise adds to its traceback.
            self.hold(self.error)

    def close(self) -> list[BaseException]:
        """Let go of all, and wake the task that awaits the end."""
        self.closed = True
        if not self.done.done():
            self.done.set_result(None)
        return super().close()

    def _close_source(self) -> None:
        self._input.close()
