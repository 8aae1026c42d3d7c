"""A timed operator of somebody else's; docs/writing-a-timed-operator.md begins with it."""

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from reactive_aio import Flow
from reactive_aio.extend import Clocked, Clockwork, FlowLike, flow_of

T = TypeVar("T")


@frozen
class Heartbeat(Clocked[T]):
    flow: FlowLike
    seconds: float
    beat: T

    def machine(self, inlet: Any) -> Clockwork:
        return Beating(inlet, self.seconds, self.beat)


@define(eq=False)
class Beating(Clockwork):
    """Emits a beat whenever nothing has come for a while, though something is wanted."""

    seconds: float
    beat: Any
    asked: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        super().request(n)
        missing = self.demand - (self.asked - self.upstream.received) - len(self.upstream.kept)
        if missing > 0:  # what a beat has taken from the demand has been asked for already
            self.asked += missing
            self.upstream.request(missing)
        self.timer.start(self.seconds)

    def step(self) -> bool:
        if not self.demand or not self.upstream.kept:
            return False
        self.emit(self.upstream.take(self.demand))
        self.timer.start(self.seconds)
        if self.upstream.spent and not self.over:
            self.on_spent(self.upstream)
        return True

    def on_time(self) -> None:
        if self.demand:
            self.timer.start(self.seconds)
            self.emit([self.beat])


def heartbeat(seconds: float, beat: T) -> Callable[[Flow[T]], Flow[T]]:
    return lambda flow: flow_of(Heartbeat(flow, seconds, beat))
