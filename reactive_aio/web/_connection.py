"""One side of a connection that speaks ``reactive-streams.v1``: it offers streams, and reads those of the other side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final

from attrs import define, field

from .._core.guard import FAILURES
from .._flow.flow import Flow
from ..errors import ProtocolViolation
from ..hooks import drop_error
from ..operators._fluent import check_count
from ..spec import add_demand, refill_after, subtract_demand
from ._delivery import ClientDisconnectedError, settled
from ._frames import Frame, FrameError, read_frame, write_frame

Offer = Callable[[Any], "Flow[Any]"]
Offers = Mapping[str, Offer]

RULE_3_9: Final = "§3.9: the n of a request is above 0"


class StreamError(Exception):
    """A failure whose text the other side may read; of all others it is told only that the stream has failed."""


class RemoteError(Exception):
    """A stream of the other side has failed; the text is what that side says."""


@define(eq=False)
class Serving:
    """One subscription of the other side to a stream of ours."""

    credit: int
    task: asyncio.Task[None] = field(init=False)
    more: asyncio.Event = field(init=False, factory=asyncio.Event)
    refused: str = ""
    """Why it ends, where the other side has broken a rule."""


@define(eq=False)
class Reading:
    """One subscription of ours to a stream of the other side."""

    outstanding: int
    items: deque[Any] = field(init=False, factory=deque[Any])  # bounded by what was requested
    more: asyncio.Event = field(init=False, factory=asyncio.Event)
    ended: bool = field(init=False, default=False)
    by_publisher: bool = field(init=False, default=False)
    """Whether the other side has ended it, and so need not be told."""
    error: BaseException | None = field(init=False, default=None)

    def end(self, error: BaseException | None, *, by_publisher: bool = False) -> None:
        """Note the end, which stands behind the elements."""
        if not self.ended:
            self.ended, self.error, self.by_publisher = True, error, by_publisher
            self.more.set()


@define(eq=False)
class Connection:
    """The streams of one connection, in both directions.

    Each frame is about a subscription, whose number the subscriber has chosen. So the numbers of the two sides are apart: subscribe, request
    and cancel speak of those of who sends them, next, complete and error of those of who receives them.
    """

    _send: Callable[[str], Awaitable[None]]
    """Sends a frame, and waits while the other side does not read."""
    _offers: Offers
    _max_streams: int
    _serving: dict[int, Serving] = field(init=False, factory=dict[int, Serving])
    _reading: dict[int, Reading] = field(init=False, factory=dict[int, Reading])
    _ids: count[int] = field(init=False, factory=lambda: count(1))
    _closed: bool = field(init=False, default=False)

    def read(self, stream: str, args: object = None, *, prefetch: int = 64) -> Flow[Any]:
        """Read a stream of the other side; each subscription begins it anew.

        Demand: ``prefetch`` elements are requested ahead, and more when three quarters of them have been taken.
        Errors: RemoteError with the text of the other side; ClientDisconnectedError when the connection ends;
        ProtocolViolation for more elements than were requested. ``args`` that are no JSON are refused with TypeError or ValueError.
        """
        check_count("read", "prefetch", prefetch, 1)
        return Flow.from_async_iterable(lambda: self._elements(stream, args, prefetch))

    async def _elements(self, stream: str, args: object, prefetch: int) -> AsyncIterator[Any]:
        if self._closed:
            raise ClientDisconnectedError(f"the connection has ended before the subscription to {stream!r}")
        number, reading, taken = next(self._ids), Reading(prefetch), 0
        self._reading[number] = reading
        try:
            await self._send(write_frame(type="subscribe", id=number, stream=stream, args=args, n=prefetch))
            while True:
                while not reading.items and not reading.ended:
                    reading.more.clear()
                    await reading.more.wait()
                if not reading.items:
                    break
                yield reading.items.popleft()
                taken += 1
                if taken >= refill_after(prefetch) and not reading.ended:
                    reading.outstanding += taken
                    wanted, taken = taken, 0
                    await self._send(write_frame(type="request", id=number, n=wanted))
        finally:
            self._reading.pop(number, None)
            if not reading.by_publisher and not self._closed:
                with suppress(ClientDisconnectedError):
                    await self._send(write_frame(type="cancel", id=number))
        error, reading.error = reading.error, None
        if error is not None:
            raise error

    # -- what the other side says

    def hear(self, text: str) -> None:
        """See to a frame; raise FrameError for what is none."""
        frame = read_frame(text)
        match frame.type:
            case "subscribe":
                self._subscribed(frame)
            case "request":
                self._requested(frame)
            case "cancel":
                serving = self._serving.get(frame.id)
                if serving is not None:
                    serving.task.cancel()
            case _:
                self._signalled(frame)

    def _subscribed(self, frame: Frame) -> None:
        if frame.id in self._serving:
            raise FrameError(f"the subscription {frame.id} is there already")
        serving = self._serving[frame.id] = Serving(max(frame.n, 0))
        if frame.n < 0:
            serving.refused = RULE_3_9
        elif len(self._serving) > self._max_streams:
            serving.refused = f"at most {self._max_streams} streams are read at a time"
        elif frame.stream not in self._offers:
            serving.refused = "there is no such stream"
        serving.task = asyncio.create_task(self._serve(frame, serving))

    def _requested(self, frame: Frame) -> None:
        serving = self._serving.get(frame.id)
        if serving is None:
            return  # it has ended, which the other side did not know
        if frame.n <= 0:
            serving.refused = RULE_3_9
            serving.task.cancel()
        else:
            serving.credit = add_demand(serving.credit, frame.n)
            serving.more.set()

    def _signalled(self, frame: Frame) -> None:
        reading = self._reading.get(frame.id)
        if reading is None or reading.ended:
            return  # it has been cancelled, which the other side did not know
        if frame.type == "complete":
            reading.end(None, by_publisher=True)
        elif frame.type == "error":
            reading.end(RemoteError(frame.message), by_publisher=True)
        elif not reading.outstanding:
            reading.end(ProtocolViolation(f"rule 1.1: an element of stream {frame.id} that was not requested"))
        else:
            reading.outstanding -= 1
            reading.items.append(frame.item)
            reading.more.set()

    # -- what we offer

    async def _serve(self, frame: Frame, serving: Serving) -> None:
        """Send the elements of a stream, as many as are requested, and its end."""
        try:
            try:
                last = await self._elements_of(frame, serving)
            except ClientDisconnectedError:
                return  # there is nobody to be told
            except asyncio.CancelledError:
                if not serving.refused or self._closed:
                    raise
                last = write_frame(type="error", id=frame.id, message=serving.refused)
            except FAILURES as error:
                drop_error(error)
                last = write_frame(type="error", id=frame.id, message="the stream has failed")
            with suppress(ClientDisconnectedError):
                await self._send(last)
        finally:
            self._serving.pop(frame.id, None)

    async def _elements_of(self, frame: Frame, serving: Serving) -> str:
        """Return the frame that ends the stream."""
        number = frame.id
        if serving.refused:
            return write_frame(type="error", id=number, message=serving.refused)
        try:
            async with self._offers[frame.stream](frame.args).open() as items:
                while True:
                    while not serving.credit:
                        serving.more.clear()
                        await serving.more.wait()
                    try:
                        item = await anext(items)
                    except StopAsyncIteration:
                        return write_frame(type="complete", id=number)
                    serving.credit = subtract_demand(serving.credit, 1)
                    await self._send(write_frame(type="next", id=number, item=item))
        except StreamError as error:
            return write_frame(type="error", id=number, message=str(error))

    # -- the end

    async def close(self) -> None:
        """Cancel all that the other side reads, fail all that is read of it, and wait for the cleanup."""
        self._closed = True
        for reading in self._reading.values():
            reading.end(ClientDisconnectedError("the connection has ended in the middle of the stream"))
        tasks = [serving.task for serving in self._serving.values()]
        for task in tasks:
            task.cancel()
        await settled(*tasks)
