"""The operator that looks at a flow once in a while."""

from __future__ import annotations

from math import floor
from sys import float_info
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from ..overflow.backlog import Backlog
from .clockwork import Clocked
from .debounce import Latest

T = TypeVar("T")


@frozen
class Sample(Clocked[T]):
    """Source of ``Flow.sample``."""

    flow: FlowLike
    seconds: float

    def machine(self, inlet: Inlet[Any]) -> Sampling:
        """Look so often."""
        return Sampling(inlet, Backlog(1, "drop_oldest"), self.seconds)


@define(eq=False)
class Sampling(Latest):
    """Emits the latest element at the end of each period, counted from the first demand, in which one has come."""

    _begun: float = field(init=False, default=-1.0)
    """When the first demand came."""

    def request(self, n: int) -> None:
        """Count from the first demand."""
        if not self._asked:
            self._begun = self.timer.now
        super().request(n)

    def wait(self) -> None:
        """Set the timer to the end of the period, so that it is never set where nothing has come."""
        if not self.timer.running:
            now = self.timer.now
            periods = floor(min((now - self._begun) / self.seconds, float_info.max)) + 1  # the quotient may be infinite
            if self._begun + periods * self.seconds <= now:
                periods += 1  # at the end of a period the quotient of two floats may be less than the number of periods
            self.timer.start_at(self._begun + periods * self.seconds)
