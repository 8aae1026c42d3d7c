"""The four types of the Reactive Streams contract, as structural protocols.

Every method is an ordinary one that returns nothing. The two ends of a stream are coroutines, but the signals are not.
A class of any library that has these methods takes part. Nothing has to be inherited.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@runtime_checkable
class Subscription(Protocol):
    """The link between one publisher and one subscriber, held by the subscriber (rules 3.1 to 3.17)."""

    def request(self, n: int, /) -> None:
        """Ask for ``n`` more elements; ``n`` is at least 1. ``UNBOUNDED`` and above mean all elements."""

    def cancel(self) -> None:
        """Ask the publisher to stop and to forget the subscriber. Further calls have no effect."""


@runtime_checkable
class Subscriber(Protocol[T_contra]):
    """A receiver of a stream: ``on_subscribe on_next* (on_error | on_complete)?`` (rules 2.1 to 2.13)."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the subscription. Nothing else comes before it."""

    def on_next(self, item: T_contra, /) -> None:
        """Take one element. There are never more than were requested."""

    def on_error(self, error: BaseException, /) -> None:
        """Take the failure that ends the stream."""

    def on_complete(self) -> None:
        """Take note that the stream has completed."""


@runtime_checkable
class Publisher(Protocol[T_co]):
    """A provider of a stream to any number of subscribers, each under its own demand (rules 1.1 to 1.11)."""

    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """Start one stream for ``subscriber``. Raise only if it is None. All other errors are signalled."""


@runtime_checkable
class Processor(Subscriber[T_contra], Publisher[T_co], Protocol[T_contra, T_co]):
    """Both a subscriber and a publisher, bound by both contracts (rules 4.1 and 4.2)."""
