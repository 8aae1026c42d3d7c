"""The source of one element at a time to come."""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen

from ..._arbiter.timer import Timer as Clock
from ..._plan import Inlet, Pushed
from ...spec import Subscription


@frozen
class Timer(Pushed[int]):
    """Source of ``Flow.timer``."""

    delay: float

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Return a subscription whose first request starts the clock."""
        return Timing(inlet, self.delay)


@define(eq=False)
class Timing:
    """One run of the clock. The demand from its start still holds at its end."""

    inlet: Inlet[Any]
    delay: float
    _clock: Clock | None = field(init=False, default=None)

    def request(self, _: int) -> None:
        """Start the clock, the first time."""
        if self._clock is None:
            self._clock = Clock(self.inlet, self._ring)
            self._clock.start(self.delay)

    def cancel(self) -> None:
        """Stop the clock."""
        if self._clock is not None:
            self._clock.cancel()

    def _ring(self) -> None:
        self.cancel()  # the clock knows this object, which knows it
        self.inlet.on_chunk([0])
        self.inlet.on_complete()
