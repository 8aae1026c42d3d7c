"""The operator that uses one stream several times inside one subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from attrs import Factory, define, field, frozen

from ..._arbiter import Coordinator
from ..._arbiter.timer import Timer
from ..._core.guard import as_of_a_generator
from ..._fusion import Placed, label
from ..._fusion.origin import Origin
from ..._plan import LOOP, Inlet, Nodes, Pushed, Step, SubscribeOn
from ..._plan.nodes import FlowLike
from ...errors import StalledError
from ...schedulers.current import Home
from ...spec import Subscription
from .._fluent import is_flow
from .inside import Inside
from .reader import Distance, Reader

T = TypeVar("T")

TURNS: Final = 8
"""Turns of the event loop that are more than it takes until the next of several uses begins."""

MOST: Final = 1000
"""Flows inside of flows that are looked at for uses."""


@frozen
class Multicast(Pushed[T]):
    """Source of ``Flow.multicast``."""

    flow: FlowLike
    fn: Callable[[Any], FlowLike]
    lag: int
    stall_after: float | None
    origin: Origin = field(repr=False)

    @property
    def arguments(self) -> str:
        """The function, and how far its uses may be apart."""
        return f"{label(self.fn)}, lag={self.lag}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Let the function make its flow, in the subscriber's context, and begin with that and with this flow."""
        inside = Inside(inlet=inlet, context=inlet.context, lag=self.lag)
        use: Use[Any] = Use(inside, label(self.fn))
        made = inlet.context.copy().run(self._made, self._given(use, inlet))
        multicasting = Multicasting(inlet, inside, uses_of(use, made), self.stall_after)
        multicasting.begin(self.flow, made)
        return multicasting

    def _given(self, use: Use[Any], inlet: Inlet[Any]) -> Nodes:
        # All uses are read on one loop, from wherever, so that those that begin together are there before the first element.
        at_home: Step = Placed(SubscribeOn(Home(inlet.loop)), self.origin)
        return Nodes(Placed(use, self.origin), (at_home,), LOOP)

    def _made(self, given: Nodes) -> FlowLike:
        from ..._flow.flow import Flow

        try:
            flow = self.fn(Flow(given))
        except StopIteration as stop:
            raise as_of_a_generator(stop, "the function of multicast()") from stop
        if not is_flow(flow):
            raise TypeError(f"multicast() takes a function that returns a flow, not {type(flow).__name__}")
        return flow


@frozen(eq=False)
class Use(Pushed[T]):
    """Source of the flow that the function of ``Flow.multicast`` gets."""

    inside: Inside
    function: str

    def __str__(self) -> str:
        return f"the flow given to {self.function} by multicast"

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin one more use."""
        reader = self.inside.join(inlet)
        inlet.show(Distance(self.inside.log, reader.cursor, self.inside.lag))
        return reader


def uses_of(use: Use[Any], flow: FlowLike) -> tuple[str, ...]:
    """Return the uses that a flow is seen to make, in its order, each by what it does to the elements first.

    Return none where the flow is too large.
    """
    found: list[str] = []
    todo = [flow.__nodes__]
    for _ in range(MOST):
        if not todo:
            return tuple(found)
        nodes = todo.pop()
        if nodes.source.operator is use:
            found.append(str(nodes.steps[1].operator) if nodes.steps[1:] else "the flow as it is")
        todo += [inner.__nodes__ for inner in reversed(nodes.source.operator.inner)]
    return ()


@define(eq=False)
class Multicasting(Coordinator):
    """Reads the flow that the function has made, whose end is that of the whole."""

    inside: Inside
    seen: tuple[str, ...]
    """The uses that are seen in that flow. There may be others, as functions make flows too."""
    stall_after: float | None
    _turns: int = field(init=False, default=TURNS)
    _uses: int = field(init=False, default=0)
    _timer: Timer = field(init=False, default=Factory(lambda self: Timer(self.inlet, self._look), takes_self=True))
    """Runs while one use holds the others up."""
    _places: object = field(init=False, default=None)
    """The places of all uses when it was set."""

    def begin(self, flow: FlowLike, made: FlowLike) -> None:
        """Subscribe to both. No element is requested before the uses that begin together have begun."""
        if self.stall_after is not None:
            self.inside.held_up = self._held_up
        self.inlet.subscribe(flow, self.inside, at_once=False)
        self.advance(made)
        self._start(None)

    def _start(self, _: None) -> None:
        """Request elements when all known uses are there, or no more of them come turn after turn."""
        inside, uses = self.inside, self.inside.joined
        if inside.over:
            return
        if (self.seen and uses >= len(self.seen)) or not self._turns:
            inside.start()
            return
        self._turns = TURNS if uses > self._uses else self._turns - 1
        self._uses = uses
        self.next_turn(self._start)

    # -- the end

    def cancel(self) -> None:
        """Cancel both flows."""
        super().cancel()
        self._close()

    def on_source_complete(self) -> None:
        """Complete with the flow that the function has made, whether or not this one has ended."""
        self._close()
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Fail with it."""
        self._close()
        self.fail(error)

    def _close(self) -> None:
        self._timer.cancel()
        self.inside.close()

    # -- a use that waits for another one, which does not go on

    def _held_up(self) -> None:
        self.inlet.post(self._watch, None)

    def _watch(self, _: None) -> None:
        now = self._now()
        if self.stall_after is not None and not (self._timer.running and self._places == now):
            self._places = now
            self._timer.start(self.stall_after)

    def _now(self) -> object:
        return [(each.number, each.cursor.at, each.cursor.goal) for each in self.inside.readers]

    def _look(self) -> None:
        slowest = self.inside.slowest
        if not slowest:
            return
        if not self.arbiter.requested or any(map(_asks, slowest)):
            self._watch(None)
            return
        error = self._stalled(slowest)
        self.leave()
        self._close()
        self.fail(error)

    def _stalled(self, slow: list[Reader]) -> StalledError:
        waiting = list(filter(_asks, self.inside.readers))
        return StalledError(
            f"nothing has moved for {self.stall_after} s: {self._named(waiting)} waits for elements, but {self._named(slow)} requests "
            f"none. It is {self.inside.lag} elements behind, which is the lag of {self.inlet.where}. Raise lag, or put "
            "on_backpressure_buffer(), _drop() or _latest() behind the use that requests none"
        )

    def _named(self, readers: list[Reader]) -> str:
        known = self.seen if self.inside.joined == len(self.seen) else ()
        numbers = [each.number for each in readers]
        return " and ".join(f"use {n}" + (f" ({known[n - 1]})" if known else "") for n in numbers[:3])


def _asks(reader: Reader) -> bool:
    return reader.cursor.goal > reader.cursor.at
