"""The source of ticks."""

from __future__ import annotations

import asyncio
from typing import Any

from attrs import define, field, frozen

from ..._plan import Inlet, Pushed
from ...errors import BackpressureOverflowError
from ...spec import Subscription, add_demand, subtract_demand


@frozen
class Interval(Pushed[int]):
    """Source of ``Flow.interval``."""

    period: float
    delay: float

    @property
    def arguments(self) -> str:
        """The period, and the delay where it is another."""
        return f"{self.period:g}" if self.delay == self.period else f"{self.period:g}, delay={self.delay:g}"

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Return a subscription whose first request starts the clock."""
        return Ticking(inlet, self.period, self.delay)


@define(eq=False)
class Ticking:
    """The ticks of one subscription, by the clock of the region's loop."""

    inlet: Inlet[Any]
    period: float
    delay: float
    _demand: int = field(init=False, default=0)
    _ticks: int = field(init=False, default=0)
    _start: float = field(init=False, default=0.0)
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)
    _over: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        """Note the demand. The first request starts the clock."""
        if self._over:
            return
        self._demand = add_demand(self._demand, n)
        if self._timer is None:
            self._start = self.inlet.loop.time() + self.delay
            self._wind()

    def cancel(self) -> None:
        """Stop the clock."""
        self._over = True
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _wind(self) -> None:
        # By multiplication, so that what a tick comes late does not add up.
        when = self._start + self._ticks * self.period
        self._timer = self.inlet.loop.call_at(when, self._tick, context=self.inlet.context)

    def _tick(self) -> None:
        if self._over:
            return
        tick = self._ticks
        if not self._demand:
            self.cancel()
            self.inlet.on_error(
                BackpressureOverflowError(
                    f"tick {tick} of an interval came without demand. Put on_backpressure_drop(), "
                    f"on_backpressure_latest() or on_backpressure_buffer(size) behind {self.inlet.where}"
                )
            )
            return
        self._demand = subtract_demand(self._demand, 1)
        self._ticks += 1
        self._wind()
        self.inlet.on_chunk([tick])
