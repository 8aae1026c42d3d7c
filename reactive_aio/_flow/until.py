"""Sources and combinators that heed the stop of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve, field, frozen

from .._arbiter import Coordinator
from .._plan import FlowLike, Inlet, Pulled, Pushed
from ..operators._fluent import is_flow
from ..operators.recovering.repeat import Repeat, Repetition
from ..spec import Subscription

if TYPE_CHECKING:
    from .flow import Flow
    from .stopping import Stop

T = TypeVar("T")
Told = Callable[[FlowLike], "Flow[Any]"]
"""Returns a flow whose sources heed the stop."""


@frozen
class PulledUntil(Pulled[T]):
    """An iterator that ends when a stop is requested."""

    source: Pulled[T]
    stop: Stop = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.source.name

    @property
    def arguments(self) -> str:
        """Its arguments."""
        return self.source.arguments

    def iterate(self) -> Iterator[T]:
        """Return the iterator of the source, up to the stop. After that it is not opened."""
        return iter(()) if self.stop.requested else IteratorUntil(self.source.iterate(), self.stop)


@define(eq=False)
class IteratorUntil(Iterator[T]):
    """Returns the elements of another iterator, until a stop is requested."""

    _items: Iterator[T]
    _stop: Stop

    def __next__(self) -> T:
        if self._stop.requested:
            raise StopIteration
        return next(self._items)

    def close(self) -> None:
        """Close the other iterator, if it can be closed."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


@frozen
class RepeatUntil(Repeat[T]):
    """A flow that is repeated until a stop is requested."""

    stop: Stop = field(kw_only=True, repr=False)

    @property
    def name(self) -> str:
        """The name of the method."""
        return "repeat"

    @property
    def sequence(self) -> tuple[FlowLike, ...]:
        """None: the number of runs is not known."""
        return ()

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first run."""
        repeating = RepetitionUntil(inlet, self.flow, self.times, self.stop)
        repeating.on_source_complete()
        return repeating


@define(eq=False)
class RepetitionUntil(Repetition):
    """Begins no run once a stop is requested."""

    stop: Stop

    def on_source_complete(self) -> None:
        """Run once more, or complete."""
        if self.stop.requested:
            self.complete()
        else:
            super().on_source_complete()


@frozen
class WaitingUntil(Pushed[T]):
    """A combinator that waits before a flow or between two, until a stop is requested."""

    source: Any
    stop: Stop = field(repr=False)
    told: Told = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the combinator."""
        return str(self.source.name)

    @property
    def arguments(self) -> str:
        """Its arguments."""
        return str(self.source.arguments)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """Its flow."""
        return (self.source.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin. A stop completes it if it waits. Else the flow that it reads ends first."""
        waits = WaitCanceller(inlet, self.stop, self.told)
        heeding: dict[str, Any] = {"flow": waits.heard(self.source.flow)}
        if (resume := getattr(self.source, "resume", None)) is not None:
            heeding["resume"] = partial(waits.resumed, resume)
        coordinator: Coordinator = evolve(self.source, **heeding).open(inlet)
        waits.coordinator = coordinator
        self.stop.tell(waits)
        return coordinator


@define(eq=False)
class WaitCanceller:
    """Completes a coordinator that waits when a stop has been requested (a Completable)."""

    inlet: Inlet[Any]
    stop: Stop
    told: Told
    coordinator: Coordinator = field(init=False)

    def heard(self, flow: Any) -> Any:
        """Return a flow that heeds the stop. The coordinator may wait after its end."""
        return self.told(flow).do_finally(self.complete) if is_flow(flow) else flow

    def resumed(self, resume: Callable[[Any], Any], last: Any) -> Any:
        """Return the flow that goes on after the last element."""
        return self.heard(resume(last))

    def complete(self) -> None:
        """Look whether it waits, on its event loop; to be called on any thread."""
        self.inlet.post(self._look, None)

    def _look(self, _: None) -> None:
        if self.stop.requested and self.coordinator.waits:
            self.coordinator.cancel()
            self.inlet.on_complete()
