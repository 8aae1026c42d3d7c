"""Stopping a service: its sources emit nothing more, and the elements that they have emitted are finished.

The stop goes to the sources of a flow, not to its end. So elements in a buffer, on another thread or in an awaited
function are still processed, and then the flow completes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, singledispatch, wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from weakref import WeakSet

from attrs import define, evolve, field

from .._core.containers import new_list, new_set
from .._core.guard import FAILURES, as_failure
from .._core.settling import settled
from .._core.tasks import begin_task
from .._fusion import Placed
from .._plan import FlowLike, Nodes, PublishOn, Pulled, Source
from .._plan.capabilities import LOOP
from ..hooks import also_failed, drop_error
from ..operators._fluent import is_async, is_flow
from ..operators.combining.switch_if_empty import SwitchIfEmpty
from ..operators.filtering.take_until_other import TakeUntilOther
from ..operators.flattening.switch_map import SwitchMap
from ..operators.recovering.repeat import Repeat
from ..operators.recovering.repeat_when import RepeatWhen
from ..operators.recovering.resume import Always, OnErrorResumeNext
from ..operators.recovering.retry import Retry
from ..operators.recovering.retry_if import RetryIf
from ..operators.recovering.retry_when import RetryWhen
from ..operators.recovering.timeout import Timeout
from ..operators.sharing.shared import Share
from ..operators.sourcing.callback import Emitter, FromCallback
from ..operators.sourcing.defer import Defer
from ..operators.sourcing.using import Using
from ..operators.timing.delay_subscription import DelaySubscription
from .calling import Condition
from .until import PulledUntil, RepeatUntil, WaitingUntil

if TYPE_CHECKING:
    from .flow import Flow

T = TypeVar("T")

TOO_LATE: Final = "after the signal to stop, and was cancelled. Raise grace= to give it more time"


async def run_until(
    condition: Condition, grace: float, method: str, flow: Flow[T], end: Callable[[Flow[T]], Awaitable[None]]
) -> None:
    """Await an end of a flow. Stop the flow when the condition is met, and cancel it ``grace`` seconds later."""
    stop, limit = Stop(), asyncio.timeout(None)
    watch = Watch(condition, stop, limit, grace)
    if isinstance(condition, asyncio.Event) and condition.is_set():
        stop.request()  # before the flow begins: its first turn may come before that of the watch
    try:
        async with limit:
            watching = begin_task(watch.run())
            try:
                await end(told(flow, stop, read=False))
            finally:
                watch.left = True
                watching.cancel()
                await settled(watching)
                if isinstance(condition, Coroutine):  # a flow may end before the watch comes to await it
                    condition.close()
    except asyncio.CancelledError:
        for failure in watch.failures:
            drop_error(failure)
        raise
    except FAILURES as error:
        late = isinstance(error, TimeoutError) and limit.expired()
        failed = TimeoutError(f"{method}() was still at work {grace:g} s {TOO_LATE}") if late else error
        for failure in watch.failures:
            also_failed(failed, failure)
        if late:
            raise failed from error.__cause__
        raise
    if watch.failures:
        raise watch.failures.pop()


@define(eq=False)
class Watch:
    """Waits for a condition, beside an end, and then stops the flow within a time limit."""

    condition: Condition
    stop: Stop
    limit: asyncio.Timeout
    grace: float
    left: bool = field(init=False, default=False)
    """Whether the flow has ended, so that a cancel comes from the end."""
    failures: list[BaseException] = field(init=False, factory=new_list)
    """The error of the condition or its cleanup, if there is one."""

    async def run(self) -> None:
        """Wait. If cancelled, wait for the end of the cleanup."""
        try:
            await _holds(self.condition)
        except FAILURES as error:
            if not (self.left and isinstance(error, asyncio.CancelledError)):
                self.failures.append(as_failure(error))
        if not self.left:
            self.stop.request()
            self.limit.reschedule(asyncio.get_running_loop().time() + self.grace)


async def _holds(condition: Condition) -> None:
    """Wait until it is time to stop."""
    if isinstance(condition, asyncio.Event):
        await condition.wait()
    elif callable(condition):
        await condition()
    elif isinstance(condition, asyncio.Future):
        await asyncio.wait((condition,))  # somebody else's, which outlives a cancel of this
        condition.result()
    else:
        await condition


class Completable(Protocol):
    """A source that completes at a stop."""

    def complete(self) -> None:
        """Complete, after the elements that wait; from any thread."""


@define(eq=False)
class Stop:
    """Stops the sources of one subscription, so that they emit nothing more. They may be on any thread."""

    requested: bool = field(init=False, default=False)
    sources: WeakSet[Completable] = field(init=False, factory=WeakSet["Completable"])
    """The sources of callbacks, which complete after the waiting elements, and the combinators that wait."""
    _lock: Lock = field(init=False, factory=Lock)
    _waiting: set[asyncio.Future[None]] = field(init=False, factory=new_set)

    def request(self) -> None:
        """Stop the sources."""
        with self._lock:
            self.requested = True
            waiting, self._waiting = self._waiting, set()
            sources = list(self.sources)
        for future in waiting:
            future.get_loop().call_soon_threadsafe(_wake, future)
        for source in sources:
            source.complete()

    async def wait(self) -> None:
        """Wait until a stop is requested, on any event loop."""
        future = asyncio.get_running_loop().create_future()
        with self._lock:
            if self.requested:
                return
            self._waiting.add(future)
        try:
            await future
        finally:
            with self._lock:
                self._waiting.discard(future)

    def tell(self, source: Completable) -> None:
        """Complete a source when a stop is requested."""
        with self._lock:
            self.sources.add(source)
            requested = self.requested
        if requested:
            source.complete()

    def bell(self) -> FlowLike:
        """Return a flow that completes when a stop is requested."""
        from .flow import Flow

        waiting, over = Flow.from_awaitable(self.wait).ignore_elements(), Flow[Any].empty()
        return Flow.defer(lambda: over if self.requested else waiting)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# -- telling the sources


def told(flow: FlowLike, stop: Stop, *, read: bool = True) -> Flow[Any]:
    """Return a flow whose sources emit nothing more once a stop is requested.

    A flow that is ``read`` by a combinator ends at once, since the combinator may not ask it for another element. The
    results of another engine are not taken apart. There the flow ends with the elements that have arrived, and the
    operators that follow on a loop finish those.
    """
    from .flow import Flow

    nodes = flow.__nodes__
    placed = nodes.source
    if placed.operator.capabilities is not LOOP:
        steps = nodes.steps
        here = next((n for n, step in enumerate(steps) if isinstance(step.operator, PublishOn)), len(steps))
        arrived = TakeUntilOther[Any](Nodes(placed, steps[:here]), stop.bell())
        return Flow(Nodes(Placed(arrived, placed.origin), steps[here:]))
    source = _told(placed.operator, stop)
    if source is None:
        source = TakeUntilOther[Any](Nodes(placed), stop.bell())
    elif read and isinstance(source, Pulled):
        source = TakeUntilOther[Any](Nodes(Placed(source, placed.origin)), stop.bell())
    return Flow(Nodes(Placed(source, placed.origin), nodes.steps))


@singledispatch
def _told(source: Any, stop: Stop) -> Source[Any] | None:
    """Return a source that heeds a stop. Return None for a source that reads no flow: it is cancelled.

    A combinator has the flows whose elements it emits in the field ``flow`` or ``flows``. Another flow that it reads
    says when, or how long. A flow that a function makes of an element belongs to the processing of the element, and is
    finished.
    """
    names = {each.name for each in getattr(source, "__attrs_attrs__", ())}
    heeding: Source[Any] | None = None
    if "flows" in names:
        heeding = evolve(source, flows=tuple(told(each, stop) for each in source.flows))
    elif "flow" in names:
        heeding = evolve(source, flow=told(source.flow, stop))
    return heeding


@_told.register(Pulled)
def _(source: Pulled[Any], stop: Stop) -> Source[Any]:
    return PulledUntil(source, stop)


@_told.register(Share)
def _(source: Share[Any], stop: Stop) -> None:
    """Return the flow unchanged: others read it too."""


@_told.register(FromCallback)
def _(source: FromCallback[Any], stop: Stop) -> Source[Any]:
    register = source.register

    @wraps(register)
    def begin(emitter: Emitter[Any]) -> Any:
        stop.tell(emitter)
        return None if stop.requested else register(emitter)

    @wraps(register)
    async def begin_async(emitter: Emitter[Any]) -> Any:
        undo = begin(emitter)
        return None if undo is None else await undo

    return evolve(source, register=begin_async if is_async(register) else begin)


@_told.register(Defer)
def _(source: Defer[Any], stop: Stop) -> Source[Any]:
    return evolve(source, factory=_then_told(source.factory, stop))


@_told.register(Using)
def _(source: Using[Any], stop: Stop) -> Source[Any]:
    return evolve(source, fn=_then_told(source.fn, stop))


@_told.register(OnErrorResumeNext)
def _(source: OnErrorResumeNext[Any], stop: Stop) -> Source[Any]:
    fallback = source.fallback
    heeding = Always(told(fallback.flow, stop)) if isinstance(fallback, Always) else _then_told(fallback, stop)
    return evolve(source, flow=told(source.flow, stop), fallback=heeding)


@_told.register(SwitchIfEmpty)
def _(source: SwitchIfEmpty[Any], stop: Stop) -> Source[Any]:
    return evolve(source, flow=told(source.flow, stop), other=told(source.other, stop))


@_told.register(Timeout)
def _(source: Timeout[Any], stop: Stop) -> Source[Any]:
    fallback = source.fallback
    return evolve(source, flow=told(source.flow, stop), fallback=None if fallback is None else told(fallback, stop))


@_told.register(SwitchMap)
def _(source: SwitchMap[Any], stop: Stop) -> Source[Any]:
    """Stop the flow of the latest element too. It may be cancelled at any time, and often has no end."""
    return evolve(source, flow=told(source.flow, stop), fn=_then_told(source.fn, stop))


@_told.register(Repeat)
def _(source: Repeat[Any], stop: Stop) -> Source[Any]:
    return RepeatUntil(told(source.flow, stop), source.times, stop=stop)


@_told.register(RepeatWhen)
@_told.register(RetryWhen)
@_told.register(RetryIf)
@_told.register(Retry)
@_told.register(DelaySubscription)
def _(source: Any, stop: Stop) -> Source[Any]:
    return WaitingUntil(source, stop, partial(told, stop=stop))


def _then_told(make: Callable[..., FlowLike], stop: Stop) -> Callable[..., FlowLike]:
    """Return a function that makes the same flow, which heeds a stop."""

    @wraps(make)
    def make_told(*args: Any) -> Any:
        flow: Any = make(*args)
        return told(flow, stop) if is_flow(flow) else flow

    return make_told
