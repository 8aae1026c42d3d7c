"""Iterating over a flow: ``async for``, `open`, and the end that awaits a function for each element."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar, copy_context
from functools import partial
from types import TracebackType
from typing import Any, Final, NoReturn, Protocol, cast

from attrs import define, field

from .._core import budgets
from .._core.budgets import Stride
from .._core.containers import new_list
from .._core.entered import Entered
from .._core.guard import FAILURES, as_failure, as_of_a_generator, cancels, is_closed_with
from .._core.missing import MISSING, NOTHING
from .._core.notes import add_note
from .._plan import FlowLike, Plan, Pulled, Snapshot
from ..hooks import discard
from ..spec import Subscription
from .assemble import assemble
from .driver import RegionDriver
from .host import FlowHost
from .lifetime import Lifetime
from .places import at_home
from .snapshot import snapshot
from .tree import DEEPEST

AT_ONCE: Final = 128
"""The most elements of a source that runs no code which are taken with one request."""


ELSEWHERE: Final = (
    "an iterator is read on another event loop than the one that subscribed. Subscribe on the loop that reads, "
    "or share the flow: each subscriber of flow.share() may be on a loop of its own"
)
"""The error of an iterator that is read on another event loop."""


_level: ContextVar[int] = ContextVar("reactive_aio.level", default=0)
"""How many iterators read one another, each in a function or a source of a flow that the one before reads."""


def nothing() -> Any:
    """Return nothing."""
    return NOTHING


def _unseen(plan: Plan) -> bool:
    """Return whether no code can see how many elements are taken: a list or a range, without any stage."""
    (region, *others), source = plan.regions, plan.source.operator
    return not others and not region.stages and isinstance(source, Pulled) and source.plain


Kept = Callable[[Any], Iterable[Any]]
"""Returns the elements in the value of an end."""


class Holder(Protocol):
    """An object that holds a failure until it is raised."""

    error: BaseException | None


def raise_held(holder: Holder) -> NoReturn:
    """Raise a failure that is held, and let go of it: its traceback leads back to its holder."""
    error, holder.error = holder.error, None
    try:
        raise cast("BaseException", error)
    finally:
        del error


def discard_kept(value: Any, kept: Kept | None) -> None:
    """Report to the hook the elements in the value of an end that returns it to nobody."""
    if value is not MISSING and kept is not None:
        discard(kept(value))


@define(eq=False)
class Held:
    """Holds a failure, with its first traceback. Each raise adds to it, and a shared flow raises one failure often."""

    error: BaseException | None = field(init=False, default=None)
    _traceback: TracebackType | None = field(init=False, default=None)

    def hold(self, error: BaseException) -> None:
        """Keep it as it comes."""
        self.error, self._traceback = error, error.__traceback__

    def as_it_came(self) -> BaseException | None:
        """Return the failure with its first traceback, to be raised now."""
        traceback, self._traceback = self._traceback, None
        return None if self.error is None else BaseException.with_traceback(self.error, traceback)


@define(eq=False)
class Steps(Held):
    """The elements of one subscription, each made when it is awaited (a Receiver).

    The last region runs on the consumer's loop. Where it has its input, or gets it there and then from regions on
    that loop, an element costs no detour over the event loop. A consumer that never suspends gives the loop a turn about
    every millisecond all the same.
    """

    lifetime: Lifetime = field(init=False, factory=Lifetime.awaited)
    driver: RegionDriver = field(init=False)
    _item: Any = field(init=False, default=NOTHING)
    _over: bool = field(init=False, default=False)
    _waiter: asyncio.Future[float] | None = field(init=False, default=None)
    """Returns how long the consumer may go on without a turn of the event loop."""
    _asked: bool = field(init=False, default=False)
    """Whether an element has been requested that has not come: a wait may have been cancelled."""
    _pulling: bool = field(init=False, default=False)
    """Whether the element is being made there and then."""
    _until: float = field(init=False, default=0.0)
    """When the event loop is to have a turn, by `budgets.clock`."""
    _left: bool = field(init=False, default=False)
    """Whether no element can be requested any more."""
    poll: Callable[[], Any] = field(init=False, default=nothing)
    """Returns the next element if it is there, else NOTHING. It is `nothing` while a requested element has not come,
    and while one that has come has not been taken."""
    _poll: Callable[[], Any] = field(init=False)
    """The value of `poll` at all other times."""
    given: Iterator[Any] = field(init=False, factory=partial(iter, ()))
    """The elements behind the one that was taken last, if they were requested together. `poll` returns them too."""
    _given: Iterator[Any] = field(init=False, factory=partial(iter, ()))
    """Those behind an element that has not been taken."""
    _stride: Stride | None = field(init=False, default=None)
    """Says how many elements to request, if no code can see it: many only while the code that reads them is quick."""
    _hops: bool = field(init=False)
    """Whether each element waits for a turn, so that the stack stays flat where generators read one another."""
    held: list[object] = field(init=False, factory=new_list)
    """The iterator, while a task awaits an element of it."""

    def begin(self, flow: FlowLike) -> None:
        """Subscribe, on the running loop."""
        plan = Plan.of(at_home(flow))
        unseen = _unseen(plan)
        if unseen:
            self._stride = Stride(AT_ONCE)
        context, level = copy_context(), _level.get()
        context.run(_level.set, level + 1)
        self._hops = level % DEEPEST == DEEPEST - 1
        self.driver = assemble(plan, self, FlowHost(self.lifetime), context, each=not unseen)
        self._poll = nothing if self._hops else self.driver.poll

    @property
    def by_one(self) -> bool:
        """Whether each element is requested alone."""
        return self._stride is None

    def made(self) -> Any:
        """Return the next element, which `poll` has not, if it can be made without a wait; else NOTHING."""
        driver = self.driver
        # Only a driver that awaits can be bare.
        if self.poll is nothing or self._over or (driver.awaits and driver.bare) or budgets.clock() >= self._until:
            return NOTHING
        self._pull()
        return NOTHING if self._item is NOTHING else self._take()

    def _take(self) -> Any:
        """Return the element that has come."""
        item, self._item = self._item, NOTHING
        self.poll, self.given = self._poll, self._given
        return item

    async def next(self) -> Any:
        """Return the next element, which neither `poll` nor `made` has. Raise StopAsyncIteration or the failure last."""
        driver = self.driver
        while driver.awaits and not self._pulling and self.poll is not nothing and driver.bare:
            self._pulling = True
            try:
                await driver.let_turn()
            finally:
                self._pulling = False
            item = self.poll()
            if item is not NOTHING:
                return item
        # A waiter may have been woken already: the element is not for both.
        if (self._waiter is not None or self._pulling) and (self._item is not NOTHING or not self._over):
            raise RuntimeError("two tasks await the next element of the same iterator. Subscribe once for each task")
        if self._item is NOTHING and not self._over:
            await self._arrival()
        if self._item is not NOTHING:
            return self._take()
        await self.lifetime.ended()
        self.error = self.lifetime.outcome(self.as_it_came())
        if self.error is not None:
            self.error = as_of_a_generator(self.error, "a function or source of the flow", StopAsyncIteration)
            raise_held(self)
        raise StopAsyncIteration

    async def _arrival(self) -> None:
        """Wait for the next element or the end."""
        if not self._asked:
            if not self._until:  # the first one, for which a turn is due already, or each one waits for a turn
                self._asked = True
                self.poll = nothing
                self.driver.request(1 if self._stride is None else self._stride.begin())
            else:
                if budgets.clock() >= self._until:
                    await self._turn()
                self._pull()
                if self._item is not NOTHING or self._over:
                    return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            part = await self._waiter
        finally:
            self._waiter = None
        if not self._hops:
            self._until = budgets.clock() + part

    async def _turn(self) -> None:
        """Let the event loop have a turn."""
        self._pulling = True
        try:
            self._until = await self.driver.budget.breath()
        finally:
            self._pulling = False

    def _pull(self) -> None:
        """Ask for the next element, and have it made there and then, as far as that goes."""
        self._asked = self._pulling = True
        self.poll = nothing
        budget, most = self.driver.budget, 1
        if (stride := self._stride) is not None:
            stride.is_over(self._until)
            most = stride.length
        outer = budget.until
        budget.until = outer or self._until
        try:
            self.driver.pull(most)
        finally:
            self._pulling = False
            budget.until = outer

    async def finished(self, error: BaseException | None) -> BaseException | None:
        """Cancel, and wait for the cleanup. Return the error to raise, which is ``error`` if there is one."""
        self.driver.cancel()
        self._over = True
        self.poll, self.given = nothing, iter(())
        self._wake()
        try:
            if error is not None and is_closed_with(error, self.driver.loop):  # nothing can be awaited here
                self._report(self.lifetime.unawaited)
            else:
                await self.lifetime.ended()
        except (asyncio.CancelledError, GeneratorExit):
            self._report(self.lifetime.unawaited)
            raise
        self._report(self.lifetime.report_once)
        return self.lifetime.outcome(error)

    async def close(self) -> None:
        """Cancel, and wait for the cleanup; raises what that has raised."""
        self.error = await self.finished(None)
        if self.error is not None:
            raise_held(self)

    def leave(self) -> None:
        """Cancel, because no reference to the iterator is left."""
        self._left = True
        self._report(self.lifetime.unawaited)
        driver = self.driver
        if not driver.closed and not driver.loop.is_closed():
            driver.cancel()

    def _report(self, failed: Callable[[BaseException | None], None]) -> None:
        """Report to the hooks what came for a cancelled wait: an element, or a failure for ``failed`` to see to."""
        item, self._item = self._item, NOTHING
        error, self.error = self.error, None
        # A copy, since this may be the last act of a function of the flow, which runs in the context itself.
        run = self.driver.context.copy().run
        if item is not NOTHING:
            run(discard, [item])
        run(failed, error)

    # -- the Receiver of the flow

    def on_subscribe(self, subscription: Subscription) -> None:
        """Nothing: each element is requested when it is awaited."""

    def on_chunk(self, items: list[Any]) -> None:
        """Take the requested element."""
        if self._left:
            discard(items)
            return
        self._asked = False
        if len(items) > 1:
            self._given = iter(items)
            self._item = next(self._given)
            self._poll = partial(next, self._given, NOTHING)
        else:
            self._item = items[0]
        self._wake()

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        if self._left:
            self.lifetime.report_once(error)
            return
        self.hold(error)
        self.on_complete()

    def on_complete(self) -> None:
        """Take the end."""
        self._asked = False
        self._over = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self.driver.budget.lend())


@define(eq=False, repr=False)
class Iteration:
    """The iterator of one subscription. It is cancelled when no reference to it is left."""

    steps: Steps
    """Its elements: `poll` saves a loop the coroutine of `anext`."""

    @staticmethod
    def over(flow: FlowLike) -> Iteration:
        """Subscribe, on the running loop."""
        steps = Steps()
        steps.begin(flow)
        return Iteration(steps) if steps.by_one else GivenIteration(steps)

    def __aiter__(self) -> Iteration:
        return self

    async def __anext__(self) -> Any:
        steps = self.steps
        item = steps.poll()
        if item is not NOTHING:
            return item
        if asyncio.get_running_loop() is not steps.driver.loop:
            raise RuntimeError(ELSEWHERE)
        # Kept, and not by this frame: the traceback of a failure leads to it, also of one that is handled below.
        steps.held.append(self)
        del self
        try:
            item = steps.made()
            return await steps.next() if item is NOTHING else item
        finally:
            steps.held.pop()

    def there(self) -> Any:
        """Return the next element if the last region can make it at once, else NOTHING. Nothing is requested."""
        steps = self.steps
        return NOTHING if steps.driver.awaits else steps.poll()

    @property
    def source(self) -> str:
        """Describe in words what feeds the last region."""
        return self.steps.driver.region.source

    def snapshot(self) -> Snapshot:
        """Look at how far each region has come, from any thread."""
        return snapshot(self.steps.driver)

    async def aclose(self) -> None:
        """Cancel, and wait for all cleanup. A task that waits for an element then gets the end.

        Raises what the cleanup has raised.
        """
        await self.steps.close()

    async def finished(self, error: BaseException | None) -> BaseException | None:
        """Cancel, and wait for the cleanup. Return the error to raise, which is ``error`` if there is one."""
        return await self.steps.finished(error)

    def __del__(self) -> None:
        # Left by `break`.
        self.steps.leave()


class GivenIteration(Iteration):
    """The iterator of a list or a range. Its elements are requested many at a time."""

    __slots__ = ()

    async def __anext__(self) -> Any:
        for item in self.steps.given:  # the next one, without a call
            return item
        rest = Iteration.__anext__(self)
        del self  # as in there
        return await rest


@define(eq=False)
class Opened(Entered):
    """A subscription for the length of a block. After it all cleanup is done (an async context manager).

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


async def for_each_async(flow: FlowLike, fn: Callable[[Any], Awaitable[object]], at: Callable[[int], str]) -> None:
    """Await ``fn`` for each element, in the task that calls.

    ``at`` tells the end and the place of an element, for errors.
    """
    loop, before = asyncio.get_running_loop(), cancels()
    taken = 0
    async with Opened(flow) as items:
        async for item in items:
            try:
                await fn(item)
            except FAILURES as error:
                if is_closed_with(error, loop):  # there may be no current task
                    raise
                failure = located(error, cancels() > before, f"in {at(taken)} of {items.source}")
                try:
                    if failure is error:
                        raise
                    raise failure from error
                finally:
                    del failure  # its traceback leads back to here
            del item  # which would be kept for as long as the flow waits
            taken += 1


def located(error: BaseException, cancelled: bool, note: str) -> BaseException:
    """Return the error to raise for one of an end's function, with a note. That of a cancelled task is unchanged."""
    if cancelled and isinstance(error, asyncio.CancelledError):
        return error
    add_note(error, note)
    return as_failure(error)
