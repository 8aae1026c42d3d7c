"""The source that polls a client for elements, as many at a time as are requested."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, cast

from attrs import define, field, frozen

from ..._core.guard import FAILURES, as_failure, cancels, is_cancelled, is_closed_with
from ..._fusion import label
from ...hooks import also_failed, discard
from .task import Production, TaskSource

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

METHODS = ("fetch", "idle", "close")


class Poll(Protocol[T_co]):
    """The client that ``Flow.from_poll`` polls for elements, one for each subscription.

    One task calls all of it, in one context, one call after another. Whatever a call raises fails the flow.
    """

    async def fetch(self, n: int, /) -> Sequence[T_co]:
        """Return up to ``n`` elements, for which there is demand.

        None means that there are none yet, and StopAsyncIteration is the end.

        It should wait for the first of them, for a while at least: with none at once it is called again at once.
        """
        ...

    async def idle(self) -> None:
        """Keep the connection alive. It is called after each heartbeat without a request."""

    async def close(self) -> None:
        """Close everything. It is called once, after every other call, and no cancel disturbs it."""


@frozen
class FromPoll(TaskSource[T]):
    """Source of ``Flow.from_poll``."""

    make: Callable[[], AbstractAsyncContextManager[Poll[T]]]
    max_batch: int
    heartbeat: float

    async def produce(self, production: Production) -> None:
        """Open, ask and close."""
        await Polling(self, production).run()

    def opened(self) -> AbstractAsyncContextManager[Any]:
        """Make the context manager of one subscription."""
        opened = self.make()
        if isinstance(opened, AbstractAsyncContextManager):  # pyright: ignore[reportUnnecessaryIsInstance] - users may err
            return opened
        made = f"{label(self.make)} must return an async context manager, but returned {type(opened).__name__}"
        raise TypeError(f"{made}: see contextlib.asynccontextmanager")

    def checked(self, poll: object) -> Poll[T]:
        """Raise unless the object can be polled."""
        missing = [name for name in METHODS if not callable(getattr(poll, name, None))]
        if missing:
            raise TypeError(
                f"{label(self.make)} must open a Poll, but opened {type(poll).__name__}, which lacks {', '.join(missing)}"
            )
        return cast("Poll[T]", poll)


@define(eq=False)
class Polling:
    """One subscription: the client from its opening to its end, in the task of the production."""

    source: FromPoll[Any]
    production: Production
    _closing: bool = field(init=False, default=False)
    _cancels: int = field(init=False, default=0)
    """The cancels of the task before it closes."""
    _cancel: BaseException | None = field(init=False, default=None)
    """The exception that the cancel has become, on its way out."""
    _outside: BaseException | None = field(init=False, default=None)
    """The exception that a cancel by somebody else has become. The flow may be cancelled behind it, as `asyncio.run` does."""

    async def run(self) -> None:
        """Open, ask and close; what this raises is the failure of the source or of its cleanup."""
        production = self.production
        try:
            async with self.source.opened() as opened:
                await self._inside(self.source.checked(opened))
        except FAILURES as error:
            if is_closed_with(error, production.inlet.loop):
                raise
            # The flow does not cancel what closes, but `asyncio.run` may: a cancel that comes of closing alone is a failure.
            own = self._closing and production.cancelled and error is not self._cancel and error is not self._outside
            own = own and cancels() == self._cancels
            failure = as_failure(error) if own else error
            try:
                raise failure
            finally:
                del failure  # its traceback leads back to here
        finally:
            self._cancel = self._outside = None

    async def _inside(self, poll: Poll[Any]) -> None:
        """Poll, and close after that. The context manager sees the failure."""
        production, failure = self.production, None
        try:
            await self._ask(poll)
        except FAILURES as error:
            if is_closed_with(error, production.inlet.loop):
                raise
            failure = error
            if isinstance(error, asyncio.CancelledError):
                if production.cancelled:
                    self._cancel = error
                elif is_cancelled():
                    self._outside = error
        self._closing, self._cancels = True, cancels()
        production.undisturbed()
        try:
            await _close(poll, None if failure is self._cancel else failure)
            if failure is not None:
                raise failure
        finally:
            del failure  # as above

    async def _ask(self, poll: Poll[Any]) -> None:
        """Deliver the client's elements, until its end."""
        production, source = self.production, self.source
        while True:
            if production.cancelled:
                await production.turn()  # where the cancel comes, unless the client has swallowed it
                return
            if not await production.demand(source.heartbeat):
                if not production.cancelled:
                    await poll.idle()
                continue
            most = min(production.wanted, source.max_batch)
            try:
                given: object = await poll.fetch(most)
            except StopAsyncIteration:
                return
            items = _elements(given)
            if production.cancelled:
                discard(items)
            elif len(items) > most:
                discard(items)
                raise ValueError(
                    f"from_poll(): fetch({most}) returned {len(items)} elements, more than it was asked for"
                )
            elif items:
                production.deliver(items)
            else:
                await production.turn()


def _elements(given: object) -> list[Any]:
    """Return a copy of the fetched elements, as a list."""
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes, bytearray)):
        return [*given]
    raise TypeError(
        f"from_poll(): fetch() must return a sequence of elements, such as a list, not {type(given).__name__}"
    )


async def _close(poll: Poll[Any], failure: BaseException | None) -> None:
    """Close the client. A failure of that is noted on an earlier one, or raised if there is none."""
    try:
        await poll.close()
    except FAILURES as another:
        if failure is None:
            raise
        also_failed(failure, another)
