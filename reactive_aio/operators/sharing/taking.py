"""Taking: the elements of what several share in the task that awaits them, without a region in between."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Protocol, Self, TypeVar

from attrs import define, field

from ..._core import budgets
from ..._core.containers import new_deque
from ..._core.guard import as_of_a_generator
from ..._plan import Plan
from ...hooks import discard, drop_error
from ...spec import refill_after
from .delivery import soon
from .reader import End, Reader, failure

if TYPE_CHECKING:
    from ..._plan.nodes import FlowLike
    from .broadcast import Broadcast

R = TypeVar("R", bound=Reader)
T = TypeVar("T")

WELL: Final[End] = (None, None)


class Several(Protocol):
    """A source that several read."""

    @property
    def lag(self) -> int:
        """How far one reader may be ahead of another."""
        ...

    @property
    def prefetch(self) -> int | None:
        """The number of elements to read ahead for each reader."""
        ...

    def admit(self, kind: Callable[[Broadcast, Any], R], inlet: Any, /) -> R:
        """Add a reader, on the event loop where it reads."""
        ...


@define(eq=False)
class TaskReader(Reader):
    """A reader whose task takes the elements itself, or is woken when they have been taken for it."""

    prefetch: int | None = None
    """The number of elements that it requests before its task does."""
    waiter: asyncio.Future[float] | None = field(init=False, default=None)
    """Wakes the task, and says when the event loop is to have a turn."""
    items: deque[Any] = field(init=False, factory=new_deque)
    """The elements that have been taken, until the task comes for them."""
    end: End | None = field(init=False, default=None)
    """The end after the elements: of the stream, or of this reader alone."""
    awaited: bool = field(init=False, default=False)
    """Whether the task awaits an element: one that is to come, or its turn to take one that is there."""
    steps: object = field(init=False, default=None)
    """The `Steps` while their task awaits an element: they are kept here, and not by the frame that waits."""
    until: float = field(init=False, default=0.0)
    """When the event loop is to have a turn, by `budgets.clock`; 0.0 while the task waits."""
    deadline: float = field(init=False, default=0.0)
    """The same, while the task waits too."""
    _first: int = field(init=False, default=0)
    """The number of the element that it began with."""
    _left: int = field(init=False, default=0)
    """The number of elements that the task takes before more are requested."""

    @property
    def waits(self) -> bool:
        """Whether its task awaits an element. A prefetch requests more than the task does."""
        return self.awaited

    def begin(self) -> None:
        """Ask for the elements that are read ahead."""
        self._first = self.cursor.at
        if self.prefetch is not None:
            self._left = refill_after(self.prefetch)
            self.request(self.prefetch)

    def take_one(self) -> Any:
        """Return an element for the task. There is one."""
        if self.prefetch is not None:
            self._left -= 1
            if not self._left:
                self._left = refill_after(self.prefetch)
                self.request(self._left)
        return self.items.popleft()

    @property
    def figures(self) -> tuple[int, int, int]:
        """The number of elements that have been requested, have come, and wait for the task."""
        cursor, waiting = self.cursor, len(self.items)
        return cursor.goal - self._first, cursor.at - self._first, waiting

    def _taking(self) -> Callable[[list[Any]], object]:
        return self._receive

    def _receive(self, items: list[Any]) -> None:
        """Keep elements that the task has requested, and wake it. It calls no code of the user, and needs no context."""
        self.items += items
        if (waiter := self.waiter) is not None:
            waking = self.delivery.waking
            waking.waiters.append(waiter)  # as `wake`, without the calls: each element comes by here for each reader
            if not waking.posted:
                waking.post()

    def keep_open(self) -> None:
        """Nothing: no other reader ends what the task has subscribed to."""

    def give(self, items: list[Any], end: End | None) -> None:
        """Keep elements that the task has requested, and then the end, and wake it; in its context."""
        if self.cancelled:
            discard(items)
            return
        self.items += items
        self.end = end
        self.wake()

    def fail(self, error: BaseException) -> None:
        """Fail the task, because this reader alone has been removed."""
        if not self.cancelled:
            self.end = error, None
            self.wake()

    def cancel(self) -> None:
        """Leave. Elements and a failure for which the task has not come go to the hooks."""
        super().cancel()
        self.let_go()
        items, end = tuple(self.items), self.end or WELL
        self.items.clear()
        self.end = WELL
        if items:
            discard(items)
        if end[0] is not None:
            drop_error(end[0])

    def wake(self) -> None:
        """Let the task go on, if it waits."""
        if self.waiter is not None:
            self.delivery.waking.add(self.waiter)


@define(eq=False)
class Place:
    """The part of an Inlet that a `TaskReader` needs: where its task runs, and how to wake it."""

    _flow: FlowLike
    loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    context: Context = field(init=False, factory=copy_context)
    released: asyncio.Event = field(init=False, factory=asyncio.Event)
    """Set when nothing is left to clean up."""
    ident: int = field(init=False, factory=get_ident)
    """Of the thread of the loop."""
    _begun: set[Any] = field(init=False)
    """The set of all that has begun on the loop. It is kept, because nothing can be imported while the interpreter shuts down."""

    @property
    def where(self) -> str:
        """Return the name of the flow, for the failure of an evicted reader."""
        return Plan.of(self._flow).regions[-1].source

    def hold(self) -> Callable[..., None]:
        """Return a function to call, on any thread, after the cleanup. Until then the loop holds this."""
        from ..._runtime.host import begun

        self._begun = begun(self.loop)
        self._begun.add(self)
        return self._release

    def _release(self, join: Callable[[], None] | None = None) -> None:
        if get_ident() == self.ident:
            self._over()
        else:
            soon(self.loop, self._over)

    def _over(self) -> None:
        self._begun.discard(self)
        self.released.set()

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call something on the loop, from any thread."""
        soon(self.loop, handle, value)


