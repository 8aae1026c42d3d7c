"""The ends of programs, by their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from attrs import define, field

from reactive_aio import UNBOUNDED, Subscription
from tests.traces.programs import End
from tests.traces.run import AnyFlow, Run, pause
from tests.traces.tape import OUTSIDE, number, show

Read = Callable[[Run, AnyFlow, End], Awaitable[Any]]


@define(eq=False)
class Reading:
    """A subscriber written by hand: it asks for so many, then for so many more, and may leave."""

    run: Run
    end: End
    over: asyncio.Future[None]
    seen: int = field(init=False, default=0)
    wanted: int = field(init=False, default=0)
    subscription: Subscription | None = field(init=False, default=None)
    error: BaseException | None = field(init=False, default=None)

    def on_subscribe(self, subscription: Subscription) -> None:
        """Ask for the first elements, or leave at once."""
        self.run.say("end on_subscribe")
        self.subscription = subscription
        if self.end.leaves_after == 0:
            self.leave()
        else:
            self.ask(self.end.first or UNBOUNDED)

    def ask(self, n: int) -> None:
        """Ask, now or in a later turn."""
        self.wanted += n
        if self.end.later:
            asyncio.get_running_loop().call_soon(self.request, n)
        else:
            self.request(n)

    def request(self, n: int) -> None:
        """Ask now."""
        assert self.subscription is not None
        self.run.say(f"end request({n})")
        self.subscription.request(n)
        self.run.say("end has requested")

    def on_next(self, item: Any) -> None:
        """Take an element."""
        self.run.say(f"end on_next({show(item)})")
        self.seen += 1
        if self.seen == self.end.leaves_after:
            self.leave()
        elif self.seen == self.wanted:
            self.ask(self.end.then)

    def leave(self) -> None:
        """Cancel."""
        assert self.subscription is not None
        self.run.say("end cancel()")
        self.subscription.cancel()
        self.run.say("end has cancelled")
        self.finish()

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self.run.say(f"end on_error({show(error)})")
        self.finish()

    def on_complete(self) -> None:
        """Take the end."""
        self.run.say("end on_complete")
        self.finish()

    def finish(self) -> None:
        """Have the end return."""
        if not self.over.done():
            self.over.set_result(None)


async def subscribed(run: Run, flow: AnyFlow, end: End) -> Any:
    """Subscribe, and wait for the end."""
    reading = Reading(run, end, asyncio.get_running_loop().create_future())
    flow.subscribe(reading)
    OUTSIDE.set("after")
    try:
        await reading.over
    except asyncio.CancelledError:
        if reading.subscription is not None:
            reading.leave()
        raise
    return reading.seen


def taking(run: Run, end: End) -> Callable[[Any], Any]:
    """Return what is called for each element."""

    def take(item: Any) -> int:
        run.say(f"end takes {show(item)}")
        if run.count("end") == end.fails_at:
            run.fail("end")
        return number(item)

    return take


def taking_later(run: Run, end: End) -> Callable[[Any], Awaitable[None]]:
    """Return what is awaited for each element."""
    take = taking(run, end)

    async def take_later(item: Any) -> None:
        take(item)
        try:
            await pause(number(item) if end.later else 0)
        finally:
            run.say(f"end has taken {show(item)}")

    return take_later


def adding(run: Run, end: End) -> Callable[[Any, Any], Any]:
    """Return a function that adds."""
    take = taking(run, end)
    return lambda left, item: (number(left) + int(take(item))) % 97


async def read(run: Run, items: Any, end: End, *, slow: bool = False) -> int:
    """Read elements, as many as are wanted."""
    take, seen = taking(run, end), 0
    if end.leaves_after == 0:
        return 0
    async for item in items:
        OUTSIDE.set("after")
        take(item)
        seen += 1
        if seen == end.leaves_after:
            break
        if slow:
            await pause(seen + end.then)
    return seen


async def opened(run: Run, flow: AnyFlow, end: End, *, slow: bool = False) -> Any:
    """Read in a block, and close."""
    async with flow.open() as items:
        run.say("end has opened")
        try:
            return await read(run, items, end, slow=slow)
        finally:
            run.say("end closes")


# Each argument that may differ is passed here only.
READS: Final[dict[str, Read]] = {
    "to_list": lambda _, flow, __: flow.to_list(),
    "first": lambda _, flow, __: flow.first(),
    "last": lambda _, flow, end: flow.last(None) if end.later else flow.last(),
    "reduce": lambda run, flow, end: flow.reduce(adding(run, end)),
    "fold": lambda run, flow, end: flow.reduce(adding(run, end), 0),
    "count": lambda _, flow, __: flow.count(),
    "drain": lambda _, flow, __: flow.drain(),
    "for_each": lambda run, flow, end: flow.for_each(taking(run, end)),
    "for_each async": lambda run, flow, end: flow.for_each(taking_later(run, end), max_concurrency=end.then),
    "async for": read,
    "open": opened,
    "open slowly": lambda run, flow, end: opened(run, flow, end, slow=True),
    "subscribe": subscribed,
}
