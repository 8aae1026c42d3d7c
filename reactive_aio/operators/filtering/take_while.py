"""The stages that let elements through as long as a test says so, and then need no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from attrs import define, field, frozen

from ...segments import Stage, Template, Transform

T = TypeVar("T")


@frozen
class TakeWhile(Stage[T, T]):
    """Stage of ``Flow.take_while``."""

    predicate: Callable[[T], object]

    forwards = True
    positional = True

    def transform(self) -> Transform[T, T]:
        """Give a switch."""
        return TakingWhile[T](self.predicate)


@frozen
class TakeUntil(Stage[T, T]):
    """Stage of ``Flow.take_until``."""

    predicate: Callable[[T], object]

    forwards = True
    positional = True

    def transform(self) -> Transform[T, T]:
        """Give a switch."""
        return TakingUntil[T](self.predicate)


@define
class TakingWhile(Transform[T, T]):
    """Whether one subscription has seen the first element that is not let through."""

    predicate: Callable[[T], object]
    over: bool = field(init=False, default=False)

    template = Template("""
        if not $predicate(item):
            $self.over = True
            $stop
        $rest
    """)

    @property
    def done(self) -> bool:
        """Tell that it has."""
        return self.over


@define
class TakingUntil(Transform[T, T]):
    """Whether one subscription has seen the last element that is let through.

    The test comes before the element goes on, so that the end is known with it.
    """

    predicate: Callable[[T], object]
    over: bool = field(init=False, default=False)

    template = Template("""
        if $predicate(item):
            $self.over = True
        $rest
        if $self.over:
            $stop
    """)

    @property
    def done(self) -> bool:
        """Tell that it has."""
        return self.over
