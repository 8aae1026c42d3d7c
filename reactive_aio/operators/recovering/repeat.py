"""The combinator that subscribes again when its flow completes."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from attrs import Factory, define, field, frozen

from ..._arbiter import Coordinator
from ..._fusion import Placed, Stage
from ..._plan import Capabilities, FlowLike, Inlet, Pushed, reach_of_sequence
from ...spec import Subscription

T = TypeVar("T")

MOST_JOINED: Final = 16
"""Runs that a source is asked to emit as one."""


@frozen
class Repeat(Pushed[T]):
    """Source of ``Flow.repeat``."""

    flow: FlowLike
    times: int | None
    # Known from the start, so that nobody has to go down a nest to find out.
    capabilities: Capabilities = field(
        init=False,
        repr=False,
        eq=False,
        default=Factory(lambda it: reach_of_sequence(it.inner, it.sequence, it.name), takes_self=True),
    )

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    @property
    def sequence(self) -> tuple[FlowLike, ...]:
        """The runs, if they are few."""
        return () if self.times is None or self.times > MOST_JOINED else (self.flow,) * self.times

    def lower(self, stage: Placed[Stage[Any, Any]]) -> Repeat[Any]:
        """Let each run take a stage where its elements are made: the runs are parts of the whole."""
        return Repeat(self.flow.__nodes__.then(stage), self.times)

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
