"""A host with several receivers: one run of a flow, which belongs to none of its listeners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

from attrs import Factory, define, field

from .._arbiter import Audience, Listener
from .._plan import FlowLike
from ..spec import Subscription
from .connect import connect
from .places import at_home

L = TypeVar("L", bound=Listener)


@define(eq=False)
class SharedHost(ABC, Generic[L]):
    """Runs a flow once for all its listeners, on the event loop on which it begins.

    A subclass says in `on_chunk` who is given what, and by `request` how much the run is asked for. These hold in all
    cases:

    - The run is in nobody's task. It goes on when the task that has begun it has ended. It has a context of its own: a
      copy of the context in which the host is made, unless one is given.
    - That the last listener leaves is one event: the run is cancelled, once. The end of the run is heard by all who are there.
    - A failure that comes when nobody is there goes to ``hooks.on_error_dropped``, once, as does what the cleanup raises.
    - It ends behind all that it holds: then ``ended`` is called, on whatever thread that is.

    A host is for one run. Who comes when that is `over` needs another one.
    """

    flow: FlowLike
    context: Context = field(factory=copy_context, kw_only=True)
    ended: Callable[[], None] | None = field(default=None, kw_only=True)
    audience: Audience[L] = field(init=False, default=Factory(lambda self: Audience(self._cancel), takes_self=True))
    """The listeners."""
    _run: Subscription | None = field(init=False, default=None)

    @property
    def over(self) -> bool:
        """Whether the run has ended, or the last one has left it."""
        return self.audience.over

    # -- the listeners, on the event loop of the run

    def join(self, listener: L) -> None:
        """Add a listener. The first one begins the run, if it has not begun."""
        self.audience.join(listener)
        self.begin()

    def leave(self, listener: L) -> None:
        """Remove a listener. The last one cancels the run."""
        self.audience.leave(listener)

    # -- the run

    def begin(self) -> None:
        """Begin the run without a listener. Do nothing if it has begun."""
        if self._run is None:
            connect(at_home(self.flow), self, context=self.context, ended=self.ended)

    def request(self, n: int) -> None:
        """Ask the run for elements, unless it is over."""
        if self._run is not None and not self.over:
            self._run.request(n)

    def _cancel(self) -> None:
        if self._run is not None:
            self._run.cancel()

    # -- what the run signals

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription to the run."""
        self._run = subscription

    @abstractmethod
    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements to the subscribers, to each at most what it has requested."""

    def on_error(self, error: BaseException) -> None:
        """Signal the failure to all."""
        self.audience.end(error)

    def on_complete(self) -> None:
        """Signal the end to all."""
        self.audience.end(None)
