"""The operator that has a function read one run of a flow several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import define, field, frozen

from ..._fusion import label
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import UNBOUNDED, Subscription
from .._fluent import check_flow
from ..sourcing.defer import Deferred
from .shared import Sharing, shared_by

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T = TypeVar("T")

NOBODY_KNOWS: Final = UNBOUNDED
"""How many subscribers there will be."""

TURNS: Final = 8
"""Turns of the event loop in which a combinator that has more to subscribe to does so."""


@frozen
class Multicast(Pushed[T]):
    """Source of ``Flow.multicast``."""

    flow: Flow[Any]
    fn: Callable[[Flow[Any]], FlowLike]
    lag: int

    @property
    def arguments(self) -> str:
        """The function."""
        return label(self.fn)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Share the flow, have the function make another of it, in the subscriber's context, and begin that."""
        sharing = Sharing(self.flow, self.lag, 0, None, NOBODY_KNOWS, "never", None)
        flow = inlet.context.copy().run(self.fn, shared_by(sharing, self.flow))
        check_flow("multicast", flow)
        deferred = Deferred(inlet)
        deferred.advance(flow)
        Gate(sharing, inlet).wait()
        inlet.after_end(sharing.forget)
        return deferred


@define(eq=False)
class Gate:
    """Has the run ask for nothing before all have come who read it from the beginning.

    A combinator that reads several flows subscribes to them in one turn, or where its time is up in several.
    """

    sharing: Sharing
    inlet: Inlet[Any]
    _seen: int = field(init=False, default=0)
    _turns: int = field(init=False, default=0)

    def wait(self) -> None:
        """Look again in the next turn, until for some turns nobody has come."""
        run = self.sharing.current
        readers = 0 if run is None else run.log.readers
        self._turns = self._turns + 1 if readers == self._seen else 0
        self._seen = readers
        if self._turns < TURNS:
            self.inlet.loop.call_soon(self.wait, context=self.inlet.context)
        else:
            self.sharing.wait_no_more()
