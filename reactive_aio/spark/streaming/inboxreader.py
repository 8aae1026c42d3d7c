"""The subscriber of an inbox, whose micro-batches are read one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ...segments import Inlet, Pushed
from ...spec import Subscription, add_demand
from .arrival import WrittenBatch

if TYPE_CHECKING:
    from .inbox import Inbox


@define(eq=False)
class Reader:
    """The Subscription of the region that reads the micro-batches."""

    inlet: Inlet[Any]
    inbox: Inbox[Any]
    demand: int = field(init=False, default=0)
    _release: Callable[[], None] | None = field(init=False)
    _ended: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._release = self.inlet.hold()

    def request(self, n: int) -> None:
        """Let Spark hand over more."""
        self.inbox.post(self._requested, n)

    def _requested(self, n: int) -> None:
        self.demand = add_demand(self.demand, n)
        self.inbox.offer()

    def cancel(self) -> None:
        """Leave; what has not been acknowledged is not committed."""
        self._ended = True
        self.inbox.post(self.inbox.left_by, self)

    def end(self, error: Exception | None) -> None:
        """Signal the end, once."""
        if self._ended:
            return
        self._ended = True
        if error is None:
            self.inlet.post(lambda _: self.inlet.on_complete(), None)
        else:
            self.inlet.post(self.inlet.on_error, error)

    def release(self) -> None:
        """Say that nothing is left to clean up."""
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
