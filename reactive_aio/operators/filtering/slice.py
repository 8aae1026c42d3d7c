"""The stage that lets the elements of a slice through."""

from __future__ import annotations

import builtins
from typing import Any, ClassVar, TypeVar

from attrs import define, frozen

from ..._fusion import Parts, Stage, Template, Transform, label
from ...spec import UNBOUNDED, bounded
from .take import Take

T = TypeVar("T")


@frozen
class Slice(Stage[T, T]):
    """Stage of ``flow[start:stop:step]``."""

    start: int
    stop: int | None
    step: int

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return the two counts."""
        # Reckoned, since `len` takes no range that is longer than the longest list.
        left = UNBOUNDED if self.stop is None else max(0, -((self.start - self.stop) // self.step))
        return Slicing(self.start, left, self.step)

    def in_parts(self) -> Parts | None:
        """No part emits more elements than there are before the end, if there is one."""
        return None if self.stop is None else Parts(Take(self.stop), self, at_end=False)

    def __str__(self) -> str:
        step = "" if self.step == 1 else f":{self.step}"
        return f"[{self.start or ''}:{'' if self.stop is None else self.stop}{step}]"


@define
class Slicing(Transform[T, T]):
    """The number of elements that one subscription drops before the next, and that it still lets through."""

    gap: int
    left: int
    step: int

    template: ClassVar[Template | None] = Template(
        """
        if $self.gap:
            $self.gap -= 1
        else:
            $self.gap = $step - 1
            $self.left -= 1
            $rest
            if not $self.left:
                $stop
        """,
        plain=True,
    )

    def demand(self, n: int) -> int:
        """Request the wanted elements and those before and between them, never beyond the last."""
        wanted = min(n, self.left)
        return bounded(self.gap + (wanted - 1) * self.step + 1) if wanted else 0

    @property
    def done(self) -> bool:
        """Return whether all have been let through."""
        return not self.left


def sliced(at: builtins.slice[object, object, object]) -> Slice[Any]:
    """Check what stands between the brackets."""
    if not isinstance(at, builtins.slice):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
        raise TypeError(
            f"flow[{label(at)}]: a flow takes slices, such as flow[1:3]. For one element, await flow.element_at(...)"
        )
    hint = " (to count from the end, use take_last() or skip_last())"
    start = _bound("start", at.start, 0, hint)
    stop = _bound("stop", at.stop, 0, hint)
    step = _bound("step", at.step, 1, "")
    return Slice(start or 0, stop, step or 1)


def _bound(name: str, value: object, least: int, hint: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"flow[...]: {name}={label(value)}: {name} is a whole number, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"flow[...]: {name}={value}: {name} must be at least {least}{hint}")
    return value
