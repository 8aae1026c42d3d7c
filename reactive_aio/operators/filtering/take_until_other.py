"""The operator that ends its flow when another one signals."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import Subscription

T = TypeVar("T")


@frozen
class TakeUntilOther(Pushed[T]):
    """Source of ``Flow.take_until_other``."""

    flow: FlowLike
    other: FlowLike

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow, and the one that ends it."""
        return (self.flow, self.other)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow that ends the other: where it has done so already, the other is not begun."""
        taking = TakingUntil(inlet)
        taking.bell.request(1)
        taking.subscribe(self.other, taking.bell, at_once=True)
        if not taking.over:
            taking.subscribe(self.flow, taking.taken, at_once=True)
        return taking


@define(eq=False)
class TakingUntil(Gathering):
    """Passes one flow on until another signals."""

    bell: Inner = field(init=False)
    taken: Inner = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bell, self.taken = self.enter(None), self.enter(None)

    def request(self, n: int) -> None:
        """Ask the flow that is passed on."""
        self.taken.request(n)

    def step(self) -> bool:
        """Nothing is kept."""
        return False

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass elements on, or end at one of the other flow."""
        if inner is self.taken:
            self.inlet.on_chunk(items)
        else:
            discard(items)
            self.complete()

    def on_end(self, inner: Inner) -> None:
        """End the whole, whichever it is that ends."""
        error = inner.take_error()
        if error is None:
            self.complete()
        else:
            self.fail(error)
