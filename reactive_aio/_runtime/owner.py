"""The owner of an async iterator: the one task that starts, advances and closes it, in one context.

An async generator that is advanced or closed by another task than the one that started it breaks its own timeouts,
scopes and context variables. So one task, the *owner*, does all three. It is never cut off. The reader of the iterator works in
the owner's task too, in the middle of its step. So an element that is there costs no switch of tasks. Nothing is read ahead.

::

    the owner:  wait for demand ──► read the iterator ──► it suspends: await that, go on
                      ▲                     │
                      └── demand is met ────┘

While the owner waits for demand, the reader may advance the iterator in a turn of its own, under the owner's identity and in its
context. If the iterator suspends, a reader of few elements goes on behind the same future (`Owner.hand_over`, `Owner.shared_wait`).
The owner does the rest: it awaits where many are requested, passes a cancel on, and closes the iterator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, Protocol, TypeVar, cast

from .._core.budgets import Budget
from .._core.identity import run_as
from .._core.tasks import begin_task
from .._fusion import BARE
from .awaited import AwaitedInput
from .host import FlowHost
from .shared_wait import SharedWait

R = TypeVar("R")


class Reader(Protocol):
    """Reads an async iterator by its owner."""

    @property
    def host(self) -> FlowHost:
        """Hears of failures that the end does not raise."""
        ...

    @property
    def context(self) -> Context:
        """The context of the subscriber."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it reads no more."""
        ...

    @property
    def demand(self) -> int:
        """The number of elements that it needs."""
        ...

    def work_here(self) -> bool:
        """Read until the iterator suspends or demand is met. Return True if the time is up first."""
        ...

    def read_on(self) -> Awaitable[BaseException | None]:
        """Await the iterator's wait, and read on, as long as it suspends. Return the failure of a wait, if one fails.

        Each reader catches that failure where it waits: a coroutine between, for all of them, takes a step for each element.
        """
        ...

    def break_off(self) -> None:
        """Drop a pass that was interrupted where the iterator waits."""

    def call_again(self) -> None:
        """Schedule a turn, because the time is up."""

    def caught(self, error: BaseException) -> None:
        """Fail with an exception that left the owner."""

    def go_on(self, behind: Any, /) -> None:
        """Work behind what the iterator has waited for, if `Owner.goes_on` says so."""

    def left(self, task: asyncio.Task[None], /) -> None:
        """Let go of everything, because the task of the owner has ended."""


