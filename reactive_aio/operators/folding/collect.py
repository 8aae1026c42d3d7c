"""The stage that puts all elements into one container."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar, cast

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Parts, Stage, Template, Transform, label
from ...spec import UNBOUNDED

T = TypeVar("T")
A = TypeVar("A")


@frozen
class Collect(Stage[T, A]):
    """Stage of ``Flow.collect``."""

    factory: Callable[[], A]
    accumulate: Callable[[A, T], object]
    combine: Callable[[A, A], object] | None = None

    needs_whole_stream = True

    @property
    def arguments(self) -> str:
        """The arguments: the functions."""
        functions = (self.factory, self.accumulate, *([] if self.combine is None else [self.combine]))
        return ", ".join(map(label, functions))

    def transform(self) -> Transform[T, A]:
        """Return a place for the container."""
        return Collecting(self.factory, self.accumulate)

    def in_parts(self) -> Parts | None:
        """Put the containers of the parts together, if it is known how."""
        return None if self.combine is None else Parts(self, PutTogether(self.factory, self.combine), rounds=True)


@frozen
class PutTogether(Stage[A, A]):
    """Puts the content of all containers into the first."""

    factory: Callable[[], A]
    combine: Callable[[A, A], object]

    needs_whole_stream = True

    def transform(self) -> Transform[A, A]:
        """Return a place for the container."""
        return PuttingTogether(self.factory, self.combine)


@define
class Collecting(Transform[T, A]):
    """The container of one subscription, made when it is first needed."""

    factory: Callable[[], A]
    accumulate: Callable[[A, T], object]
    container: Any = field(init=False, default=MISSING)
    given: bool = field(init=False, default=False)

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        if $container is $missing:
            $container = $factory()
        $accumulate($container, item)
        """,
        local=("container",),
    )

    def demand(self, n: int) -> int:
        """Request all elements, however few containers are requested."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[A]:
        """Return the container."""
        self.given = True
        container = self.factory() if self.container is MISSING else self.container
        return (cast("A", container),)

    @property
    def pending(self) -> bool:
        """Return whether the container is still to come."""
        return not self.given


class PuttingTogether(Collecting[A, A]):
    """The first container of one subscription, or a new one without elements."""

    __slots__ = ()

    template: ClassVar[Template | None] = Template(
        """
        if $container is $missing:
            $container = item
        else:
            $accumulate($container, item)
        """,
        local=("container",),
    )
