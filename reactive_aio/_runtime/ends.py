"""The ends of a flow on asyncio: what subscribes, waits, and returns when everything has been cleaned up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import copy_context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from anyio.from_thread import start_blocking_portal
from attrs import define

from .._core.guard import FAILURES, Failed
from .._core.missing import MISSING
from .._fusion import Placed, calling_line
from .._plan import Awaited, Buffered, FlowLike, Plan, PublishOn, Pulled, SubscribeOn
from .._plan.capabilities import LOOP
from .._plan.nodes import reads_nothing
from .._plan.source import Source
from ..schedulers.base import Scheduler
from ..schedulers.current import Current
from ..spec import Subscriber, Subscription
from .assemble import assemble
from .direct import run_directly
from .direct_awaited import run_awaited
from .direct_buffered import run_buffered
from .edges import SubscriberEdge, check_subscriber
from .host import FlowHost
from .iterating import Held, Kept, discard_kept, raise_held
from .lifetime import Lifetime
from .places import PREFETCH

if TYPE_CHECKING:
    from .._flow.flow import Flow
    from .._fusion import Stage

T = TypeVar("T")
R = TypeVar("R")


def subscribe(flow: FlowLike, subscriber: Subscriber[Any], *, ended: Callable[[], None] | None = None) -> None:
    """Subscribe a subscriber of other code. Its signals come on the loop of the last region.

    ``ended`` is called when everything has been cleaned up, on whatever thread that is.
    """
    check_subscriber(subscriber)
    edge = SubscriberEdge(subscriber, _maker(flow))
    lifetime, context = Lifetime.told(), copy_context()
    try:
        assemble(Plan.of(flow), edge, FlowHost(lifetime), context, each=True)
    except RuntimeError as error:
        if _no_loop():
            raise RuntimeError(
                "subscribe() needs a running event loop. Call it in a coroutine, use flow.run_sync(), or place "
                "the flow with subscribe_on(schedulers.thread('name'))"
            ) from error
        raise
    lifetime.then(lambda: context.copy().run(lifetime.settle, edge.take_error()))
    if ended is not None:
        lifetime.then(ended)


def _no_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


def _maker(flow: FlowLike) -> str:
    """Name the operator that makes the elements that leave the flow."""
    nodes = flow.__nodes__
    for step in reversed(nodes.steps):
        operator = step.operator
        if not isinstance(operator, (PublishOn, SubscribeOn)) and not operator.forwards:
            return str(step)
    return str(nodes.source)


@define(eq=False)
class _Result(Held):
    """Takes the value of a flow of at most one element (a Receiver)."""

    over: asyncio.Future[None]
    kept: Kept | None
    value: Any = MISSING

    def on_subscribe(self, subscription: Subscription) -> None:
        """Ask for the value."""
        subscription.request(1)

    def on_chunk(self, items: list[Any]) -> None:
        """Take it."""
        self.value = items[0]

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self.hold(error)
        self.on_complete()

    def on_complete(self) -> None:
        """Wake the waiting task."""
        if not self.over.done():
            self.over.set_result(None)

    def drop(self, lifetime: Lifetime) -> None:
        """Report to the hooks what reaches nobody, because the wait was cancelled."""
        lifetime.unawaited(self.error)
        discard_kept(self.value, self.kept)


def value_of(
    flow: Flow[Any], stage: Stage[Any, T], default: Any, *, kept: Kept | None = None
) -> Coroutine[Any, Any, T]:
    """Run a flow followed by a stage that emits at most one element, as `only_of` does."""
    nodes, end = flow.__nodes__, Placed(stage, calling_line(4))
    source, steps = nodes.source.operator, nodes.steps
    if nodes.scheduler is not None and not nodes.scheduler.is_here():
        nodes = nodes.then(Placed(PublishOn(Current(), PREFETCH), end.origin))
    elif source.capabilities is LOOP:
        kinds = tuple([type(step.operator) for step in steps])
        if SubscribeOn in kinds:
            steps = tuple([step for step in steps if type(step.operator) is not SubscribeOn])  # they say: here
        way = _way(type(source), kinds)
        if way is run_buffered:
            return run_buffered(nodes.source, (*steps, end), default, kept=kept)
        if way is run_directly and nodes.scheduler is None:
            return run_directly(nodes.source, (*steps, end), default, kept=kept)
        if way is run_awaited and nodes.scheduler is None:
            return run_awaited(nodes.source, (*steps, end), default, kept=kept)
    # Where nothing is rewritten for an engine, the end changes nothing of the flow's own plan, which is kept.
    plan = Plan.of(nodes).then(end) if source.capabilities is LOOP else Plan.of(nodes.then(end))
    return only_of(plan, default, kept=kept)


@lru_cache(maxsize=512)
def _way(source: type[Source[Any]], steps: tuple[type[object], ...]) -> object:
    """Return what runs a flow of one region on the event loop of the subscriber, which takes no plan; None for all others."""
    if PublishOn in steps or not reads_nothing(source):
        return None
    if issubclass(source, Awaited):
        return run_awaited
    if issubclass(source, Buffered):
        return run_buffered
    # One that needs no demand, such as a failure, begins when it is subscribed to.
    return run_directly if issubclass(source, Pulled) and source.plain is Pulled.plain else None


async def only_of(plan: Plan, default: Any, *, kept: Kept | None = None) -> Any:
    """Run the plan of a flow of at most one element and return the element, or ``default``.

    If nobody gets it, the elements that it has ``kept`` go to the hook.
    """
    lifetime = Lifetime.awaited()
    result = _Result(asyncio.get_running_loop().create_future(), kept)
    driver = assemble(plan, result, FlowHost(lifetime), copy_context())
    may_wait = True
    try:
        try:
            await result.over
        except GeneratorExit:  # somebody closes this coroutine
            may_wait = False
            raise
        finally:
            driver.cancel()
            if may_wait:
                await lifetime.ended()
    except (asyncio.CancelledError, GeneratorExit):
        result.drop(lifetime)
        raise
    result.error = lifetime.outcome(result.as_it_came())
    if result.error is not None:
        discard_kept(result.value, kept)
        raise_held(result)
    return default if result.value is MISSING else result.value


def run_in_loop(flow: FlowLike, main: Callable[[], Awaitable[R]]) -> R:
    """Run a coroutine that awaits ``flow`` on a loop of its own; beside a running loop, on a thread of its own."""

    async def call() -> R:
        return await main()

    async def attempt() -> R | Failed:
        try:
            return await main()
        except FAILURES as error:
            return Failed(error)

    if _no_loop():
        with asyncio.Runner() as runner:
            return runner.run(call())
    for place in _places(flow):
        if place.is_here():
            raise RuntimeError(
                f"run_sync() would wait for itself: it blocks {place.name}, where a region of the flow must run. "
                "Await an end of the flow, or place the region on another scheduler"
            )
    # Its failure comes as a value: the portal would end with an exit, and would set attributes of the exception.
    with start_blocking_portal() as portal:
        outcome = portal.call(attempt)
    if isinstance(outcome, Failed):
        raise outcome.take()
    return outcome


def _places(flow: FlowLike) -> Iterator[Scheduler]:
    """Yield the schedulers of a flow and of the flows that it reads, if they are places of their own."""
    flows = [flow]
    while flows:
        nodes = flows.pop().__nodes__
        flows += nodes.source.operator.inner
        for step in nodes.steps:
            if isinstance(step.operator, (PublishOn, SubscribeOn)):
                scheduler = step.operator.scheduler
                if not getattr(scheduler, "stays", False):
                    yield scheduler