class Owner:
    """Owns the iterator of one subscription. There is no task before the first request."""

    __slots__ = ("_budget", "_source", "_told", "behind", "context", "going", "task")

    def __init__(self, source: AwaitedInput, budget: Budget, context: Context) -> None:
        self._source = source
        self._budget = budget
        self.task: asyncio.Task[None] | None = None
        self.context = context
        """The context of the reader; that of the task, once there is one."""
        self.going: asyncio.Future[None] | None = None
        """The future that it waits for, while there is no demand."""
        self.behind: object = None
        """The object that the iterator waits for, if its reader goes on behind that without a step of the owner."""
        self._told = False
        """Whether the waiting iterator knows that the region has left it."""

    # -- for the reader

    @property
    def begun(self) -> bool:
        """Whether there has been a task."""
        return self.task is not None

    @property
    def over(self) -> bool:
        """Whether there is no task yet, or no longer."""
        return self.task is None or self.task.done()

    @property
    def waits(self) -> bool:
        """Whether the owner waits to be called, so that its reader may work in its name."""
        return self.going is not None and not self.going.done() and self.behind is None

    def hand_over(self, reader: Reader) -> None:
        """Have the reader go on when the wait of the iterator is over: without a step of the owner, if a callback will do."""
        going, awaiting = self.going, self._source.pace.awaiting
        if going is None or going.done() or awaiting is None or reader.closed:
            self.call(reader)
            return
        loop, context = self._source.loop, self._budget.context
        if awaiting is BARE:
            self.behind = BARE
            loop.call_soon(reader.go_on, BARE, context=context)
        elif (future := _future_of(awaiting[0], loop)) is not None and future is not self.task:
            # As a task does: it says that the future has been awaited, and not yielded. Other tasks may await the same future.
            future._asyncio_future_blocking = False  # pyright: ignore[reportPrivateUsage] - part of the protocol of tasks
            self.behind = future
            future.add_done_callback(reader.go_on, context=context)
        else:  # the owner alone says what is wrong with it
            self.call(reader)

    def shared_wait(self) -> SharedWait | None:
        """Return what the iterator waits for, for a consumer to wait for it in its own task. None if only the owner can."""
        awaiting = self._source.pace.awaiting
        future = None if awaiting is None else _future_of(awaiting[0], self._source.loop)
        if future is None or future is self.task:
            return None
        future._asyncio_future_blocking = False  # pyright: ignore[reportPrivateUsage] - as above
        self.behind = future
        return SharedWait(future)

    def goes_on(self, reader: Reader, behind: object) -> bool:
        """Return whether the reader is to go on in the name of the owner, behind what the iterator has waited for.

        Else the owner does, which has been called or cancelled before, or reads on though there is no demand.
        """
        if self.behind is not behind or self.going is None or self.going.done():
            return False
        source = self._source
        if reader.closed or not reader.demand or source.interrupted:
            self.call(reader)
            return False
        self.behind = source.pace.awaiting = None
        return True

    def call(self, reader: Reader) -> None:
        """Let the owner work for its reader, in its own step."""
        self._budget.lend()
        if self.task is None:
            loop = self._source.loop
            self.context = self.context.copy()
            self.task = begin_task(self._steps(reader), self.context, loop)
            self._budget.begun.add(self.task)
            self.task.add_done_callback(reader.left, context=reader.context)
        elif self.going is not None and not self.going.done():
            self.going.set_result(None)

    def run(self, call: Callable[..., R], *args: Any) -> R:
        """Call something under the owner's identity and in its context, while it waits."""
        return run_as(self._source.loop, self.task, self.context, call, *args)

    def close(self, reader: Reader) -> None:
        """Close the iterator, because the reader reads no more. Call this outside of the owner's steps."""
        if self.task is None or self._source.loop.is_closed():
            return
        if self.going is not None:
            self.call(reader)
        elif self._source.suspended and self._source.pace.awaiting is None:
            self._cancel()

    # -- the task

    async def _lent(self) -> Reader | None:
        """Return the reader that the task begins with, where it has none of its own."""
        return None

    async def _steps(self, reader: Reader | None) -> None:
        try:
            if reader is None and (reader := await self._lent()) is None:
                return
            source, pace = self._source, self._source.pace
            while True:
                if pace.awaiting is not None:
                    if reader.closed:
                        self._cancel()
                    failure = await reader.read_on()
                    if failure is not None:
                        # A cancel, or what the future has failed with: a task raises it where it waits. The iterator goes
                        # on outside of the block that has caught it, else it would be the context of later errors.
                        reader.break_off()
                        try:
                            source.throw(failure)
                        finally:
                            del failure  # by its traceback it leads back to here
                    elif not pace.awaiting and source.suspended and (source.interrupted or not reader.demand):
                        source.resume()
                elif reader.closed:
                    if source.reading is None or not source.leave():
                        break
                else:
                    late = reader.work_here()
                    if source.pace.awaiting is None and not reader.closed:
                        await self._rest(reader, late)
        except GeneratorExit:
            self._source.abandon()
            raise
        self.report(reader)

    def report(self, reader: Reader) -> None:
        """Report what the iterator has raised and its reader does not raise."""
        failure, self._source.cleanup = self._source.cleanup, None
        if failure is not None:
            reader.context.copy().run(reader.host.cleanup_failed, failure)
        # An error that it raised before it was left, behind elements that nobody takes.
        late, self._source.error = self._source.error, None
        if late is not None:
            reader.context.copy().run(reader.host.dropped, late)

    async def _rest(self, reader: Reader, late: bool) -> None:
        """Wait until the reader calls. If the time is ``late``, a turn comes for the rest."""
        source = self._source
        self.going = source.loop.create_future()
        if late:
            reader.call_again()
        try:
            await self.going
        except asyncio.CancelledError as cancelled:
            self._interrupt(reader, cancelled)
        finally:
            behind, self.going, self.behind = self.behind, None, None
            if isinstance(behind, (asyncio.Future, SharedWait)):
                # As it came: now this task awaits it.
                behind._asyncio_future_blocking = True  # pyright: ignore[reportPrivateUsage] - as above

    def _interrupt(self, reader: Reader, cancelled: asyncio.CancelledError) -> None:
        """Pass a cancel on to the iterator."""
        if self._source.pace.awaiting is not None:
            # It comes to where the iterator waits, which its consumer has just left to the owner. It has been counted,
            # and is not counted again. The iterator may have taken it back: then there is none to take back before.
            task = cast("asyncio.Task[None]", self.task)
            task.cancel(*cancelled.args)
            task.uncancel()
        elif not reader.closed:
            self._source.interrupt(cancelled)

    def _cancel(self) -> None:
        """Cancel what the iterator waits for, once."""
        if not self._told and not self._source.closing:
            self._told = True
            cast("asyncio.Task[None]", self.task).cancel()

    def ended(self, reader: Reader, task: asyncio.Task[None]) -> None:
        """Forget the task, which has ended. Its reader fails with the failure of the task."""
        self._budget.begun.discard(task)
        if not reader.closed and not task.cancelled() and (error := task.exception()) is not None:
            reader.caught(error)


def _future_of(awaited: Any, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any] | SharedWait | None:
    """Return what is awaited if it is a future of the loop, or stands for one."""
    future: asyncio.Future[Any] | SharedWait = awaited
    return future if isinstance(awaited, (asyncio.Future, SharedWait)) and future.get_loop() is loop else None
