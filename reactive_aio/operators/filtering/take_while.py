"""The stages that let elements through as long as a test says so, and then need no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Parts, Stage, Template, Transform

T = TypeVar("T")


@frozen
class TakeWhile(Stage[T, T]):
    """Stage of ``Flow.take_while``."""

    predicate: Callable[[T], object]

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a switch."""
        return TakingWhile[T](self.predicate)

    def in_parts(self) -> Parts:
        """Mark the place in a part where it ends, so that the first mark of all is the end."""
        return Parts(TakeWhileMarked(self.predicate), TakeToMark(), at_end=False)


@frozen
class TakeUntil(Stage[T, T]):
    """Stage of ``Flow.take_until``."""

    predicate: Callable[[T], object]

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a switch."""
        return TakingUntil[T](self.predicate)

    def in_parts(self) -> Parts:
        """Mark the last element of a part, so that the first that is marked is the last of all."""
        return Parts(TakeUntilMarked(self.predicate), TakeToMarked(), at_end=False)


@define
class TakingWhile(Transform[T, T]):
    """Whether one subscription has seen the first element that is not let through."""

    predicate: Callable[[T], object]
    over: bool = field(init=False, default=False)

    template: ClassVar[Template | None] = Template("""
        if not $predicate(item):
            $self.over = True
            $stop
        $rest
    """)

    @property
    def done(self) -> bool:
        """Return whether the flow has ended."""
        return self.over


@define
class TakingUntil(Transform[T, T]):
    """Whether one subscription has seen the last element that is let through.

    The test comes before the element goes on, so that the end is known with it.
    """

    predicate: Callable[[T], object]
    over: bool = field(init=False, default=False)

    template: ClassVar[Template | None] = Template("""
        if $predicate(item):
            $self.over = True
        $rest
        if $self.over:
            $stop
    """)

    @property
    def done(self) -> bool:
        """Return whether the flow has ended."""
        return self.over


class Mark(Enum):
    """Stands among elements, and is found again as itself wherever it has travelled."""

    END = "end"


@frozen
class Marked:
    """The last element of those that are let through."""

    item: Any


@frozen
class TakeWhileMarked(Stage[Any, Any]):
    """As `TakeWhile`, with a mark after the elements if there was more."""

    predicate: Callable[[Any], object]

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a switch."""
        return TakingWhileMarked(self.predicate)


class TakingWhileMarked(TakingWhile[Any]):
    """The switch, which leaves a mark."""

    __slots__ = ("_given",)

    def finish(self) -> Iterable[Any]:
        """Return the mark."""
        self._given = True
        return (Mark.END,) if self.over else ()

    @property
    def pending(self) -> bool:
        """Return whether the mark is still to come."""
        return self.over and not hasattr(self, "_given")


@frozen
class TakeToMark(Stage[Any, Any]):
    """Lets elements through up to the first mark."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a switch."""
        return TakingWhile[Any](not_the_end)


def not_the_end(item: object) -> bool:
    """Return whether an element is not the mark."""
    return item is not Mark.END


@frozen
class TakeUntilMarked(Stage[Any, Any]):
    """As `TakeUntil`, with the last element marked."""

    predicate: Callable[[Any], object]

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a switch."""
        return TakingUntilMarked(self.predicate)


class TakingUntilMarked(TakingUntil[Any]):
    """The switch, which marks the last element."""

    __slots__ = ()

    marked: ClassVar[type[Marked]] = Marked

    template: ClassVar[Template | None] = Template("""
        if $predicate(item):
            $self.over = True
            item = $marked(item)
        $rest
        if $self.over:
            $stop
    """)


@frozen
class TakeToMarked(Stage[Any, Any]):
    """Lets elements through up to and with the first that is marked."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a switch."""
        return TakingToMarked(bool)


class TakingToMarked(TakingUntil[Any]):
    """The switch, which takes the mark off."""

    __slots__ = ()

    marked: ClassVar[type[Marked]] = Marked

    template: ClassVar[Template | None] = Template("""
        if item.__class__ is $marked:
            $self.over = True
            item = item.item
        $rest
        if $self.over:
            $stop
    """)
