"""The exceptions that count as a failure, and the guarded call of a user's function.

The rule, for every engine: **whatever a user's code raises ends the flow, and is raised by the end that awaits it.** The
class does not matter. An exception of one's own that derives from BaseException, a GeneratorExit and what
``pytest.fail()`` raises are failures, as a ValueError is.

- ``SystemExit`` and ``KeyboardInterrupt`` arrive at the end too. There the task that awaits raises them, and so does
  ``asyncio.run``, behind all cleanup. The loop, thread or process where they were raised goes on: other flows live there.
- A ``CancelledError`` that a function raises is a failure as well, since no task of the library's is there to be cancelled
  by it. It arrives as `SourceCancelledError`, because a task that raises the original counts as cancelled.
- An exception is never tested for truth: its class may define ``__bool__`` or ``__len__``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import Final, ParamSpec, TypeVar

from attrs import define

from ..errors import SchedulerClosedError, SharedClosedError, SourceCancelledError, TaskCancelledError
from .beginning import beginning
from .notes import add_note, notes_of
from .redacting import redacted

P = ParamSpec("P")
R = TypeVar("R")

FAILURES: Final = BaseException
"""The exceptions that a user's function may raise; for an ``except`` clause around the call of one."""

PLACE_ENDED: Final = (TaskCancelledError, SchedulerClosedError, SharedClosedError)
"""The failures of a stream whose loop, thread, pool or block has ended. A cancelled stream does not report them."""


@define(eq=False)
class Failed:
    """The outcome of a function that has raised."""

    _error: BaseException | None

    @property
    def error(self) -> BaseException:
        """The exception, to be looked at."""
        assert self._error is not None
        return self._error

    def take(self) -> BaseException:
        """Return the exception, and let go of it: its traceback leads back to the frame that has this object."""
        error, self._error = self.error, None
        return error

    def drop(self) -> None:
        """Let go of the exception, which nobody needs any more."""
        self._error = None


def guarded(context: Context, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | Failed:
    """Call a user's function in a copy of a context. Return what it returns, or its failure.

    >>> from contextvars import copy_context
    >>> guarded(copy_context(), int, "12")
    12
    >>> guarded(copy_context(), int, "x")
    Failed(_error=ValueError("invalid literal for int() with base 10: 'x'"))
    """
    try:
        # A copy, because a context that has been entered can't be entered again.
        return context.copy().run(fn, *args, **kwargs)
    except FAILURES as error:
        return Failed(error)


def as_failure(error: BaseException) -> BaseException:
    """Return the error to signal for what a user's code raised: a CancelledError becomes a SourceCancelledError."""
    if not isinstance(error, asyncio.CancelledError):
        return error
    failure = SourceCancelledError("a function or source of the flow raised CancelledError")
    failure.__cause__ = error
    for note in notes_of(error):
        add_note(failure, note)
    return failure


def block_ended(what: str, error: BaseException | None) -> SharedClosedError:
    """Return the failure of those who still read what an ``async with`` block held open. Its cause has ended the block."""
    closed = SharedClosedError(f"the `async with` block of the {what} has ended")
    closed.__cause__ = error
    return closed


Ending = type[BaseException] | tuple[type[BaseException], ...]


def as_of_a_generator(error: BaseException, what: str = "generator", ending: Ending = StopIteration) -> BaseException:
    """Return a failure, or in the place of what would end an iteration the RuntimeError that a generator makes of it (PEP 479).

    >>> as_of_a_generator(StopIteration(), "len")
    RuntimeError('len raised StopIteration')
    >>> as_of_a_generator(OSError("gone"))
    OSError('gone')
    """
    if not isinstance(error, ending):
        return error
    failure = RuntimeError(f"{what} raised {type(error).__name__}")
    failure.__cause__ = error
    return failure


def is_cancelled() -> bool:
    """Return whether somebody has cancelled the running task."""
    return cancels() > 0


def cancels() -> int:
    """Return how many cancels of the running task there are that nobody has taken back.

    A frame that kept the task, to ask it again, would be part of a cycle: the task keeps its failure, whose traceback leads to the frame.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the garbage collector closes a coroutine whose loop has ended
        return 0
    return 0 if task is None else task.cancelling()


def cancelled_from_outside(error: asyncio.CancelledError, what: str) -> BaseException:
    """Return the failure of a cancel of the running task that the flow has not requested. Else return the code's own.

    ``what`` names what the task does. To be called in that task.
    """
    if not is_cancelled():
        return as_failure(error)
    failure = TaskCancelledError(f"{what} was cancelled by somebody else")
    failure.__cause__ = error
    return failure


def brief(error: BaseException) -> str:
    """Return the type and the text of an exception, whatever its own methods do; URLs in it without secrets.

    >>> brief(OSError("gone"))
    'OSError: gone'
    """
    try:
        text = redacted(str(error))
    except FAILURES:
        text = "(its text can't be read)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: object) -> str:
    """Return the repr of a value, of a long one the beginning; or its type where the repr fails.

    >>> shown("x")
    "'x'"
    """
    try:
        return beginning(value)
    except FAILURES:
        return f"<{type(value).__name__}>"


def close_all(closers: Iterable[Callable[[], object]]) -> list[BaseException]:
    """Call each of these, whatever those before have raised; return what they raise.

    By hand, since an ExitStack sets attributes of exceptions, which not every class allows.
    """
    failures: list[BaseException] = []
    for close in closers:
        try:
            close()
        except FAILURES as error:
            failures.append(error)
    return failures


def raise_all(failures: list[BaseException]) -> None:
    """Raise the failure, if there is one, or the group of several."""
    try:
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise BaseExceptionGroup(f"{len(failures)} cleanups failed", failures)
    finally:
        del failures  # a traceback leads back to here


def is_closed_with(error: BaseException, loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a GeneratorExit closes a coroutine that its loop left behind. Else user code raised it."""
    if not isinstance(error, GeneratorExit):
        return False
    try:
        return asyncio.get_running_loop() is not loop
    except RuntimeError:
        return True
