"""The operator that ends its flow when another one signals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...errors import SourceConsumedError
from ...hooks import discard
from ...spec import Subscription
from .._fluent import is_flow

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T = TypeVar("T")


def ending(flow: Flow[Any], other: object) -> Flow[Any]:
    """Return the flow that ends another: the argument, or a flow that completes with an event or an awaitable."""
    if is_flow(other):
        return other
    if isinstance(other, asyncio.Event):
        event, over, waiting = other, flow.empty(), flow.from_awaitable(other.wait).ignore_elements()

        def when_set() -> Flow[Any]:
            return over if event.is_set() else waiting

        return flow.defer(when_set)
    if callable(other):
        return flow.from_awaitable(cast("Callable[[], Awaitable[object]]", other)).ignore_elements()
    if isawaitable(other):
        return flow.from_awaitable(Once(other)).ignore_elements()
    raise TypeError(
        f"take_until_other() takes a flow, an asyncio.Event, a function or an awaitable, not {type(other).__name__}"
    )


@define(eq=False)
class Once:
    """Passes an awaitable that can be awaited only once to the first subscription."""

    _awaitable: Awaitable[object] | None

    def __call__(self) -> Awaitable[object]:
        """Return the awaitable, the first time."""
        awaitable, self._awaitable = self._awaitable, None
        if awaitable is None:
            raise SourceConsumedError(
                "take_until_other() has an awaitable, which can end only one subscription. Write take_until_other(lambda: ...) to "
                "make an awaitable for each subscription"
            )
        return _outcome(awaitable) if isinstance(awaitable, asyncio.Future) else awaitable


async def _outcome(future: asyncio.Future[object]) -> object:
    """Wait for a task or future of other code, which outlives a cancel of this."""
    await asyncio.wait((future,))
    return future.result()


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
        """Begin with the flow that ends the other. If it has already done so, the other is not begun."""
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
        """End the whole, as either of the two has ended."""
        error = inner.take_error()
        if error is None:
            self.complete()
        else:
            self.fail(error)
