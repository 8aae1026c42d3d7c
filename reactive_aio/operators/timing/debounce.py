"""The operator that waits for a flow to come to rest."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._core.containers import new_list
from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ..overflow.backlog import Backlog
from .clockwork import Clocked, Unslowed

T = TypeVar("T")


@frozen
class Debounce(Clocked[T]):
    """Source of ``Flow.debounce``."""

    flow: FlowLike
    seconds: float

    def machine(self, inlet: Inlet[Any]) -> Debouncing:
        """Wait for so long."""
        return Debouncing(inlet, Backlog(1, "drop_oldest"), self.seconds)


@define(eq=False)
class Latest(Unslowed):
    """Keeps the latest element until its time has come; those before it are dropped."""

    seconds: float
    _latest: list[Any] = field(init=False, factory=new_list)

    def cancel(self) -> None:
        """Drop the latest element as well."""
        latest, self._latest = self._latest, []
        discard(latest)
        super().cancel()

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep the latest element."""
        lost = [*self._latest, *items[:-1]]
        self._latest = items[-1:]
        self.wait()
        discard(lost)

    def wait(self) -> None:
        """Set the timer for the latest element, which has just come: here the quiet begins anew."""
        self.timer.start(self.seconds)

    def on_time(self) -> None:
        """Note that the time of the latest element has come."""
        latest, self._latest = self._latest, []
        self.ripe(latest)

    def on_end(self, inner: Inner) -> None:
        """The time of the latest element comes with the end, and never comes with a failure."""
        latest, self._latest = self._latest, []
        if inner.error is not None:
            discard(latest)
        elif latest:
            self.ripe(latest)
        if not self.over:
            super().on_end(inner)


@define(eq=False)
class Debouncing(Latest):
    """Emits the latest element when nothing else has come for a while."""
