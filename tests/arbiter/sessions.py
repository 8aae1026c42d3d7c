"""A publisher of somebody else's whose every subscription is at hand, for combinators that subscribe again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from reactive_aio import Subscriber


@define(eq=False)
class Session:
    """One subscription, driven by the test."""

    subscriber: Subscriber[Any]
    on_request: Callable[[Session], None] | None = None
    """The publisher calls this from inside ``request``."""
    requests: list[int] = field(init=False, factory=list)
    cancels: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        self.requests.append(n)
        if self.on_request is not None:
            self.on_request(self)

    def cancel(self) -> None:
        self.cancels += 1

    def next(self, *items: Any) -> None:
        for item in items:
            self.subscriber.on_next(item)

    def complete(self) -> None:
        self.subscriber.on_complete()

    def error(self, error: BaseException) -> None:
        self.subscriber.on_error(error)


@define(eq=False)
class Sessions:
    """The publisher. It calls ``on_subscribe`` at once, unless the test says otherwise."""

    on_request: Callable[[Session], None] | None = None
    on_subscribe: Callable[[Session], None] = lambda session: session.subscriber.on_subscribe(session)
    all: list[Session] = field(init=False, factory=list)

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        session = Session(subscriber, self.on_request)
        self.all.append(session)
        self.on_subscribe(session)

    @property
    def last(self) -> Session:
        return self.all[-1]

    @property
    def requests(self) -> list[list[int]]:
        """The requests that each session has received."""
        return [session.requests for session in self.all]


def gives(*items: Any, error: BaseException | None = None) -> Callable[[Session], None]:
    """Return a script that signals all items and the end from inside the first request."""

    def on_request(session: Session) -> None:
        session.next(*items)
        if error is None:
            session.complete()
        else:
            session.error(error)

    return on_request
