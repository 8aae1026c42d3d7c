"""Taking: the elements of a shared flow in the task that awaits them, without a region in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from attrs import Factory, define, field

from ..._core.guard import as_of_a_generator
from ..._plan import Plan
from .delivery import soon
from .reader import Reader

if TYPE_CHECKING:
    from ..._fusion import Transform
    from ..._plan.nodes import FlowLike
    from .shared import Sharing

T_co = TypeVar("T_co", covariant=True)

NOTHING: Final = object()


class Taker(Reader):
    """A reader whose task takes the elements itself; an event only wakes it."""

    inlet: Place

    def deliver(self) -> None:
        """Wake the task: there is an element that it has asked for, or the end."""
        self.inlet.wake()

    def fail(self, error: BaseException) -> None:
        """Have the task fail, as this reader alone has been taken out."""
        if not self.cancelled:
            self.inlet.error = error
            self.inlet.wake()


@define(eq=False)
class Place:
    """The part of an Inlet that a `Taker` needs: where its task runs, and how to wake it."""

    loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    context: Context = field(init=False, factory=copy_context)
    error: BaseException | None = field(init=False, default=None)
    """The failure of this reader alone."""
    waiter: asyncio.Future[None] | None = field(init=False, default=None)
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

    def wake(self) -> None:
        """Have the task look again."""
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


@define(eq=False)
class Taken(Generic[T_co]):
    """The elements of a shared flow behind a transform, for the length of a block (an async context manager, and its iterator).

    As with ``Flow.open``, an element is asked for when it is awaited, and leaving the block waits for the cleanup. One task awaits them.
    """

    _flow: FlowLike
    """The shared flow itself, with nothing behind it."""
    _transform: Callable[[], Transform[Any, T_co]]
    _apply: Callable[[Iterator[Any]], Iterator[T_co]] = field(init=False)
    _place: Place = field(init=False)
    _reader: Taker = field(init=False)
    _left: Iterator[T_co] | None = field(init=False, default=None)
    """The rest of what the latest element has given."""

    async def __aenter__(self) -> Taken[T_co]:
        """Join the run that there is, or begin one."""
        self._place = Place()
        self._apply = self._transform().apply
        self._reader = sharing_of(self._flow).join_by(Taker, self._place)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Leave, and wait for the cleanup; a cancel is put off till then."""
        self._reader.cancel()
        await all_of(self._place.released)

    def __aiter__(self) -> Taken[T_co]:
        return self

    async def __anext__(self) -> T_co:
        while True:
            if self._left is not None:
                item: Any = next(self._left, NOTHING)
                if item is not NOTHING:
                    return item  # type: ignore[no-any-return]
                self._left = None
            reader = self._reader
            items, has_ended, error = reader.broadcast.take_next(reader)
            if items:
                self._left = self._apply(iter(items))
            elif error is not None or self._place.error is not None:
                raise as_of_a_generator(self._failure(error), "a function or source of the flow", StopAsyncIteration)
            elif has_ended:
                raise StopAsyncIteration
            else:
                await self._arrival()

    def _failure(self, error: BaseException | None) -> BaseException:
        own, self._place.error = self._place.error, None
        failure = own if error is None else error
        assert failure is not None
        return failure

    async def _arrival(self) -> None:
        place = self._place
        place.waiter = place.loop.create_future()
        try:
            await place.waiter
        finally:
            place.waiter = None


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
