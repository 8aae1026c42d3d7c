"""The flows of connectors: plans and notes show the function that the program called, and not what it is made of."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

from attrs import field, frozen

from ._flow.flow import Flow, flow_of
from ._fusion import label
from .operators.sourcing.async_iterable import FromAsyncMade
from .operators.sourcing.poll import FromPoll, Poll

T = TypeVar("T")

SELDOM: Final = 3600.0
"""Seconds between two heartbeats, for what needs none."""
MOST: Final = 256
"""The most elements of one poll."""


def polled(name: str, argument: object, open: Callable[[], AbstractAsyncContextManager[Poll[T]]]) -> Flow[T]:
    """Make a flow as `Flow.from_poll` does, shown as the call of ``name`` with ``argument``."""
    return flow_of(PollConnector[T](open, MOST, SELDOM, name, label(argument)))


def iterated(name: str, argument: object, make: Callable[[], AsyncIterable[T]]) -> Flow[T]:
    """Make a flow as `Flow.from_async_iterable` does of a function, shown as the call of ``name`` with ``argument``."""
    return flow_of(IterableConnector[T](make, name, label(argument)))


@frozen
class PollConnector(FromPoll[T]):
    """Source of `polled`."""

    _name: str = field(repr=False)
    _arguments: str = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the connector."""
        return self._name

    @property
    def arguments(self) -> str:
        """Its first argument."""
        return self._arguments


@frozen
class IterableConnector(FromAsyncMade[T]):
    """Source of `iterated`."""

    _name: str = field(repr=False)
    _arguments: str = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the connector."""
        return self._name

    @property
    def arguments(self) -> str:
        """Its first argument."""
        return self._arguments
