"""The stages behind the ends that answer a question. Each stops at the element that settles it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import truth
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Parts, Stage, Template, Transform

T = TypeVar("T")


@define
class Deciding(Transform[Any, bool]):
    """Whether an element has settled the question of one subscription."""

    asked: Any = None
    """The predicate or the value of the question."""
    settled: bool = field(init=False, default=False)
    given: bool = field(init=False, default=False)

    otherwise: ClassVar[bool] = False
    """The answer where no element settles it; else it is the other one."""

    def finish(self) -> Iterable[bool]:
        """Return the answer."""
        self.given = True
        return (self.settled is not self.otherwise,)

    @property
    def done(self) -> bool:
        """Return whether the question is settled."""
        return self.settled

    @property
    def pending(self) -> bool:
        """Return whether the answer is still to come."""
        return not self.given


class FindingOne(Deciding):
    """Settled by an element for which the predicate is true."""

    template: ClassVar[Template | None] = Template("""
        if $asked(item):
            $self.settled = True
            $stop
    """)


class FindingNone(Deciding):
    """Settled by an element for which the predicate is false."""

    otherwise = True
    template: ClassVar[Template | None] = Template("""
        if not $asked(item):
            $self.settled = True
            $stop
    """)


class FindingEqual(Deciding):
    """Settled by an element that equals a value."""

    template: ClassVar[Template | None] = Template("""
        if item is $asked or item == $asked:
            $self.settled = True
            $stop
    """)


class FindingAny(Deciding):
    """Settled by any element."""

    otherwise = True
    template: ClassVar[Template | None] = Template("""
        $self.settled = True
        $stop
    """)


@frozen
class AnyOf(Stage[T, bool]):
    """Stage of ``Flow.any``."""

    predicate: Callable[[T], object]
    needs_whole_stream = True

    @property
    def name(self) -> str:
        """The name of the method, which a class here can't have."""
        return "any"

    def transform(self) -> Transform[T, bool]:
        """Return a question."""
        return FindingOne(self.predicate)

    def in_parts(self) -> Parts:
        """Ask whether it is true of some element of some part."""
        return Parts(self, AnyOf(truth))


@frozen
class All(Stage[T, bool]):
    """Stage of ``Flow.all``."""

    predicate: Callable[[T], object]
    needs_whole_stream = True

    def transform(self) -> Transform[T, bool]:
        """Return a question."""
        return FindingNone(self.predicate)

    def in_parts(self) -> Parts:
        """Ask whether it is true of all elements of all parts."""
        return Parts(self, All(truth))


@frozen
class Contains(Stage[Any, bool]):
    """Stage of ``Flow.contains``."""

    value: object
    needs_whole_stream = True

    def transform(self) -> Transform[Any, bool]:
        """Return a question."""
        return FindingEqual(self.value)

    def in_parts(self) -> Parts:
        """Ask whether some part contains it."""
        return Parts(self, AnyOf(truth))


@frozen
class IsEmpty(Stage[Any, bool]):
    """Stage of ``Flow.is_empty``."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, bool]:
        """Return a question."""
        return FindingAny()

    def in_parts(self) -> Parts:
        """Ask whether all parts are."""
        return Parts(self, All(truth))