@define(eq=False, repr=False)
class Steps:
    """The elements of one subscription, each taken from the log when it is awaited, or read ahead. One task awaits them."""

    reader: TaskReader
    _place: Place

    @classmethod
    def begin(cls, flow: FlowLike) -> Self:
        """Subscribe, on the running loop, to a shared flow without further operators."""
        place, source = Place(flow), several(flow)
        reader = source.admit(partial(TaskReader, prefetch=source.prefetch), place)
        reader.begin()
        return cls(reader, place)

    async def __anext__(self) -> Any:
        """Take the next element. Raise StopAsyncIteration after the last, or the failure."""
        reader, place = self.reader, self._place
        items = reader.items
        if items and budgets.clock() < reader.until:
            return reader.take_one()
        if reader.awaited:
            raise RuntimeError("two tasks await the next element of the same iterator. Subscribe once for each task")
        reader.awaited, reader.until = True, 0.0
        # Kept, and not by this frame: a task that has been cancelled leads to it. Else the reader would not leave while
        # somebody keeps the task, and would hold up the others.
        reader.steps = self
        del self
        waited = False
        try:
            while True:
                if not items and reader.prefetch is None and reader.end is None:
                    asking, node = reader.delivery.waking.asking, reader.cursor.node
                    if asking is None or node is None or node.behind is not None:
                        taken, reader.end = reader.broadcast.take_next(reader)
                        if taken:
                            items += taken
                    else:  # there is nothing yet
                        asking.append(reader)
                if items:
                    if waited or budgets.clock() < reader.deadline:
                        break
                    reader.deadline = await reader.delivery.budget.turn()
                    waited = True
                    continue  # another task may have closed it meanwhile
                # Nothing comes between that look and this: what wakes the task is called by the loop.
                if reader.end is not None:
                    await _over(reader, place)
                reader.waiter = asyncio.Future(loop=place.loop)  # as `create_future`, without the call
                try:
                    reader.deadline = await reader.waiter
                finally:
                    reader.waiter = None
                waited = True
            reader.until = reader.deadline
            return items.popleft() if reader.prefetch is None else reader.take_one()
        finally:
            reader.awaited, reader.steps = False, None

    async def close(self) -> None:
        """Cancel, and wait for the cleanup. A waiting task then gets the end. A cancel is delayed until then."""
        self.reader.until = 0.0
        self._leave()
        self.reader.wake()
        await all_of(self._place.released)

    def leave(self) -> None:
        """Cancel, from any thread, because no reference to the iterator is left."""
        place = self._place
        if get_ident() != place.ident and not place.loop.is_closed():
            soon(place.loop, self._leave)
        else:
            self._leave()

    def _leave(self) -> None:
        # In the context of the subscriber, whose hooks get what it has not taken. A copy, since this may be the last act of a
        # function of the flow, which runs in the context itself.
        self._place.context.copy().run(self.reader.cancel)


@define(eq=False)
class Taken(Generic[T]):
    """The elements of a shared flow after a function, for a block (an async context manager, and its iterator).

    As with ``Flow.open``, an element is asked for when it is awaited, and leaving the block waits for the cleanup. One task awaits them.
    """

    _flow: FlowLike
    """The shared flow itself, without further operators."""
    _begin: Callable[[], Callable[[Any], Sequence[T]]]
    """Returns the function for one subscription, which maps an element."""
    _fn: Callable[[Any], Sequence[T]] = field(init=False)
    _left: Sequence[T] = field(init=False, default=())
    """The rest of that."""
    _steps: Steps = field(init=False)

    async def __aenter__(self) -> Taken[T]:
        """Join the run that there is, or begin one."""
        self._fn = self._begin()
        self._steps = Steps.begin(self._flow)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Leave, and wait for the cleanup. A cancel is put off till then."""
        await self._steps.close()

    def __aiter__(self) -> Taken[T]:
        return self

    async def __anext__(self) -> T:
        if self._left:
            first, *self._left = self._left
            return first
        while True:
            made = self._fn(await anext(self._steps))
            if not made:
                continue
            if len(made) > 1:
                self._left = made[1:]
            return made[0]


async def _over(reader: TaskReader, place: Place) -> NoReturn:
    """Raise the end of a subscription, after its cleanup."""
    await all_of(place.released)
    end, reader.end = reader.end or WELL, WELL
    error = failure(end)
    del end
    if error is None:
        raise StopAsyncIteration
    try:
        raise as_of_a_generator(error, "a function or source of the flow", StopAsyncIteration)
    finally:
        del error  # its traceback leads back to here


def several(flow: FlowLike) -> Several:
    """Return the source of a flow that several subscribers read."""
    source: Any = Plan.of(flow).source.operator
    found: Several = source
    return found


async def all_of(ended: asyncio.Event) -> None:
    """Wait to the end, though the waiter is cancelled: that is put off, and raised then."""
    put_off: asyncio.CancelledError | None = None
    while not ended.is_set():
        try:
            await ended.wait()
        except asyncio.CancelledError as cancelled:
            put_off = cancelled
    if put_off is not None:
        raise put_off
