"""The combinator that makes one element of one of each flow."""

from __future__ import annotations

from collections.abc import MutableSequence
from sys import exception
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Appended, Gathering, Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import UNBOUNDED, Subscription
from .concat import first_of

T = TypeVar("T")


@frozen
class Zip(Pushed[T]):
    """Source of ``Flow.zip``."""

    flows: tuple[FlowLike, ...]
    ahead: int

    @property
    def arguments(self) -> str:
        """The first flows."""
        return first_of(self.flows)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with all flows."""
        zipping = Zipping(inlet, len(self.flows))
        zipping.start(self.flows, self.ahead)
        return zipping


@define(eq=False)
class Zipped(Inner):
    """The subscriber of one zipped flow. It stores elements itself, because most come one at a time, and each call counts."""

    due: bool = field(init=False, default=False)
    """Whether it handles elements later: never."""
    lacking: bool = field(init=False, default=True)
    """Whether it counts as one that has no kept element."""

    def on_chunk(self, items: list[Any]) -> None:
        """Keep elements, and make tuples where there is one of each flow."""
        zipping: Any = self._owner
        if zipping is None or self.ended:
            discard(items)
            return
        self.kept.extend(items)
        self.count(len(items))
        self.arrived()

    @property
    def elements(self) -> MutableSequence[Any]:
        """Those that are kept."""
        return self.kept

    def appending(self) -> tuple[Appended, int] | None:
        """Return the list of the kept elements."""
        return None if self._owner is None or self.ended else (self, UNBOUNDED)

    def arrived(self) -> None:
        """Make tuples, where there is one element of each flow."""
        zipping: Any = self._owner
        if self.lacking:
            self.lacking = False
            zipping.lacking -= 1
        if not zipping.lacking:
            zipping.arrived(len(self.kept))


@define(eq=False)
class Zipping(Gathering):
    """Keeps the arrived elements until there is one of each flow, and emits the requested tuples.

    Of flows that have ended and have nothing left the first in order decides how the whole ends, as in the builtin.
    """

    _kind: ClassVar[type[Inner]] = Zipped

    lacking: int
    """The number of flows without a kept element."""

    def arrived(self, count: int) -> None:
        """Make tuples, now that there is an element of each flow, and ``count`` of the last one."""
        if self.busy or exception() is not None:  # as `idle`, without a call
            self.go()
        elif count == 1:
            self.work(self._one)
        else:
            self.work(self._pair)

    def on_end(self, inner: Inner) -> None:
        """End if it has no more elements. Else the end is looked for when they have been taken."""
        if not inner.kept:
            self.go()

    def step(self) -> bool:
        """Emit the possible tuples. End if one of the flows has no more elements."""
        self._pair()
        return False

    def _one(self) -> None:
        """Emit one tuple, since there is no more of one of the flows. Where flows suspend it is so for each."""
        due = not self.demand
        if not due:
            elements: list[Any] = []
            lacking = 0
            each: Any
            for each in self.inners:
                kept = each.kept
                elements.append(kept.popleft())
                each.consumed = consumed = each.consumed + 1
                if not kept:
                    each.lacking = True
                    lacking += 1
                    due = due or each.ended
                due = due or consumed >= each.limit
            self.lacking = lacking
            self.emit([tuple(elements)])
        if due:
            self._look()

    def _pair(self) -> None:
        """Emit as many tuples as there may be."""
        if self.demand and self.inners and not self.lacking:
            n = min(self.demand, *[len(each.kept) for each in self.inners])
            taken = [each.take(n) for each in self.inners]
            each: Any
            self.lacking = 0
            for each in self.inners:
                each.lacking = not each.kept
                self.lacking += each.lacking
            self.emit(list(zip(*taken, strict=True)))
        self._look()

    def _look(self) -> None:
        """End if one of the flows has no more elements. Else request more where enough has been consumed."""
        for each in tuple(self.inners):
            if each.ended and not each.kept:
                self._end(each)
                break
            if each.consumed >= each.limit:
                each.replenish()

    def _end(self, inner: Inner) -> None:
        error = inner.take_error()
        if error is None:
            self.complete()
        else:
            self.fail(error)
