"""The stage whose function decides for each element whether it is kept, replaced or dropped, or ends the flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform

T = TypeVar("T")
R = TypeVar("R")


@define(eq=False)
class SynchronousSink(Generic[R]):
    """The second argument of the function of ``Flow.handle``, to be used before that returns."""

    _item: Any = field(init=False, default=MISSING)
    _over: bool = field(init=False, default=False)

    def next(self, item: R) -> None:
        """Emit ``item`` for the current element. Raise RuntimeError for a second one."""
        if self._item is not MISSING:
            raise RuntimeError(
                "handle() emits at most one element for each input. Use flat_map_iterable() to emit more"
            )
        self._item = item

    def complete(self) -> None:
        """Complete the flow, after the result for the current element."""
        self._over = True

    def take(self) -> Any:
        """Return the element to emit, if there is one. For the library."""
        item, self._item = self._item, MISSING
        return item

    @property
    def over(self) -> bool:
        """Whether the flow is to complete."""
        return self._over


@frozen
class Handle(Stage[T, R]):
    """Stage of ``Flow.handle``."""

    fn: Callable[[T, SynchronousSink[R]], object]

    needs_whole_stream = True

    def transform(self) -> Transform[T, R]:
        """Return a sink."""
        return Handling[T, R](self.fn)


@define
class Handling(Transform[T, R]):
    """The sink of one subscription."""

    fn: Callable[[T, SynchronousSink[R]], object]
    sink: SynchronousSink[R] = field(init=False, factory=SynchronousSink[R])

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template("""
        $fn(item, $sink)
        item = $sink.take()
        if item is not $missing:
            $rest
        if $sink.over:
            $stop
    """)

    @property
    def done(self) -> bool:
        """Return whether the function has completed the flow."""
        return self.sink.over
