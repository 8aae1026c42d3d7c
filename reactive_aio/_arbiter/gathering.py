"""The gathering: reads several inner flows at a time, under the one demand of its region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from attrs import define, field

from .._core import budgets
from .._core.containers import new_dict
from .._core.guard import FAILURES
from .._plan.nodes import FlowLike
from ..hooks import drop_error
from ..spec import UNBOUNDED, add_demand
from .arbiter import SubscriptionArbiter
from .drain import Drain
from .inner import Inner


@define(eq=False)
class Gathering(Drain):
    """A table of inner flows; the Subscription of the region, and the drain that feeds it.

    A subclass says in `step` which elements of the inner flows are emitted. Any call may come from inside any other, so the
    state is complete before any other object is called. A flow that has ended stays in the table until its kept elements
    have been taken. Its failure waits behind these elements too. Then `on_spent` handles the flow.

    When the whole ends, by `complete`, `fail` or `cancel`, every flow that is still in the table is cancelled. Elements that
    are kept go to ``hooks.discard`` and a failure that has not been signalled to ``hooks.drop_error``.
    """

    _kind: ClassVar[type[Inner]] = Inner
    """The class of the inner flows."""

    demand: int = field(init=False, default=0)
    """The elements that the region has requested and not got."""
    inners: dict[Inner, None] = field(init=False, factory=new_dict)
    """The inner flows that have not been seen to their ends, in the order in which they were added."""
    over: bool = field(init=False, default=False)
    """Whether the whole has ended."""
    started: bool = field(init=False, default=False)
    """Whether all flows that were passed to `start` have been subscribed to."""
    several: bool = field(init=False, default=False)
    """Whether it has come to read several flows, for snapshots."""

    _unread: Iterator[tuple[FlowLike, Inner]] = field(init=False, factory=lambda: iter(()))
    """The flows that have not been subscribed to yet."""
    _hungry: dict[Inner, None] = field(init=False, factory=new_dict)
    """The flows to request more from in the next turn."""

    # -- the Subscription of the region

    def request(self, n: int) -> None:
        """Note the demand, and serve it in an event."""
        self.want(n)
        self.later()

    def serve(self, n: int) -> None:
        """Note the demand, and serve it at once. The region that asks is not in the middle of its turn."""
        self.want(n)
        self._noted = True
        if not self.busy and not self._due:
            self._go_on(None)

    def cancel(self) -> None:
        """Cancel all inner flows."""
        self.over = True
        inners, self.inners = self.inners, {}
        for inner in inners:
            inner.cancel()

    # -- for subclasses

    def want(self, n: int) -> None:
        """Note the demand."""
        self.demand = add_demand(self.demand, n)

    def take_demand(self) -> int:
        """Return the demand. The caller serves it from now on."""
        demand = self.demand
        self.demand = 0
        return demand

    def start(self, flows: Iterable[FlowLike], prefetch: int | None) -> None:
        """Subscribe to flows whose number is known. The key of each is its place."""
        self._unread = iter([(flow, self.enter(prefetch, place)) for place, flow in enumerate(flows)])
        self._start(None)

    def _start(self, _: None) -> None:
        until = self.budget.deadline()
        for flow, inner in self._unread:
            if self.over:
                return
            self.subscribe(flow, inner, at_once=True)
            if budgets.clock() >= until:
                self.next_part(self._start)
                break
        else:
            self.started = True
        self.go()

    def add(self, flow: FlowLike, prefetch: int | None, key: Any = None) -> Inner:
        """Subscribe to one more flow. Its elements may arrive before this returns."""
        inner = self.enter(prefetch, key)
        self.subscribe(flow, inner, at_once=True)
        return inner

    def enter(self, prefetch: int | None, key: Any = None, arbiter: SubscriptionArbiter | None = None) -> Inner:
        """Enter a flow in the table before it is subscribed to."""
        inner = self._kind(self, prefetch, key, arbiter)
        self.several = self.several or bool(self.inners)
        self.inners[inner] = None
        return inner

    def enter_given(self, items: list[Any], prefetch: int | None, key: Any) -> Inner:
        """Enter a flow that has ended, with its given elements, which wait for demand."""
        inner = self.enter(prefetch, key)
        inner.keep(items)
        inner.received, inner.ended = len(items), True
        return inner

    def subscribe(self, flow: FlowLike, inner: Inner, *, at_once: bool) -> None:
        """Subscribe to a flow that has been entered."""
        try:
            self.inlet.subscribe(flow, inner, at_once=at_once, ahead=inner.prefetch is not None)
        except FAILURES as error:
            inner.on_error(error)

    def remove(self, inner: Inner) -> None:
        """Cancel an inner flow, or remove one that has ended, and drop its kept elements."""
        self.inners.pop(inner, None)
        inner.cancel()

    def feed(self, inner: Inner) -> None:
        """Request more from a hungry inner flow, after the others have had their turn.

        One that is asked while it emits would go on at once, for as long as its turn lasts.
        """
        if inner.hungry:
            if not self._hungry:
                self.next_turn(self._feed)
            self._hungry[inner] = None

    def _feed(self, _: None) -> None:
        hungry, self._hungry = self._hungry, {}
        for inner in hungry:
            inner.replenish()

    def emit(self, items: list[Any]) -> None:
        """Pass elements to the region, at most `demand` of them."""
        if self.demand != UNBOUNDED:
            self.demand -= len(items)
        self.inlet.on_chunk(items)

    def complete(self) -> None:
        """End the whole well."""
        if not self.over:
            self.cancel()
            self.inlet.on_complete()

    def fail(self, error: BaseException) -> None:
        """End the whole by a failure."""
        if self.over:
            drop_error(error)
        else:
            for each in self.inners:
                if each.error is error:  # that of one flow, which two of these read
                    each.take_error()
            self.cancel()
            self.inlet.on_error(error)

    # -- the Owner of the inner flows

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep the elements that have arrived, and check what can be emitted."""
        inner.keep(items)
        self.go()

    def on_end(self, inner: Inner) -> None:
        """Handle the end of an inner flow if no element of it is left."""
        if not inner.kept:
            self.on_spent(inner)
        self.go()

    def on_spent(self, inner: Inner) -> None:
        """Handle an inner flow that has ended and is empty. Its failure fails the whole flow. Else forget it."""
        error, inner.error = inner.error, None
        self.inners.pop(inner, None)  # as `remove`, without a call
        inner.cancel()
        if error is not None:
            self.fail(error)
