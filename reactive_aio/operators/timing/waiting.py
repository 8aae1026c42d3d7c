"""The common part of coordinators that wait for time."""

from __future__ import annotations

from abc import abstractmethod

from attrs import define, field

from ..._arbiter import Coordinator
from ..._arbiter.timer import Timer


@define(eq=False)
class Waiting(Coordinator):
    """A coordinator with a timer, which ends with it."""

    timer: Timer = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.timer = Timer(self.inlet, self.on_time)

    @property
    def waits(self) -> bool:
        """Whether the timer is set."""
        return self.timer.running

    @abstractmethod
    def on_time(self) -> None:
        """Act when the timer has expired."""

    def cancel(self) -> None:
        """Cancel the timer as well."""
        self.timer.cancel()
        super().cancel()

    def complete(self) -> None:
        """Complete the whole, without the timer."""
        self.timer.cancel()
        super().complete()

    def fail(self, error: BaseException) -> None:
        """Fail the whole, without the timer."""
        self.timer.cancel()
        super().fail(error)
