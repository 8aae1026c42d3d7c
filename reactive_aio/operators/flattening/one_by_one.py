"""One flow at a time: what concat_map, switch_map and exhaust_map have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from attrs import define, field

from ..._arbiter import Gathering, Inner, SubscriptionArbiter
from ..._core.guard import Failed
from ..._plan.nodes import FlowLike
from .mapper import Mapper


@define(eq=False)
class OneByOne(Gathering):
    """Reads an outer flow, and of the flows that its elements are mapped to one at a time.

    The arbiter carries demand over from one of these to the next. Their elements are passed on as they come.
    """

    mapper: Mapper
    arbiter: SubscriptionArbiter = field(init=False, factory=SubscriptionArbiter)
    outer: Inner = field(init=False)
    current: Inner | None = field(init=False, default=None)
    """The flow that is read now."""

    def begin(self, flow: FlowLike, prefetch: int | None) -> None:
        """Subscribe to the outer flow."""
        self.outer = self.enter(prefetch)
        # In a callback, so that what is wanted by then has been asked for before the first element comes.
        self.subscribe(flow, self.outer, at_once=False)

    @abstractmethod
    def take(self, item: Any) -> None:
        """Handle an element of the outer flow."""

    def read(self, item: Any) -> None:
        """Begin with the flow of an element, asking it for what those before have left to ask."""
        flow = self.mapper(item)
        if isinstance(flow, Failed):
            self.fail(flow.take())
            return
        items = self.inlet.given(flow, self.arbiter.requested)
        if isinstance(items, Failed):
            self.current = self.enter(None, self.mapper.index, self.arbiter)
            self.current.on_error(items.take())
            return
        if items is not None:
            self.several = True
            if items:
                self.arbiter.produced(len(items))
                self.inlet.on_chunk(items)
            return
        inner = self.current = self.enter(None, self.mapper.index, self.arbiter)
        self.subscribe(flow, inner, at_once=True)

    def leave(self) -> None:
        """Cancel the current flow. Its later signals go to the hooks."""
        current, self.current = self.current, None
        if current is not None:
            self.remove(current)
            self.arbiter.leave()

    # -- the Subscription of the region

    def request(self, n: int) -> None:
        """Pass demand to the flow that is read now, or keep it for the next."""
        self.arbiter.request(n)

    def cancel(self) -> None:
        """Cancel the flow that is read now, and the outer one."""
        current, self.current = self.current, None
        if current is not None:
            current.cancel()
        self.arbiter.cancel()
        super().cancel()

    # -- the Owner of both

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep elements to map. Pass the others on."""
        if inner is self.outer:
            inner.kept.extend(items)
            self.go()
        else:
            self.arbiter.produced(len(items))
            self.inlet.on_chunk(items)

    def on_end(self, inner: Inner) -> None:
        """Note that the flow that was read has ended."""
        if inner is self.current:
            self.current = None
            self.arbiter.ended()
        super().on_end(inner)

    def step(self) -> bool:
        """Take the next element of the outer flow."""
        outer = self.outer
        if not outer.kept:
            return False
        (item,) = outer.take(1)
        self.take(item)
        if outer.prefetch is not None:
            self.feed(outer)
        if outer.ended and outer.spent and outer in self.inners:
            self.on_spent(outer)
        return True

    def on_spent(self, inner: Inner) -> None:
        """Fail, or complete when both have ended."""
        if inner.error is not None:
            self.mapper.locate(inner)
        super().on_spent(inner)
        if not self.inners and not self.over:
            self.complete()
