"""The machine behind the operators that read one flow by the clock."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from attrs import define, field

from ..._arbiter import Gathering, Inner
from ..._arbiter.timer import Timer
from ..._fusion import label
from ..._plan import Gauge, Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import UNBOUNDED, Subscription
from ..overflow.backlog import Backlog

T = TypeVar("T")


class Clocked(Pushed[T]):
    """A flow that is read by the clock; a frozen attrs class."""

    __slots__ = ()

    flow: FlowLike

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    @property
    def arguments(self) -> str:
        """The arguments, without the flow."""
        fields: tuple[Any, ...] = getattr(type(self), "__attrs_attrs__", ())
        values = [getattr(self, each.name) for each in fields if each.name != "flow"]
        return ", ".join(f"{each:g}" if isinstance(each, float) else label(each) for each in values)

    @abstractmethod
    def machine(self, inlet: Inlet[Any]) -> Clockwork:
        """Make the machine for one subscription."""

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Subscribe to the flow."""
        machine = self.machine(inlet)
        if machine.gauge is not None:
            inlet.show(machine.gauge)
        machine.read(self.flow)
        return machine


@define(eq=False)
class Clockwork(Gathering):
    """Reads one flow, and has a timer that ends with it. The end of the flow is its own."""

    timer: Timer = field(init=False)
    upstream: Inner = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.timer = Timer(self.inlet, self.on_time)
        self.upstream = self.enter(None)

    @property
    def gauge(self) -> Gauge | None:
        """Return the elements that it keeps and drops, for snapshots."""
        return None

    def read(self, flow: FlowLike) -> None:
        """Subscribe to the flow."""
        self.subscribe(flow, self.upstream, at_once=True)

    def cancel(self) -> None:
        """Cancel the timer as well, and the subscriber of the flow, which holds this and is held by it."""
        self.timer.cancel()
        super().cancel()
        self.upstream.cancel()

    def on_time(self) -> None:
        """Act when the timer has expired."""

    def step(self) -> bool:
        """Emit what waits for demand: nothing does here."""
        return False

    def on_spent(self, inner: Inner) -> None:
        """End as the flow did."""
        super().on_spent(inner)
        if not self.over:
            self.complete()


@define(eq=False)
class Unslowed(Clockwork):
    """Requests everything, from the first demand on, and keeps elements without demand as its backlog does.

    An element whose time has come is emitted if it is wanted; else it is the backlog's. The end of the flow stays
    behind what waits there.
    """

    backlog: Backlog[Any]
    _asked: bool = field(init=False, default=False)

    @property
    def gauge(self) -> Gauge:
        """The backlog."""
        return self.backlog

    def request(self, n: int) -> None:
        """Request at the first demand, and emit waiting elements in an event."""
        super().request(n)
        if not self._asked:
            self._asked = True
            self.upstream.request(UNBOUNDED)

    def cancel(self) -> None:
        """Drop the waiting elements."""
        discard(self.backlog.take(UNBOUNDED))
        super().cancel()

    def ripe(self, items: list[Any]) -> None:
        """Emit an element whose time has come, or see what the backlog makes of it."""
        if self.demand and not self.backlog.buffered and not self.busy:
            self.emit(items)
            return
        discard(self.backlog.add(items))
        self.go()

    def step(self) -> bool:
        """Emit the waiting elements, and handle the end after them."""
        if not self.demand or not self.backlog.buffered:
            return False
        self.emit(self.backlog.take(self.demand))
        if self.upstream.ended and not self.backlog.buffered and not self.over:
            self.on_spent(self.upstream)
        return True

    def on_end(self, inner: Inner) -> None:
        """End after the waiting elements."""
        self.timer.cancel()
        if not self.backlog.buffered:
            self.on_spent(inner)
