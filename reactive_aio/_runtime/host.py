"""The host of a subscription. It reports a failure after the end, and holds everything that has begun.

After the end of a flow its cleanup may fail: a ``finally``, an ``__aexit__``, an unregistering. One rule says who gets
the error, whatever boundary is between:

- After a failure of the flow it is a note on that, and goes to the hook.
- Else the region that reads the flow fails with it, if that still runs.
- Else the awaited end raises it. Without an awaited end it goes to the hook.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from attrs import define, field

from .._core.budgets import Budget
from .._core.guard import as_failure
from ..hooks import also, drop_error
from .lifetime import Lifetime

if TYPE_CHECKING:
    from .driver import RegionDriver
    from .passage import Passage


@define(eq=False)
class FlowHost:
    """One subscription to one flow: all its regions, and what they start."""

    lifetime: Lifetime
    outer: FlowHost | None = None
    """That of the flow whose combinator reads this one."""
    failed: bool = False
    """Whether a region of the flow has failed."""
    reader: RegionDriver | Passage | None = None
    """The region of the flow that reads other flows, by a combinator, as long as it is at work."""
    _failure: int | None = field(init=False, default=None)
    """The identity of the failure that has come to a region. It is not held, since its traceback may lead back to here."""

    def hear(self, error: BaseException) -> None:
        """Note a failure that has come to a region, which is to signal it."""
        self._failure = id(error)

    def knows(self, error: BaseException) -> bool:
        """Return whether a failure has come to this flow, or to one that reads it, by another way. If so, the awaited end looks after it.

        The identity may be that of an exception before it, which has been freed. Then the end raises another one, and reports this one.
        """
        host: FlowHost | None = self
        while host is not None:
            if host._failure == id(error):
                return self.lifetime.doubt(error)
            host = host.outer
        return False

    def cleanup_failed(self, error: BaseException) -> None:
        """Pass on the error of a cleanup after the end of the flow, from any thread, in the subscriber's context."""
        error = as_failure(error)
        if self.failed:
            self.dropped(error, again=True)
        else:
            self.fail_reader(error)

    def fail_reader(self, error: BaseException) -> None:
        """Fail the region that reads the flow, or the next in line."""
        host = self
        while (outer := host.outer) is not None and outer.reader is None and not outer.failed:
            host = outer
        if outer is None:
            host.lifetime.cleanup_failed(error)
        elif (reader := outer.reader) is None:
            outer.dropped(error, again=True)
        else:
            # The end must not be told that all has ended before this has been heard.
            release = self.lifetime.hold()

            def tell(error: BaseException) -> None:
                try:
                    reader.inner_cleanup_failed(error)
                finally:
                    release()

            reader.post(tell, error)

    def dropped(self, error: BaseException, *, again: bool = False) -> None:
        """Report to the hook a failure that is not raised, unless it has come by another way.

        With ``again`` it is reported though the same exception has been: each cleanup and each call may raise it. The error
        that the end raises, if any, gets a note of it.
        """
        if self.lifetime.has_reported(error) and not again:
            return
        if self.outer is not None and self.outer.knows(error):
            return
        self.lifetime.reported(error)
        drop_error(error)
        self.lifetime.note(also(error))


def begun(loop: asyncio.AbstractEventLoop) -> set[Any]:
    """Return what has begun on a loop and has not ended.

    A loop has weak references to its tasks only, and so has a flow to its iterator. So a stream that nobody else refers to
    would be collected in the middle. A run that has begun is held here, by its loop, until it has ended.
    """
    return Budget.of(loop).begun
