"""The combinator that subscribes again when its flow completes."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from attrs import Factory, define, field, frozen

from ...arbiter import Coordinator
from ...segments import FlowLike, Inlet, Placed, Pushed, Stage, Step, absorbed, check_absorbed
from ...spec import Subscription

T = TypeVar("T")

MOST_JOINED: Final = 16
"""Runs that a source is asked to give as one."""


@frozen
class Repeat(Pushed[T]):
    """Source of ``Flow.repeat``."""

    flow: FlowLike
    times: int | None
    # Known from the start, so that nobody has to go down a nest to find out.
    lowers: bool = field(
        init=False, repr=False, eq=False, default=Factory(lambda it: it.flow.source.operator.lowers, takes_self=True)
    )

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def absorb(self, stage: Placed[Stage[Any, Any]]) -> Repeat[Any] | None:
        """Have each run take a stage where its elements are made, if that can be: the runs are parts of the whole."""
        wider = absorbed(self.flow, stage) if self.lowers else None
        return None if wider is None else Repeat(wider, self.times)

    def check(self, before: tuple[Step, ...], stage: Placed[Stage[Any, Any]]) -> None:
        """Refuse what the flow would refuse."""
        if self.lowers:
            check_absorbed((self.flow,), before, stage)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first run."""
        repeating = Repetition(inlet, self.flow, self.times)
        repeating.on_source_complete()
        return repeating


@define(eq=False)
class Repetition(Coordinator):
    """Subscribes anew for each run; without a number of times, for ever."""

    flow: FlowLike
    left: int | None

    def on_source_complete(self) -> None:
        """Run once more, or complete."""
        if self.left == 0:
            self.complete()
            return
        if self.left is not None:
            self.left -= 1
        self.advance(self.flow)
