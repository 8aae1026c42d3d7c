"""The subscriber of an inbox, whose micro-batches are read one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ..._plan import Inlet, Pushed
from ...spec import Subscription, add_demand
from ._arrival import WrittenBatch

if TYPE_CHECKING:
    from ._inbox import Inbox


@define(eq=False)
class Reader:
    """The Subscription of the region that reads the micro-batches."""

    inlet: Inlet[Any]
    inbox: Inbox[Any]
    demand: int = field(init=False, default=0)
    _release: Callable[[], None] | None = field(init=False)
    _failure: BaseException | None = field(init=False, default=None)
    """The failure of the subscriber.

    The subscriber knows it, and most likely cancels. So it gets the failure only with the next request.
    """
    _end: tuple[BaseException | None] | None = field(init=False, default=None)
    """The failure that it gets at the end."""
    _over: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._release = self.inlet.hold()

    def request(self, n: int) -> None:
        """Let Spark hand over more."""
        self.inbox.post(self._requested, n)

    def _requested(self, n: int) -> None:
        self.demand = add_demand(self.demand, n)
        self.inbox.offer()
        self._tell()

    def cancel(self) -> None:
        """Leave. A batch that has not been acknowledged is not committed."""
        self._over = True
        self.inbox.post(self.inbox.left_by, self)

    def broken(self, error: BaseException) -> None:
        """Note the failure of the subscriber."""
        if self._failure is None:
            self._failure = error

    def end(self, error: Exception | None) -> None:
        """Signal the end, once."""
        if error is not None and (self._over or self._failure is not None):
            self.inlet.cleanup_failed(error)
        if self._end is None:
            self._end = (error if self._failure is None else self._failure,)
            self._tell()

    def _tell(self) -> None:
        if self._over or self._end is None or (self._failure is not None and not self.demand):
            return
        self._over = True
        (error,) = self._end
        if error is None:
            self.inlet.post(lambda _: self.inlet.on_complete(), None)
        else:
            self.inlet.post(self.inlet.on_error, error)

    def release(self) -> None:
        """Report that nothing is left to clean up."""
        release, self._release = self._release, None
        if release is not None:
            release()


@frozen(eq=False)
class WrittenBatches(Pushed[WrittenBatch[Any]]):
    """The source of ``Inbox.batches``."""

    inbox: Inbox[Any]

    def __str__(self) -> str:
        return "Inbox.batches"

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read."""
        reader = Reader(inlet, self.inbox)
        self.inbox.post(self.inbox.read_by, reader)
        return reader
