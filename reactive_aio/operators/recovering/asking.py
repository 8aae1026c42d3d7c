"""The common part of coordinators that ask a coroutine function whether to go on."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any

from attrs import define, field

from ..._arbiter import Coordinator
from ..._core.guard import FAILURES, Failed, cancelled_from_outside
from ..._core.notes import add_note
from ..._fusion import label
from ..._plan.nodes import FlowLike
from ...errors import TaskCancelledError


@define(eq=False)
class Asking(Coordinator):
    """Subscribes to its flow again if ``decide`` says so, in a task of its own: one at a time, in the subscriber's context."""

    flow: FlowLike
    decide: Callable[[Any, int], Awaitable[object]]
    _ends: int = field(init=False, default=0)
    """The number of subscriptions that have ended."""
    _task: asyncio.Task[bool | Failed] | None = field(init=False, default=None)
    """The task while it runs. After its end it would make a reference cycle with this object."""

    def ask(self, about: Any) -> None:
        """Ask whether to subscribe again."""
        self._ends += 1
        answer = self._answer(about, self._ends)
        self._task = self.inlet.start(answer)
        self._task.add_done_callback(partial(self._decided, about), context=self.inlet.context)

    @property
    def waits(self) -> bool:
        """Whether the function is at work."""
        return self._task is not None

    def cancel(self) -> None:
        """Cancel the task as well. It gets the time to clean up."""
        super().cancel()
        if self._task is not None:
            self._task.cancel()

    async def _answer(self, about: Any, ends: int) -> bool | Failed:
        # Its error is returned: a task that SystemExit or KeyboardInterrupt leaves would stop the loop.
        try:
            answer = self.decide(about, ends)
            if not isawaitable(answer):
                raise TypeError(f"an async def function is needed, but {label(self.decide)} returned {label(answer)}")
            return bool(await answer)
        except asyncio.CancelledError as error:
            return Failed(cancelled_from_outside(error, f"the task of {self.inlet.where}"))
        except FAILURES as error:
            return Failed(error)

    def _decided(self, about: Any, task: asyncio.Task[bool | Failed]) -> None:
        self._task = None
        # Cancelled is one that had not begun.
        unbegun = TaskCancelledError(f"the task of {self.inlet.where} was cancelled by somebody else")
        answer = Failed(unbegun) if task.cancelled() else task.result()
        try:
            if answer is True:
                # The next subscription may fail inside this call. Its traceback leads to this frame, and so would to each failure before.
                del about
                if not self.arbiter.cancelled:
                    self.advance(self.flow)
            elif answer is False:
                if not self.arbiter.cancelled:
                    self.refused(about)
            elif not self.arbiter.cancelled:
                self.failed(answer.take(), about)
            elif not isinstance(answer.error, TaskCancelledError):
                self.inlet.cleanup_failed(answer.take())
        finally:
            del answer

    def failed(self, failure: BaseException, about: Any) -> None:
        """Fail, because ``decide`` did."""
        add_note(failure, f"raised by the function of {self.inlet.where}")
        self.fail(failure)

    @abstractmethod
    def refused(self, about: Any) -> None:
        """Handle the answer that there is no further subscription."""
