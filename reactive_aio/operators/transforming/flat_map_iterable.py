"""The stage that gives many elements for one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from operator import length_hint
from typing import Final, TypeVar

from attrs import define, field, frozen

from ..._core import budgets
from ..._fusion import Pace, Stage, Transform, sized
from ...spec import UNBOUNDED

T = TypeVar("T")
R = TypeVar("R")

SLICE: Final = 64
"""Elements of one iterable between two looks at the clock."""


@frozen
class FlatMapIterable(Stage[T, R]):
    """Stage of ``Flow.flat_map_iterable``."""

    fn: Callable[[T], Iterable[R]]

    def transform(self) -> Transform[T, R]:
        """Give a place for the iterable that is being read."""
        return Flattening(self.fn)


@define
class Flattening(Transform[T, R]):
    """The iterable that one subscription is reading; a pass may end in the middle of it."""

    fn: Callable[[T], Iterable[R]]
    inner: Iterator[R] | None = field(init=False, default=None)

    def apply(self, items: Iterator[T]) -> Iterator[R]:
        """Read all iterables to their ends."""
        return self.paced(items, Pace())

    def paced(self, items: Iterator[T], pace: Pace) -> Generator[R]:
        """Go on with the iterable at hand, then with those of the elements that follow, until the time is up."""
        while True:
            if self.inner is None:
                for item in items:
                    self.inner = iter(self.fn(item))
                    break
                else:
                    return
            given = 0
            for given, result in enumerate(islice(self.inner, SLICE), 1):  # noqa: B007 - told from a full slice below
                yield result
            if given < SLICE:
                self.inner = None
            elif pace.resumes and budgets.clock() >= pace.deadline:
                return

    def demand(self, n: int) -> int:
        """Ask for one element at a time, since it may be enough."""
        return n if n == UNBOUNDED else min(n, 1)

    def finish(self) -> Iterable[R]:
        """Read the iterable at hand to its end, where a stage before this one needed no more in the middle of it."""
        if self.inner is not None:
            yield from self.inner
            self.inner = None

    def close(self) -> None:
        """Close the iterable at hand if it can be closed."""
        inner, self.inner = self.inner, None
        close = getattr(inner, "close", None)
        if close is not None:
            close()

    @property
    def pending(self) -> bool:
        """Tell that the iterable at hand may give more; of a builtin collection the end is known."""
        inner = self.inner
        return inner is not None and not (sized(inner) and not length_hint(inner))
