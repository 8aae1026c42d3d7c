"""The combinator that makes elements of the signals of a flow, and the stages on both ends of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Coordinator
from ..._fusion import Stage, Template, Transform
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .signal import Completed, Failed, Next, Signal

T = TypeVar("T")


@frozen
class AsNext(Stage[T, Next[T]]):
    """Makes signals of elements, in front of `Materialize`."""

    kind: ClassVar[type[Any]] = Next
    # The ``__init__`` of a frozen class looks for a way around its own ``__setattr__``, which takes as long as all the rest.
    new: ClassVar[Callable[..., Any]] = object.__new__
    put: ClassVar[Callable[[Any, Any], None]] = vars(Next)["item"].__set__

    template: ClassVar[Template | None] = Template(
        """
        signal = $new($kind)
        $put(signal, item)
        item = signal
        $rest
        """,
        plain=True,
    )

    @property
    def name(self) -> str:
        """The method that it belongs to."""
        return "materialize"


@frozen
class Materialize(Pushed[Signal[T]]):
    """Source of ``Flow.materialize``. The elements of its flow are signals already."""

    flow: FlowLike
    last: Callable[[Failed | Completed], FlowLike]
    """Makes the flow of the last signal."""

    @property
    def arguments(self) -> str:
        """Nothing."""
        return ""

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow."""
        reading = Materialization(inlet, self.last)
        reading.advance(self.flow)
        return reading


@define(eq=False)
class Materialization(Coordinator):
    """Goes over to the last signal when the flow has ended."""

    last: Callable[[Failed | Completed], FlowLike]
    _ended: bool = field(init=False, default=False)

    def on_source_complete(self) -> None:
        """Go on to the last signal, or complete after it."""
        if self._ended:
            self.complete()
        else:
            self._end(Completed())

    def on_source_error(self, error: BaseException) -> None:
        """Go on to the last signal."""
        self._end(Failed(error))

    def _end(self, signal: Failed | Completed) -> None:
        self._ended = True
        self.advance(self.last(signal))


@frozen
class Dematerialize(Stage[Signal[T], T]):
    """Stage of ``Flow.dematerialize``."""

    needs_whole_stream = True

    def transform(self) -> Transform[Signal[T], T]:
        """Return a switch."""
        return Dematerializing[T]()


@define
class Dematerializing(Transform[Signal[T], T]):
    """Whether one subscription has seen the last signal."""

    over: bool = field(init=False, default=False)

    next: ClassVar[type[Any]] = Next

    template: ClassVar[Template | None] = Template("""
        if type(item) is $next:
            item = item.item
            $rest
        else:
            $end(item)
            $self.over = True
            $stop
    """)

    def end(self, signal: object) -> None:
        """Raise what the flow failed with."""
        if isinstance(signal, Failed):
            raise signal.error
        if not isinstance(signal, Completed):
            raise TypeError(f"dematerialize() takes the signals of materialize(), not {type(signal).__name__}")

    @property
    def done(self) -> bool:
        """Return whether the flow has ended."""
        return self.over
