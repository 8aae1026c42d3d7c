"""Flows of given elements that a combinator reads. They signal without a region of their own.

Most flows that a function makes are such: ``flat_map(lambda x: Flow.of(x))``. A list runs nobody's code, opens nothing and leaves
nothing to clean up. So no driver is made for it. Its elements and its end come as they would from a region on the same event loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import length_hint
from typing import Any, Final

from attrs import define, field

from .._core import budgets
from .._core.guard import FAILURES, as_failure
from .._core.missing import NOTHING
from .._plan import AtHand, Receiver
from ..spec import add_demand, subtract_demand
from .driver import RegionDriver
from .inputs import LONGEST_CHUNK
from .passage import Passage

NO_ITEMS: Final[Iterator[Any]] = iter(())
"""An iterator that has ended, and so may have many users."""


@define(eq=False)
class PassedOn:
    """The figures, for snapshots, of given elements that were passed on without a subscription."""

    delivered: int = 0
    """The number of elements."""


@define(eq=False)
class Given(AtHand):
    """The subscription to a flow of given elements, confined to the event loop of the region that reads it."""

    _ends: tuple[RegionDriver | Passage, Receiver[Any]] | None
    """The region that reads the flow, and the receiver, until it has ended: they refer to what they read."""
    _items: Iterator[Any]
    """Knows its length."""
    demand: int = field(init=False, default=0)
    """The number of elements that have been requested and not signalled."""
    delivered: int = field(init=False, default=0)
    """The number of elements that have been signalled."""
    spent: bool = field(init=False, default=False)
    _busy: bool = field(init=False, default=True)
    """Whether it works, or is scheduled."""
    _broken: BaseException | None = field(init=False, default=None)
    """The failure of a stage, where there are some. It follows the latest chunk."""

    def begin(self, receiver: Receiver[Any], *, at_once: bool) -> None:
        """Pass the receiver its subscription. Signal what can be signalled: now, with ``at_once``, or in an event."""
        receiver.on_subscribe(self)
        if at_once:
            self._signal(None)
        else:
            self._later()

    def request(self, n: int) -> None:
        """Note the demand, and serve it in an event."""
        self.demand = add_demand(self.demand, n)
        if not self._busy:
            self._busy = True
            self._later()

    def cancel(self) -> None:
        """Signal nothing any more."""
        self._let_go()

    def pull(self) -> Any:
        """Return the next element, or NOTHING where the flow is empty."""
        item = next(self._items, NOTHING)
        if item is not NOTHING:
            self.delivered += 1
            if not length_hint(self._items):
                self.spent = True
                self._ends, self._items = None, NO_ITEMS  # as `_let_go`, without a call
        return item

    def _let_go(self) -> None:
        """Refer to nothing any more. Snapshots still read the figures, until another flow is read."""
        self._ends = None
        self._items = NO_ITEMS

    def _later(self) -> None:
        if self._ends is not None:
            self._ends[0].post(self._signal, None)

    def _signal(self, _: None) -> None:
        until = 0.0
        while self.demand and self._ends is not None and length_hint(self._items):
            reader, receiver = self._ends
            until = until or reader.budget.moment()
            chunk = self._chunk(until)
            if chunk:
                self.demand = subtract_demand(self.demand, len(chunk))
                self.delivered += len(chunk)
                receiver.on_chunk(chunk)
            if self._broken is not None:
                self._break(reader, receiver)
                return
            if length_hint(self._items) and budgets.clock() >= until:
                self._later()
                return
        self._busy = False
        if self._ends is not None and not length_hint(self._items):
            self._end(*self._ends, None)

    def _chunk(self, until: float) -> list[Any]:
        """Return elements to signal, for which there is demand."""
        return list(islice(self._items, min(self.demand, LONGEST_CHUNK)))

    def _break(self, reader: RegionDriver | Passage, receiver: Receiver[Any]) -> None:
        """Fail with the failure of a stage."""
        error, self._broken = self._broken, None
        try:
            assert error is not None
            if self._ends is None:
                reader.host.dropped(error)
            else:
                self._end(reader, receiver, error)
        finally:
            del error  # a traceback leads back to here

    def _end(self, reader: RegionDriver | Passage, receiver: Receiver[Any], error: BaseException | None) -> None:
        """Signal the end. If that raises, the region that reads fails: its receiver has the end of this flow already."""
        self._let_go()
        try:
            if error is None:
                receiver.on_complete()
            else:
                receiver.on_error(error)
        except FAILURES as another:
            reader.post(reader.inner_cleanup_failed, as_failure(another))
        finally:
            del error  # as above
