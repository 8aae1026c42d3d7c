"""Connections: flows without a subscriber of their own, such as one run for several readers."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from .._plan import FlowLike, Plan, Receiver
from ..spec import Subscription
from .assemble import assemble
from .driver import RegionDriver
from .host import FlowHost
from .lifetime import Lifetime


def connect(
    flow: FlowLike,
    receiver: Receiver[Any],
    *,
    context: Context | None = None,
    ended: Callable[[], None] | None = None,
) -> Subscription:
    """Run a flow for a receiver, in a host of its own, and return the subscription.

    Demand: what the receiver requests. Its signals come on the event loop of the flow's last region, never inside this call or
    inside ``request``. The run depends on nobody's task: only ``cancel`` and the end of the flow end it. An error of
    its cleanup goes to ``hooks.on_error_dropped``, once, since there is no end that could raise it.

    ``context`` has the values of context variables for the run, else a copy of the caller's. ``ended`` is called when all that the
    run has started has been cleaned up, on whatever thread that is. Needs a running event loop, unless the flow is placed elsewhere.

    >>> import asyncio
    >>> from reactive_aio import Flow
    >>> class Printing:
    ...     def on_subscribe(self, subscription):
    ...         subscription.request(2)
    ...     def on_chunk(self, items):
    ...         print(items)
    ...     def on_error(self, error):
    ...         print(error)
    ...     def on_complete(self):
    ...         print("complete")
    >>> async def main():
    ...     ended = asyncio.Event()
    ...     connect(Flow.of("a", "b"), Printing(), ended=ended.set)
    ...     await ended.wait()
    >>> asyncio.run(main())
    ['a', 'b']
    complete
    """
    return connected(flow, receiver, context or copy_context(), ended)


def connected(
    flow: FlowLike, receiver: Receiver[Any], context: Context, ended: Callable[[], None] | None
) -> RegionDriver:
    """Run a flow as `connect` does. Return its last region, which is the subscription."""
    lifetime, heard = Lifetime.told(), _Heard(receiver)
    driver = assemble(Plan.of(flow), heard, FlowHost(lifetime), context)
    lifetime.then(lambda: context.copy().run(lifetime.settle, heard.take_error()))
    if ended is not None:
        lifetime.then(ended)
    return driver


class _Heard:
    """Passes all signals on, and knows the failure that it has passed on (a Receiver)."""

    __slots__ = ("_error", "_receiver", "on_chunk", "on_complete", "on_subscribe")

    def __init__(self, receiver: Receiver[Any]) -> None:
        self._receiver = receiver
        self.on_subscribe = receiver.on_subscribe
        self.on_chunk = receiver.on_chunk
        self.on_complete = receiver.on_complete
        self._error: BaseException | None = None

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on."""
        self._error = error
        self._receiver.on_error(error)

    def take_error(self) -> BaseException | None:
        """Return the failure, and let go of it."""
        error, self._error = self._error, None
        return error


def abandon(last: RegionDriver, loop: AbstractEventLoop, error: BaseException) -> None:
    """Cancel a connection when one of its loops has ended. All that has begun there counts as cleaned up; on any thread."""
    regions: list[RegionDriver] = []
    region: RegionDriver | None = last
    while region is not None:
        if region.loop is loop:
            regions.append(region)
        region = region.place.before
    last.cancel()
    for each in regions:
        each.give_up(error)
