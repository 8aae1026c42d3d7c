"""The combinator that pairs each element with the latest one of another flow."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import UNBOUNDED, Subscription

T = TypeVar("T")

NOTHING: Final = object()


@frozen
class WithLatestFrom(Pushed[T]):
    """Source of ``Flow.with_latest_from``."""

    flow: FlowLike
    other: FlowLike

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow, and the one whose latest element is added."""
        return (self.flow, self.other)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the other flow, so that its latest element is there before the first of this one."""
        adding = AddingLatest(inlet)
        adding.source.request(UNBOUNDED)
        adding.subscribe(self.other, adding.source, at_once=True)
        if not adding.over:
            adding.subscribe(self.flow, adding.paired, at_once=True)
        return adding


@define(eq=False)
class AddingLatest(Gathering):
    """Keeps the latest element of one flow, and asks the other for elements when there is one."""

    source: Inner = field(init=False)
    paired: Inner = field(init=False)
    _latest: Any = field(init=False, default=NOTHING)
    _used: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.source, self.paired = self.enter(None), self.enter(None)

    def request(self, n: int) -> None:
        """Ask for elements, or do so when they can be paired."""
        if self._latest is NOTHING:
            self.want(n)
        else:
            self.paired.request(n)

    def cancel(self) -> None:
        """Cancel both, and let go of an element that has been in no pair."""
        super().cancel()
        self._replace(NOTHING)

    def step(self) -> bool:
        """Nothing is kept but the latest."""
        return False

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pair elements, or keep the latest."""
        if inner is self.paired:
            latest, self._used = self._latest, True
            self.inlet.on_chunk([(item, latest) for item in items])
            return
        discard(items[:-1])
        self._replace(items[-1])
        demand = self.take_demand()
        if demand:
            self.paired.request(demand)

    def _replace(self, latest: Any) -> None:
        before, self._latest = self._latest, latest
        used, self._used = self._used, False
        if before is not NOTHING and not used:
            discard([before])

    def on_end(self, inner: Inner) -> None:
        """End with the elements that are paired, or when none of them can be any more."""
        error = inner.take_error()
        if error is not None:
            self.fail(error)
        elif inner is self.paired or self._latest is NOTHING:
            self.complete()
        else:
            self.remove(inner)
