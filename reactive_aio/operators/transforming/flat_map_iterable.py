"""The stage that emits many elements for one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from operator import length_hint
from typing import Final, TypeVar

from attrs import define, field, frozen

from ..._core.budgets import Stride
from ..._fusion import Pace, Stage, Transform, sized
from ...spec import UNBOUNDED

T = TypeVar("T")
R = TypeVar("R")

LONGEST: Final = 64
"""The most results between two looks at the clock."""


@frozen
class FlatMapIterable(Stage[T, R]):
    """Stage of ``Flow.flat_map_iterable``."""

    fn: Callable[[T], Iterable[R]]

    def transform(self) -> Transform[T, R]:
        """Return a place for the iterable that is being read."""
        return Flattening(self.fn)


@define
class Flattening(Transform[T, R]):
    """The iterable that one subscription is reading. A pass may end in the middle of it."""

    fn: Callable[[T], Iterable[R]]
    inner: Iterator[R] | None = field(init=False, default=None)
    stride: Stride = field(init=False, factory=lambda: Stride(LONGEST))

    def apply(self, items: Iterator[T]) -> Iterator[R]:
        """Read all iterables to their ends."""
        return self.paced(items, Pace())

    def paced(self, items: Iterator[T], pace: Pace) -> Generator[R]:
        """Go on with the current iterable, then with those of the next elements, until the time is up."""
        yield from self._rest(pace)
        if self.inner is not None:
            return
        fn, stride, left = self.fn, self.stride, self.stride.begin()
        for item in items:
            self.inner = inner = iter(fn(item))
            for result in inner:
                yield result
                left -= 1
                if not left:
                    if stride.is_over(pace.deadline) and pace.resumes:
                        return
                    left = stride.length
            self.inner = None

    def _rest(self, pace: Pace) -> Generator[R]:
        """Go on with the current iterable, if there is one, until the time is up."""
        if self.inner is not None:
            stride, left = self.stride, self.stride.begin()
            for result in self.inner:
                yield result
                left -= 1
                if not left:
                    if stride.is_over(pace.deadline) and pace.resumes:
                        return
                    left = stride.length
            self.inner = None

    def demand(self, n: int) -> int:
        """Ask for one element at a time, since it may be enough."""
        return n if n == UNBOUNDED else min(n, 1)

    def finish(self) -> Iterable[R]:
        """Read the current iterable to its end, if an earlier stage needed no more in the middle of it."""
        return self._rest(Pace())

    def close(self) -> None:
        """Close the current iterable if it can be closed."""
        inner, self.inner = self.inner, None
        close = getattr(inner, "close", None)
        if close is not None:
            close()

    @property
    def pending(self) -> bool:
        """Return whether the iterable may have more elements. The end of a builtin collection is known."""
        inner = self.inner
        return inner is not None and not (sized(inner) and not length_hint(inner))
