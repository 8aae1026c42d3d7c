"""The ends of a flow on asyncio: what subscribes, waits, and returns when everything has been cleaned up."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from anyio.from_thread import start_blocking_portal
from attrs import define, field

from ..guard import FAILURES, Failed, as_failure
from ..hooks import discard, drop_error
from ..notes import add_note
from ..schedulers.base import Scheduler
from ..schedulers.current import Current
from ..segments import FlowLike, Plan, PublishOn, Snapshot, SubscribeOn, label
from ..spec import Subscriber, Subscription
from .assemble import PREFETCH, assemble, at_home, is_home
from .driver import RegionDriver
from .edges import SubscriberEdge, check_subscriber
from .emission import NOTHING
from .host import Host
from .lifetime import Lifetime
from .snapshot import snapshot
from .turns import BUDGET

if TYPE_CHECKING:
    from ..flow import Flow

T = TypeVar("T")
R = TypeVar("R")

MISSING: Final[Any] = object()


def come_home(flow: Flow[T]) -> Flow[T]:
    """Give a flow whose last region runs on the running loop, with one more boundary where it did not."""
    return flow if is_home(flow) else flow.publish_on(Current(), PREFETCH)


def subscribe(flow: FlowLike, subscriber: Subscriber[Any], *, ended: Callable[[], None] | None = None) -> None:
    """Subscribe somebody else's subscriber; its signals come where the last region runs.

    ``ended`` is called when everything has been cleaned up, on whatever thread that is.
    """
    check_subscriber(subscriber)
    edge = SubscriberEdge(subscriber, _maker(flow))
    lifetime = Lifetime()
    try:
        assemble(Plan.of(flow), edge, Host(lifetime), copy_context(), each=True)
    except RuntimeError as error:
        if _no_loop():
            raise RuntimeError(
                "subscribe() needs a running event loop: call it in a coroutine, use flow.run_sync(), or place "
                "the flow with subscribe_on(schedulers.thread('name'))"
            ) from error
        raise
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
    for step in reversed(flow.steps):
        operator = step.operator
        if not isinstance(operator, (PublishOn, SubscribeOn)) and not operator.forwards:
            return str(step)
    return str(flow.source)


@define(eq=False)
class _Result:
    """Takes the value of a flow of at most one element (a Receiver)."""

    over: asyncio.Future[None]
    gathered: bool = False
    """Whether the value is a list of elements."""
    value: Any = MISSING
    error: BaseException | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        """Ask for the value."""
        subscription.request(1)

    def on_chunk(self, items: list[Any]) -> None:
        """Take it."""
        self.value = items[0]

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        """Wake who waits."""
        if not self.over.done():
            self.over.set_result(None)

    def drop(self) -> None:
        """Tell the hooks of what has come and will reach nobody, because the wait was cancelled."""
        if self.error is not None:
            drop_error(self.error)
        elif self.value is not MISSING:
            discard(self.value if self.gathered else [self.value])


async def value_of(flow: Flow[T], default: Any, *, gathered: bool = False) -> T:
    """Run a flow of at most one element and give the element, or ``default``; it may be what was ``gathered`` of others."""
    lifetime = Lifetime.awaited()
    result = _Result(asyncio.get_running_loop().create_future(), gathered)
    driver = assemble(Plan.of(flow), result, Host(lifetime), copy_context())
    try:
        try:
            await result.over
        finally:
            driver.cancel()
            await lifetime.ended()
    except asyncio.CancelledError:
        result.drop()
        lifetime.unawaited()
        raise
    result.error = lifetime.outcome(result.error)
    if result.error is not None:
        _raise(result)
    return cast("T", default if result.value is MISSING else result.value)


def _raise(holder: _Result | Iteration) -> NoReturn:
    """Raise an error that is held, and let go of it: its traceback leads back to its holder."""
    error, holder.error = holder.error, None
    try:
        raise cast("BaseException", error)
    finally:
        del error


@define(eq=False)
class Iteration:
    """The elements of one subscription for ``async for``; each is made when it is awaited.

    The last region runs on the consumer's loop. Where it has its input, or gets it there and then from regions on
    that loop, an element costs no detour over the event loop. A consumer that never suspends gives the loop a turn about
    every millisecond all the same.
    """

    _lifetime: Lifetime = field(init=False, factory=Lifetime.awaited)
    _driver: RegionDriver = field(init=False)
    _item: Any = field(init=False, default=NOTHING)
    _over: bool = field(init=False, default=False)
    error: BaseException | None = field(init=False, default=None)
    _waiter: asyncio.Future[None] | None = field(init=False, default=None)
    _asked: bool = field(init=False, default=False)
    """Whether an element has been requested that has not come: a wait may have been cancelled."""
    _pulling: bool = field(init=False, default=False)
    """Whether the element is being made there and then."""
    _until: float = field(init=False, default=0.0)
    """When the event loop is to have a turn, by `time.perf_counter`."""

    @staticmethod
    def over(flow: FlowLike) -> Iteration:
        """Subscribe, on the running loop."""
        iterator = Iteration()
        slot = _Slot(weakref.ref(iterator))
        iterator._driver = assemble(Plan.of(at_home(flow)), slot, Host(iterator._lifetime), copy_context(), each=True)
        return iterator

    def __aiter__(self) -> Iteration:
        return self

    async def __anext__(self) -> Any:
        # What has come for a wait that was cancelled goes first.
        if self._item is NOTHING and not self._asked:
            item = self._driver.poll()
            if item is not NOTHING:
                return item
        # Whoever waits may have been woken already: the element is not for both.
        if (self._waiter is not None or self._pulling) and (self._item is not NOTHING or not self._over):
            raise RuntimeError("two tasks await the next element of one iterator: give each a subscription of its own")
        if self._item is NOTHING and not self._over:
            await self._arrival()
        if self._item is not NOTHING:
            item, self._item = self._item, NOTHING
            return item
        await self._lifetime.ended()
        self.error = self._lifetime.outcome(self.error)
        if isinstance(self.error, StopAsyncIteration):
            # As a generator does (PEP 479): a failure is never taken for the end.
            failed = RuntimeError("a function or source of the flow raised StopAsyncIteration")
            failed.__cause__, self.error = self.error, failed
        if self.error is not None:
            _raise(self)
        raise StopAsyncIteration

    async def _arrival(self) -> None:
        """Wait for the next element or the end."""
        if not self._asked:
            self._asked = True
            if perf_counter() < self._until:
                self._pulling = True
                try:
                    self._driver.pull()
                finally:
                    self._pulling = False
                if self._item is not NOTHING or self._over:
                    return
            else:
                self._driver.request(1)
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._until = perf_counter() + BUDGET

    def fill(self, item: Any, error: BaseException | None, *, over: bool) -> None:
        """Take a signal."""
        self._asked = False
        if over:
            self._over, self.error = True, error
        else:
            self._item = item
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def source(self) -> str:
        """What feeds the last region, in words."""
        return self._driver.region.source

    def snapshot(self) -> Snapshot:
        """Look at how far each region has come, from any thread."""
        return snapshot(self._driver)

    async def aclose(self) -> None:
        """Cancel, and wait until everything has been cleaned up; whoever asks for an element then hears of the end.

        Raises what the cleanup has raised.
        """
        self.error = await self.finished(None)
        if self.error is not None:
            _raise(self)

    async def finished(self, error: BaseException | None) -> BaseException | None:
        """Cancel, and wait for the cleanup; return what is to be raised, which is ``error`` if there is one."""
        self._driver.cancel()
        self._over = True
        self._wake()
        try:
            await self._lifetime.ended()
        except asyncio.CancelledError:
            self._lifetime.unawaited()
            raise
        finally:
            self._drop()
        return self._lifetime.outcome(error)

    def _drop(self) -> None:
        """Tell the hooks of what has come for a wait that was cancelled, and will not be asked for any more."""
        item, self._item = self._item, NOTHING
        error, self.error = self.error, None
        # A copy, since this may be the last act of a function of the flow, which runs in the context itself.
        if item is not NOTHING:
            self._driver.context.copy().run(discard, [item])
        if error is not None:
            self._driver.context.copy().run(drop_error, error)

    def __del__(self) -> None:
        # Left by `break`: nobody holds the iterator any more.
        driver = getattr(self, "_driver", None)
        if driver is not None:
            self._drop()
            driver.context.copy().run(self._lifetime.unawaited)
            if not driver.closed and not driver.loop.is_closed():
                driver.cancel()


@define(eq=False)
class _Slot:
    """Fills an iterator, without keeping it alive (a Receiver)."""

    iterator: weakref.ref[Iteration]

    def on_subscribe(self, subscription: Subscription) -> None:
        """Nothing: the iterator asks for each element."""

    def on_chunk(self, items: list[Any]) -> None:
        """Hand over the element that was asked for."""
        self._tell(items[0], None, over=False)

    def on_error(self, error: BaseException) -> None:
        """Hand over the failure."""
        self._tell(NOTHING, error, over=True)

    def on_complete(self) -> None:
        """Hand over the end."""
        self._tell(NOTHING, None, over=True)

    def _tell(self, item: Any, error: BaseException | None, *, over: bool) -> None:
        iterator = self.iterator()
        if iterator is not None:
            iterator.fill(item, error, over=over)
        elif error is not None:
            drop_error(error)
        elif not over:
            discard([item])


@define(eq=False)
class Opened:
    """A subscription for the length of a block, behind which everything has been cleaned up (an async context manager).

    By hand, since contextlib sets attributes of exceptions, which not every class allows.
    """

    _flow: FlowLike
    _items: Iteration = field(init=False)

    async def __aenter__(self) -> Iteration:
        self._items = Iteration.over(self._flow)
        return self._items

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        failure = await self._items.finished(error)
        try:
            if error is None and failure is not None:
                raise failure
        finally:
            del failure  # its traceback leads back to here


async def for_each_async(flow: FlowLike, fn: Callable[[Any], Awaitable[object]]) -> None:
    """Await ``fn`` for each element, in the task that calls."""
    cancelling = cast("asyncio.Task[Any]", asyncio.current_task()).cancelling
    before = cancelling()
    taken = 0
    async with Opened(flow) as items:
        async for item in items:
            try:
                await fn(item)
            except FAILURES as error:
                if isinstance(error, asyncio.CancelledError) and cancelling() > before:
                    raise
                add_note(
                    error,
                    f"in for_each({label(fn)}), on element #{taken} of {items.source}",
                )
                failure = as_failure(error)
                if failure is error:
                    raise
                raise failure from error
            taken += 1


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
                f"run_sync() would wait for itself: a region of the flow is to run on {place.name}, which the call blocks. "
                "Await an end of the flow instead, or place it elsewhere"
            )
    # Its failure comes as a value: the portal would end with an exit, and would set attributes of the exception.
    with start_blocking_portal() as portal:
        outcome = portal.call(attempt)
    if isinstance(outcome, Failed):
        raise outcome.take()
    return outcome


def _places(flow: FlowLike) -> Iterator[Scheduler]:
    """Give the schedulers of a flow and of those that it reads, as far as they are places of their own."""
    flows = [flow]
    while flows:
        flow = flows.pop()
        flows += flow.source.operator.inner
        for step in flow.steps:
            if isinstance(step.operator, (PublishOn, SubscribeOn)):
                scheduler = step.operator.scheduler
                if not getattr(scheduler, "stays", False):
                    yield scheduler
