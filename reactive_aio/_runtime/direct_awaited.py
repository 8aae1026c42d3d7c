"""Direct runs of an async iterator: its owner runs the flow, and the task that awaits the end waits for the owner.

``await Flow.from_async_iterable(rows).map(parse).sum()`` wants all that the iterator gives, and nobody else signals to it. So no driver is
made. The one region runs in the owner's task, with the order and the failures that a driver would have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Sequence
from contextvars import Context, copy_context
from types import GeneratorType, coroutine
from typing import Any

from .._core import budgets
from .._core.budgets import Budget, Taker
from .._core.guard import FAILURES, PLACE_ENDED, Failed, as_failure
from .._core.missing import MISSING
from .._core.notes import add_note
from .._fusion import Call, Placed, RegionRun
from .._plan import Awaited
from .awaited import AwaitedInput
from .direct import Direct
from .host import FlowHost
from .iterating import Kept, discard_kept, raise_held
from .lifetime import Lifetime
from .owner import Owner


async def run_awaited(feed: Placed[Any], stages: Sequence[Placed[Any]], default: Any, *, kept: Kept | None) -> Any:
    """Run stages over an async iterator, and return the element that they emit, or ``default``.

    If nobody gets it, the elements that it has ``kept`` go to the hook.
    """
    run = _begun(feed, stages)
    if isinstance(run, Failed):
        raise run.take()
    loop, put_off = asyncio.get_running_loop(), None
    run.call_again()
    # A cancel ends the run, and is raised behind its cleanup. Here, as another coroutine would take memory of each flow.
    while not run.over:
        run.done = loop.create_future()
        try:
            await run.done
        except asyncio.CancelledError as cancelled:
            put_off = cancelled
            run.cancel()
        except GeneratorExit:  # somebody closes this coroutine, which may wait for nothing any more
            run.cancel()
            run.drop(kept)
            raise
    try:
        if put_off is not None:
            run.drop(kept)
            raise put_off
    finally:
        del put_off  # a traceback leads back to here
    run.conclude()
    if run.error is not None:
        discard_kept(run.value, kept)
        raise_held(run)
    return default if run.value is MISSING else run.value


def _begun(feed: Placed[Any], stages: Sequence[Placed[Any]]) -> DirectAwaited | Failed:
    """Begin with the stages, which may fail in that."""
    try:
        run = RegionRun(stages, feed, counted=False, awaited=True)
    except FAILURES as error:
        add_note(error, f"in {feed}")
        return Failed(as_failure(error))
    return DirectAwaited(run, feed.operator, feed)


class DirectAwaited(Direct, Taker):
    """One run of one region that reads an async iterator (a Reader). It begins in a turn, so that many at once share the loop's time."""

    __slots__ = (
        "_awaited", "_budget", "_failed", "_gathers", "_host", "_owner", "closed", "context", "done", "over",
    )  # fmt: skip

    def __init__(self, run: RegionRun, source: Awaited[Any], where: object) -> None:
        super().__init__(run)
        loop = asyncio.get_running_loop()
        self.context: Context = copy_context()
        self._budget = run.pace.budget = Budget.of(loop)
        self._awaited = AwaitedInput(source, run.pace, where, self._budget)
        self._owner = Owner(self._awaited, self._budget, self.context)
        self._gathers: GeneratorType[Any, int | None, None] | None = None
        """The pass that gathers, while the iterator suspends in the middle of it."""
        self._host: FlowHost | None = None
        self._failed = False
        self.closed = False
        """Whether the region has ended."""
        self.done: asyncio.Future[None] | None = None
        """Wakes the task that awaits the end when all is over."""
        self.over = False
        """Whether the owner has ended."""

    @property
    def host(self) -> FlowHost:
        """Hears of failures of the cleanup; made where there is one, since most flows of a service have none."""
        if self._host is None:
            self._host = FlowHost(Lifetime.awaited(), failed=self._failed)
        return self._host

    def cancel(self) -> None:
        """End, because no task awaits it."""
        if not self.closed:
            for error in self.close():
                self.host.cleanup_failed(error)
            self._owner.close(self)
            self.over = not self._owner.begun

    def drop(self, kept: Kept | None) -> None:
        """Report to the hooks what reaches no subscriber."""
        self.host.lifetime.unawaited(self.error)
        discard_kept(self.value, kept)

    def conclude(self) -> None:
        """Find what the end raises: the failure of the flow, else the first one of its cleanup."""
        if self._host is not None:
            self.error = self._host.lifetime.outcome(self.error)

    # -- the Reader

    @property
    def demand(self) -> int:
        """The one element, until the region has ended."""
        return 0 if self.closed else 1

    def work_here(self) -> bool:
        """Run passes until the iterator suspends or the region has ended. True if the time is up before that."""
        budget, pace = self._budget, self._run.pace
        outer = budget.until
        until = budget.until = outer or budgets.clock() + budget.part
        try:
            while self._step(until):
                if pace.awaiting is not None:
                    return False
                if budgets.clock() >= until:
                    return True
        except FAILURES as error:
            self.caught(error)
        finally:
            budget.until = outer
        return False

    @coroutine
    def read_on(self) -> Generator[Any, None, BaseException | None]:
        """Await, and gather the next elements, as long as the iterator suspends. Return the failure of a wait, if one fails."""
        pace, gathers = self._run.pace, self._gathers
        awaiting, pace.awaiting = pace.awaiting, None
        assert awaiting is not None
        awaited = awaiting[0]
        while True:
            try:
                yield awaited
            except GeneratorExit:
                raise
            except FAILURES as failure:
                return failure
            if gathers is None or self._gathers is not gathers:
                return None
            try:
                awaited = gathers.send(0)
            except StopIteration:
                self._gathers = None
                self._gathered()
                return None
            except FAILURES as error:
                self._gathers = None
                self._fail(error, locate=True)
                return None

    def break_off(self) -> None:
        """Drop the pass that gathers."""
        gathers, self._gathers = self._gathers, None
        if gathers is not None and not gathers.gi_running:
            gathers.close()

    def call_again(self) -> None:
        """Let the owner go on after the other members of the event loop have had their turns."""
        self._budget.add(self)

    def go_on(self, behind: object) -> None:
        """Nothing: its owner awaits whatever its iterator waits for."""

    def come(self) -> None:
        """Let the owner go on."""
        if not self.over:
            try:
                self._owner.call(self)
            except FAILURES as error:  # of a task factory: there is no owner to end it
                self.caught(error)
                self._wake()

    def strand(self, closed: RuntimeError) -> None:
        """Nothing: the loop has no step for the owner any more."""

    def caught(self, error: BaseException) -> None:
        """Fail with an exception that left the owner."""
        if not self.closed:
            self._fail(as_failure(error))

    def left(self, task: asyncio.Task[None]) -> None:
        """Wake the task that awaits the end."""
        self._owner.ended(self, task)
        self._wake()

    def _wake(self) -> None:
        self.over = True
        if self.done is not None and not self.done.done():
            self.done.set_result(None)

    # -- passes

    def _step(self, until: float) -> bool:
        """Run one pass, or the next part of it, or fail after the last element. Return False after the end."""
        run, error = self._run, self._awaited.error
        self._read = self._awaited.ended and self._awaited.emptied  # in a pass, or by a cancel where it waited
        if error is not None and self._read and run.current is None and not (run.may_stop and run.done):
            self._awaited.error = None
            self._fail(error)
            return False
        return super()._step(until)

    def _read_on(self, until: float) -> bool:
        """Begin a pass over the elements of the iterator. Return False after the end."""
        run = self._run
        items = self._awaited.stretch()
        assert items is not None
        if run.mute and (gather := run.gather(until)) is not None:
            return self._gather(gather, items)
        return self._take(run.begin(items, until))

    def _gather(self, gather: Call, items: Iterator[Any]) -> bool:
        """Run a pass that emits nothing before the end, up to where the iterator suspends."""
        gathers = self._gathers = gather[0](items, self._run.pace, [], 1, *gather[1])
        try:
            self._run.pace.awaiting = (gathers.send(None),)
        except StopIteration:
            self._gathers = None
            self._gathered()
        except FAILURES as error:
            self._gathers = None
            self._fail(error, locate=True)
            return False
        return not self.closed

    def _gathered(self) -> None:
        """Handle the end of a pass: its time is up, or the iterator has ended."""
        if self._run.pace.ended:
            self._used_up()
            if self._awaited.ended and self._run.ends and self._awaited.error is None:
                self._finish()

    def _used_up(self) -> None:
        self._awaited.used_up()

    # -- the end

    def _signal(self, failures: list[BaseException]) -> None:
        self._failed = True
        if self._host is not None:
            self._host.failed = True
        super()._signal(failures)

    def close(self) -> list[BaseException]:
        """Let go of the pass and of what the stages hold. The owner closes the iterator."""
        self.closed = True
        self.break_off()
        if self._run.current is self._awaited.reading:
            self._run.current = None  # which is not a pass
        return super().close()

    def _close_source(self) -> None:
        self._awaited.close()
        late, self._awaited.error = self._awaited.error, None
        if late is not None and not isinstance(late, PLACE_ENDED):
            self.host.dropped(late)
