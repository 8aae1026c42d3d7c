"""The source that makes each element, and the state for the next one, of the state before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from attrs import frozen

from ..._fusion import label
from ..._plan import Pulled

T = TypeVar("T")


@frozen
class Generate(Pulled[T]):
    """Source of ``Flow.generate``."""

    step: Callable[[Any], tuple[T, Any] | None]
    initial: Any

    def iterate(self) -> Iterator[T]:
        """Go on from state to state."""
        state, step = self.initial, self.step
        while (made := step(state)) is not None:
            try:
                item, state = made
            except (TypeError, ValueError):
                shown = f"{label(step)} returned {label(made)} for the state {label(state)}"
                raise TypeError(f"{shown}, not (item, next_state) or None") from None
            yield item
