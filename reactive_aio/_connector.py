"""The flows of connectors: plans and notes show the function that the program called, and not what it is made of."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from attrs import field, frozen

from ._core.notes import add_note
from ._flow.flow import Flow, flow_of
from ._fusion import label
from ._plan import Inlet
from .operators.sourcing.async_iterable import FromAsyncMade
from .operators.sourcing.defer import Defer, Deferred
from .operators.sourcing.poll import FromPoll, Poll

T = TypeVar("T")

SELDOM: Final = 3600.0
"""Seconds between two heartbeats, for what needs none."""
MOST: Final = 256
"""The most elements of one poll."""


def polled(name: str, argument: object, open: Callable[[], AbstractAsyncContextManager[Poll[T]]]) -> Flow[T]:
    """Make a flow as `Flow.from_poll` does, shown as the call of ``name`` with ``argument``."""
    return flow_of(PollConnector[T](open, MOST, SELDOM, (name, label(argument))))


def iterated(name: str, argument: object, make: Callable[[], AsyncIterable[T]]) -> Flow[T]:
    """Make a flow as `Flow.from_async_iterable` does of a function, shown as the call of ``name`` with ``argument``."""
    return flow_of(IterableConnector[T](make, (name, label(argument))))


def deferred(name: str, argument: object, make: Callable[[], Flow[T]]) -> Flow[T]:
    """Make a flow as `Flow.defer` does, shown as the call of ``name`` with ``argument``."""
    return flow_of(DeferConnector[T](make, (name, label(argument))))


class Called:
    """A source with the name and the arguments of a connector."""

    __slots__ = ()

    called: tuple[str, str]

    @property
    def name(self) -> str:
        """The name of the connector."""
        return self.called[0]

    @property
    def arguments(self) -> str:
        """Its first argument."""
        return self.called[1]


@frozen
class PollConnector(Called, FromPoll[T]):
    """Source of `polled`."""

    called: tuple[str, str] = field(repr=False)


@frozen
class IterableConnector(Called, FromAsyncMade[T]):
    """Source of `iterated`."""

    called: tuple[str, str] = field(repr=False)


@frozen
class DeferConnector(Called, Defer[T]):
    """Source of `deferred`."""

    called: tuple[str, str] = field(repr=False)

    def _reading(self, inlet: Inlet[Any]) -> Deferred:
        return Locating(inlet)


class Locating(Deferred):
    """Adds to a failure the line of the program, since the library makes the flow later."""

    def on_source_error(self, error: BaseException) -> None:
        """Fail with it."""
        add_note(error, f"in {self.inlet.where}")
        super().on_source_error(error)
