"""The ends that a cell may have, each as what runs a flow and gives what was made of it, or raises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, Final

from attrs import define, field

from reactive_aio import UNBOUNDED, Subscription, schedulers
from tests.failures.code import AnyFlow


async def blocking(run: Callable[[], Any]) -> Any:
    """Run what blocks on a thread; what it raises is raised here."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[bool, Any]] = loop.create_future()

    def set_result(outcome: tuple[bool, Any]) -> None:
        if not done.done():
            done.set_result(outcome)

    context = copy_context()

    def work() -> None:
        try:
            outcome = (True, context.run(run))
        except BaseException as error:
            outcome = (False, error)
        loop.call_soon_threadsafe(set_result, outcome)

    thread = threading.Thread(target=work, name="blocking end", daemon=True)
    thread.start()
    good, value = await done
    thread.join()
    if good:
        return value
    raise value


@define(eq=False)
class Listening:
    """A subscriber that keeps what it hears."""

    step: int
    items: list[Any] = field(factory=list[Any])
    over: asyncio.Future[None] = field(init=False)
    loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    error: BaseException | None = field(init=False, default=None)
    subscription: Subscription | None = field(init=False, default=None)
    ends: int = field(init=False, default=0)
    left: bool = field(init=False, default=False)
    """Whether it is to cancel as soon as it can."""

    def __attrs_post_init__(self) -> None:
        self.over = self.loop.create_future()

    def on_subscribe(self, subscription: Subscription) -> None:
        """Ask for the first elements."""
        self.subscription = subscription
        if self.left:
            subscription.cancel()
        else:
            subscription.request(self.step)

    def on_next(self, item: Any) -> None:
        """Take an element, and ask for another."""
        self.items.append(item)
        if self.step == 1 and self.subscription is not None:
            self.subscription.request(1)

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        """Take the end."""
        self.ends += 1
        if self.ends == 1:
            self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def listened(flow: AnyFlow, step: int) -> Any:
    """Subscribe, wait for the end, and give the elements."""
    items: list[Any] = []
    await listening(flow, step, items)
    return items


async def listening(flow: AnyFlow, step: int, into: list[Any]) -> None:
    """Subscribe, and wait for the end."""
    subscriber = Listening(step, into)
    flow.subscribe(subscriber)
    try:
        await subscriber.over
    except asyncio.CancelledError:
        subscriber.left = True
        if subscriber.subscription is not None:
            subscriber.subscription.cancel()
        raise
    if subscriber.ends != 1:
        raise AssertionError(f"the end was told {subscriber.ends} times")
    if subscriber.error is not None:
        raise subscriber.error


async def later(item: Any) -> None:
    """Do nothing with an element, in a later turn."""
    await asyncio.sleep(0)


async def iterated(flow: AnyFlow) -> Any:
    """Read by ``async for``."""
    return [item async for item in flow]


async def opened(flow: AnyFlow) -> Any:
    """Read by ``open()``."""
    async with flow.open() as items:
        return [item async for item in items]


async def opened_and_left(flow: AnyFlow) -> Any:
    """Read one element by ``open()`` and leave."""
    async with flow.open() as items:
        return await anext(items)


End = Callable[[AnyFlow], Awaitable[Any]]

ENDS: Final[dict[str, End]] = {
    "to_list": lambda flow: flow.to_list(),
    "for_each": lambda flow: flow.for_each(lambda _: None),
    "for_each async": lambda flow: flow.for_each(later),
    "for_each async, 2": lambda flow: flow.for_each(later, max_concurrency=2),
    "async for": iterated,
    "open": opened,
    "reduce": lambda flow: flow.reduce(lambda left, _: left),
    "first": lambda flow: flow.first(),
    "open, left": opened_and_left,
    "subscribe": lambda flow: listened(flow, UNBOUNDED),
    "subscribe, by ones": lambda flow: listened(flow, 1),
    "run_sync": lambda flow: blocking(flow.run_sync),
}
EARLY: Final = {"first", "open, left"}
"""The ends that leave the flow behind its first element."""
SUBSCRIBERS: Final = {"subscribe", "subscribe, by ones"}
"""The ends that nobody awaits: what fails behind the end is the hook's."""

Around = Callable[[AnyFlow], AnyFlow]


def as_it_is(flow: AnyFlow) -> AnyFlow:
    """Leave the flow as it is."""
    return flow


PLACEMENTS: Final[dict[str, tuple[Around, Around]]] = {
    "fused": (as_it_is, as_it_is),
    "publish_on(current, 1) behind": (as_it_is, lambda flow: flow.publish_on(schedulers.current(), prefetch=1)),
    "publish_on(current, 1) before": (lambda flow: flow.publish_on(schedulers.current(), prefetch=1), as_it_is),
    "publish_on(thread) behind": (as_it_is, lambda flow: flow.publish_on(schedulers.thread("behind"))),
    "publish_on(thread) before": (lambda flow: flow.publish_on(schedulers.thread("before")), as_it_is),
    "subscribe_on(thread)": (as_it_is, lambda flow: flow.subscribe_on(schedulers.thread("under"))),
    "publish_on(threads) behind": (as_it_is, lambda flow: flow.publish_on(schedulers.threads(2)).map(same)),
    "publish_on(threads) before": (lambda flow: flow.publish_on(schedulers.threads(2)), as_it_is),
}
"""The operators between a source and the place, and behind the place."""


def same(item: Any) -> Any:
    """Change nothing."""
    return item
