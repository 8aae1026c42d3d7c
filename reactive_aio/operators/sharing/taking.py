"""Taking: the elements of a shared flow in the task that awaits them, without a region in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define, field

from ..._core.guard import as_of_a_generator
from ..._plan import Plan
from ...hooks import discard
from .delivery import soon
from .reader import End, Reader, failure

if TYPE_CHECKING:
    from ..._plan.nodes import FlowLike
    from .run import Run
    from .shared import Sharing

T = TypeVar("T")


@define(eq=False)
class TaskReader(Reader):
    """A reader whose task takes the elements itself, or is woken when they have been taken for it."""

    waiter: asyncio.Future[None] | None = field(init=False, default=None)
    """Wakes the task."""
    items: list[Any] = field(init=False, factory=list[Any])
    """The element that has been taken, until the task comes for it."""
    error: BaseException | None = field(init=False, default=None)
    """The failure that the task is to raise: of the stream, or of this reader alone."""
    ended: bool = field(init=False, default=False)
    """Whether the end has been taken."""

    def _taking(self) -> Callable[[list[Any]], None]:
        return partial(self.give, end=None)

    def give(self, items: list[Any], end: End | None) -> None:
        """Keep what the task has asked for, and wake it; discard it where the task has left since it was taken."""
        if self.cancelled:
            discard(items)
            return
        self.items += items
        self.take_end(end)
        self._wake()

    def take_end(self, end: End | None) -> None:
        """Keep the end, if it is one, for when the task has had the last element."""
        if end is not None:
            self.ended, self.error = True, failure(end)

    def fail(self, error: BaseException) -> None:
        """Have the task fail, as this reader alone has been taken out."""
        if not self.cancelled:
            self.error = error
            self._wake()

    def cancel(self) -> None:
        """Leave. An element for which the task has not come is discarded."""
        super().cancel()
        items, self.items = self.items, []
        if items:
            discard(items)

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


@define(eq=False)
class Place:
    """The part of an Inlet that a `TaskReader` needs: where its task runs, and how to wake it."""

    where: str = "a client of a shared flow"
    """Named in the failure of one who is evicted."""
    loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    context: Context = field(init=False, factory=copy_context)
    released: asyncio.Event = field(init=False, factory=asyncio.Event)
    """Set when nothing is left to clean up."""
    _ident: int = field(init=False, factory=get_ident)

    def hold(self) -> Callable[..., None]:
        """Give what is to be called, from any thread, when nothing is left to clean up."""
        return self._release

    def _release(self, join: Callable[[], None] | None = None) -> None:
        if get_ident() == self._ident:
            self.released.set()
        else:
            soon(self.loop, self.released.set)

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Have something called on the loop, from any thread."""
        soon(self.loop, handle, value)


@define(eq=False)
class Taken(Generic[T]):
    """The elements of a shared flow behind a function, for the length of a block (an async context manager, and its iterator).

    As with ``Flow.open``, an element is asked for when it is awaited, and leaving the block waits for the cleanup. One task awaits them.
    """

    _flow: FlowLike
    """The shared flow itself, with nothing behind it."""
    _begin: Callable[[], Callable[[Any], Sequence[T]]]
    """Gives the function for one subscription, which gives what an element becomes."""
    _fn: Callable[[Any], Sequence[T]] = field(init=False)
    _left: Sequence[T] = field(init=False, default=())
    """The rest of that."""
    _place: Place = field(init=False)
    _reader: TaskReader = field(init=False)
    _run: Run = field(init=False)

    async def __aenter__(self) -> Taken[T]:
        """Join the run that there is, or begin one."""
        self._place = Place()
        self._fn = self._begin()
        self._run, self._reader = sharing_of(self._flow).join_by(TaskReader, self._place)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Leave, and wait for the cleanup. A cancel is put off till then."""
        self._reader.cancel()
        await all_of(self._place.released)

    def __aiter__(self) -> Taken[T]:
        return self

    async def __anext__(self) -> T:
        run, reader = self._run, self._reader
        if self._left:
            first, *self._left = self._left
            return first
        while True:
            items, reader.items = reader.items, []
            if not items:
                items, end = run.take_next(reader)
                reader.take_end(end)  # maybe with the last element
            if items:
                made = self._fn(items[0])
                if not made:
                    continue
                if len(made) > 1:
                    self._left = made[1:]
                return made[0]
            error, reader.error = reader.error, None
            if error is not None:
                raise as_of_a_generator(error, "a function or source of the flow", StopAsyncIteration)
            if reader.ended:
                raise StopAsyncIteration
            # Nothing comes between the look above and this: what wakes the task is called by the loop.
            reader.waiter = self._place.loop.create_future()
            try:
                await reader.waiter
            finally:
                reader.waiter = None


def sharing_of(flow: FlowLike) -> Sharing:
    """Give what the subscribers of a shared flow have in common."""
    source: Any = Plan.of(flow).source.operator
    sharing: Sharing = source.sharing
    return sharing


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
