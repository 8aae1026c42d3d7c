"""Hooks for errors and elements that reach no subscriber.

There are two hooks. Both are bound to the current context, so each service, task or test can set its own. A flow uses
the hooks of the context in which it was subscribed to.

- ``on_error_dropped(error)``: an exception that can no longer reach a subscriber. By default it goes to
  the exception handler of the running event loop. A `TaskCancelledError`, a `SchedulerClosedError` and
  a `SharedClosedError` do not: a loop, a thread, a pool or a block has ended then. asyncio does not report tasks that
  end with their loop either.
- ``on_discard(item)``: an element that was taken from a source and will not be delivered. By default
  nothing happens. It does not get elements that an operator or an end drops on purpose, as `filter` and `last` do. It
  does not get values that functions have made of elements, as for `reduce` or `collect`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import Context, ContextVar
from functools import partial

from ._core.guard import FAILURES, PLACE_ENDED, as_failure, brief
from ._core.notes import add_note

_logger = logging.getLogger("reactive_aio")


def _report(error: BaseException) -> None:
    if isinstance(error, PLACE_ENDED):
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        _logger.error("an error of a stream was dropped", exc_info=error)
    else:
        loop.call_exception_handler({"message": "an error of a stream was dropped", "exception": error})


def _forget(item: object) -> None:
    """Ignore a discarded element."""


_on_error_dropped: ContextVar[Callable[[BaseException], object]] = ContextVar("on_error_dropped", default=_report)
_on_discard: ContextVar[Callable[[object], object]] = ContextVar("on_discard", default=_forget)


def using(
    *,
    on_error_dropped: Callable[[BaseException], object] | None = None,
    on_discard: Callable[[object], object] | None = None,
) -> AbstractContextManager[None]:
    """Set hooks for the flows that are subscribed to in this context.

    >>> dropped = []
    >>> with using(on_discard=dropped.append):
    ...     discard([1, 2])
    >>> dropped
    [1, 2]
    """
    return _Using(on_error_dropped, on_discard)


class _Using(AbstractContextManager[None]):
    """Sets hooks for a block. A generator would set the traceback of an exception, which some exceptions forbid."""

    def __init__(
        self, on_error_dropped: Callable[[BaseException], object] | None, on_discard: Callable[[object], object] | None
    ) -> None:
        self._on_error_dropped = on_error_dropped
        self._on_discard = on_discard
        self._resets: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        if self._on_error_dropped is not None:
            self._resets.append(partial(_on_error_dropped.reset, _on_error_dropped.set(self._on_error_dropped)))
        if self._on_discard is not None:
            self._resets.append(partial(_on_discard.reset, _on_discard.set(self._on_discard)))

    def __exit__(self, *exc_info: object) -> None:
        while self._resets:
            self._resets.pop()()


def also_discard(context: Context, hook: Callable[[object], object]) -> Context:
    """Return a copy of a context that passes discarded elements to ``hook``, and then to the hook that was set."""
    copy = context.copy()
    outer = copy.run(_on_discard.get)

    def both(item: object) -> None:
        try:
            hook(item)
        finally:
            outer(item)

    copy.run(_on_discard.set, both)
    return copy


def drop_error(error: BaseException) -> None:
    """Report to the hook an error that reaches nobody else. If the hook fails, the default is called."""
    error = as_failure(error)
    try:
        _on_error_dropped.get()(error)
    except FAILURES as failure:
        _report(failure)
        _report(error)


def discard(items: Iterable[object]) -> None:
    """Report to the hook elements that are not delivered. An exception of the hook is reported, not raised."""
    hook = _on_discard.get()
    if hook is _forget:
        return
    for item in items:
        try:
            hook(item)
        except FAILURES as failure:
            drop_error(failure)


def also_failed(first: BaseException, second: BaseException) -> None:
    """Note on a failure that there is another one, which is not raised, and report that one to the hook."""
    if second is not first:
        add_note(first, also(second))
        drop_error(second)


def also(error: BaseException) -> str:
    """Return the note on a failure that there is another one."""
    return f"a further failure: {brief(error)}"
