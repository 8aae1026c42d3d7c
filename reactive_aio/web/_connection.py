"""One side of a connection that speaks ``reactive-streams.v1``: it offers streams, and reads those of the other side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final

from attrs import define, field, frozen

from .._connector import iterated
from .._core.containers import new_deque, new_dict
from .._core.guard import FAILURES
from .._core.settling import settled
from .._core.tasks import begin_task
from .._flow.flow import Flow
from ..errors import ProtocolViolation
from ..hooks import drop_error
from ..operators._fluent import check_count
from ..spec import add_demand, refill_after, subtract_demand
from ._delivery import DisconnectedError
from ._frames import (
    LARGEST,
    Frame,
    FrameError,
    FrameTooLongError,
    Message,
    read_frame,
    size_of,
    write_element,
    write_frame,
)

Offer = Callable[[Any], "Flow[Any]"]
Offers = Mapping[str, Offer]

RULE_3_9: Final = "§3.9: the n of a request is above 0"
FAILED: Final = "the stream has failed"


class StreamError(Exception):
    """A failure whose text the other side may read. For other failures it learns only that the stream has failed."""


class RemoteError(Exception):
    """A stream of the other side has failed. The text comes from that side."""


def cancelled_from_outside() -> bool:
    """Return whether a CancelledError was requested, and not raised by a function."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@frozen
class Limits:
    """The limits of a side, which its first frame declares."""

    frame: int = LARGEST
    """Bytes of a frame."""
    credit: int = LARGEST
    """The elements of one stream that may be requested at a time."""

    def exceeded(self, credit: int) -> str:
        """Return the complaint about a demand, which is empty if the demand is valid."""
        fits = self.credit == LARGEST or credit <= self.credit
        return "" if fits else f"at most {self.credit} elements are wanted at a time"


@define(eq=False)
class Serving:
    """One subscription of the other side to a stream of this side."""

    credit: int
    task: asyncio.Task[None] = field(init=False)
    more: asyncio.Event = field(init=False, factory=asyncio.Event)
    begun: bool = field(init=False, default=False)
    """Whether the task has run. A task that is cancelled before never runs."""
    cleaned: bool = field(init=False, default=False)
    """Whether the source has been closed, so that only the end remains to be sent."""
    stopped: bool = field(init=False, default=False)
    refused: str = field(init=False, default="")
    """Why it has been stopped, if the other side has broken a rule."""

    def stop(self, refused: str = "") -> None:
        """End it, only once, so that the cleanup is not cut short."""
        if not self.stopped:
            self.stopped, self.refused = True, refused
            if self.begun:
                self.task.cancel()


@define(eq=False, repr=False)
class Reading:
    """One subscription of this side to a stream of the other side."""

    outstanding: int
    items: deque[Any] = field(init=False, factory=new_deque)  # bounded by what was requested
    more: asyncio.Event = field(init=False, factory=asyncio.Event)
    ended: bool = field(init=False, default=False)
    by_publisher: bool = field(init=False, default=False)
    """Whether the other side has ended it, so that it needs no message."""
    error: BaseException | None = field(init=False, default=None)

    def end(self, error: BaseException | None, *, by_publisher: bool = False) -> None:
        """Note the end, which comes after the elements."""
        if not self.ended:
            self.ended, self.error, self.by_publisher = True, error, by_publisher
            self.more.set()


LEAVING: Final = 8
"""Turns of the loop for readers to leave.

When a connection ends, who is cancelled for that reason leaves its streams before these fail. Else the failures, which
nobody would get, were reported. Those that are left to the garbage collector end after the failure, in as many turns.
"""


@define(eq=False, repr=False)
class Connection:
    """The streams of one connection, in both directions.

    Each frame is about a subscription. The subscriber chooses its number, so the numbers of the two sides are separate.
    subscribe, request and cancel have a number of their sender. next, complete and error have a number of their
    receiver.
    """

    _send: Callable[[Message], Awaitable[None]]
    """Sends a frame. It waits while the other side does not read."""
    _offers: Offers
    _max_streams: int
    _takes: Limits
    _other_takes: Limits | None = field(init=False, default=None)
    """The limits of the other side; None before it has declared them."""
    _other_said: asyncio.Event = field(init=False, factory=asyncio.Event)
    _serving: dict[int, Serving] = field(init=False, factory=new_dict)
    _reading: dict[int, Reading] = field(init=False, factory=new_dict)
    _ids: count[int] = field(init=False, factory=lambda: count(1))
    _last_id: int = field(init=False, default=0)
    """The number of the other side's last subscription."""
    _closed: bool = field(init=False, default=False)
    _left: asyncio.Event = field(init=False, factory=asyncio.Event)
    """Set after the end, when the readers have had their turns."""
    _over: asyncio.Event = field(init=False, factory=asyncio.Event)

    async def _put(self, message: Message) -> None:
        if self._closed:
            raise DisconnectedError("the connection has ended")
        try:
            await self._send(message)
        except DisconnectedError:
            self.close()
            raise

    async def greet(self) -> None:
        """Send the limits of this side, as the first frame."""
        await self._put(write_frame(type="limits", frame=self._takes.frame, credit=self._takes.credit))

    def read(self, stream: str, args: object = None, *, prefetch: int = 64) -> Flow[Any]:
        """Read a stream of the other side. Each subscription begins it anew.

        Elements are JSON values, and bytes where the other side sends a binary frame.
        Demand: ``prefetch`` elements are requested ahead, or the maximum of the other side. More are requested when
        three quarters of them have been taken.
        Errors: RemoteError with the text of the other side; DisconnectedError when the connection ends;
        ProtocolViolation for more elements than were requested. ``args`` that are not JSON are refused with TypeError
        or ValueError. ``args`` that exceed the frames of the other side are refused with ValueError.
        """
        check_count("read", "prefetch", prefetch, 1)
        return iterated("read", stream, lambda: self._elements(stream, args, prefetch))

    async def _elements(self, stream: str, args: object, prefetch: int) -> AsyncIterator[Any]:
        await self._other_said.wait()
        if self._closed or self._other_takes is None:
            raise DisconnectedError(f"the connection has ended before the subscription to {stream!r}")
        prefetch = min(prefetch, self._other_takes.credit)
        number, reading, taken = next(self._ids), Reading(prefetch), 0
        subscribe = write_frame(type="subscribe", id=number, stream=stream, args=args, n=prefetch)
        if size_of(subscribe) > self._other_takes.frame:
            raise ValueError(
                f"read({stream!r}): the args are longer than the {self._other_takes.frame} bytes of a frame"
            )
        self._reading[number] = reading
        try:
            await self._put(subscribe)
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
                    await self._put(write_frame(type="request", id=number, n=wanted))
        finally:
            self._reading.pop(number, None)
            if not reading.by_publisher:
                with suppress(DisconnectedError):
                    await self._put(write_frame(type="cancel", id=number))
        error, reading.error = reading.error, None
        if error is not None:
            raise error

    # -- what the other side says

    def hear(self, message: Message) -> None:
        """Handle a frame. Raise FrameError for an invalid one."""
        if self._closed:
            return
        if size_of(message) > self._takes.frame:
            raise FrameTooLongError(f"a frame has at most {self._takes.frame} bytes")
        frame = read_frame(message)
        if (frame.type == "limits") != (self._other_takes is None):
            raise FrameError("the first frame must be of type limits, and no other frame is")
        match frame.type:
            case "limits":
                self._other_takes = Limits(frame.frame, frame.credit)
                self._other_said.set()
            case "subscribe":
                self._subscribed(frame)
            case "request":
                self._requested(frame)
            case "cancel":
                serving = self._serving.get(frame.id)
                if serving is not None:
                    serving.stop()
            case _:
                self._signalled(frame)

    def _subscribed(self, frame: Frame) -> None:
        if frame.id <= self._last_id:
            raise FrameError(f"the id of a subscription must be above the ids before it, so above {self._last_id}")
        if len(self._serving) >= 2 * self._max_streams:  # a side that does not read its refusals would pile them up
            raise FrameError(
                f"{self._max_streams} streams are open, and as many refused subscriptions have not been read"
            )
        self._last_id = frame.id
        serving = self._serving[frame.id] = Serving(max(frame.n, 0))
        refused = self._refused(frame)
        if refused:
            serving.stop(refused)
        serving.task = begin_task(self._serve(frame, serving))

    def _refused(self, frame: Frame) -> str:
        """Return why a subscription is refused, if it is."""
        if frame.n < 0:
            return RULE_3_9
        if len(self._serving) > self._max_streams:
            return f"at most {self._max_streams} streams are read at a time"
        if frame.stream not in self._offers:
            return "there is no such stream"
        return self._takes.exceeded(frame.n)

    def _requested(self, frame: Frame) -> None:
        serving = self._serving.get(frame.id)
        if serving is None:
            return  # it has ended, which the other side did not know
        wanted = add_demand(serving.credit, max(frame.n, 0))
        refused = self._takes.exceeded(wanted) if frame.n > 0 else RULE_3_9
        if refused:
            serving.stop(refused)
        else:
            serving.credit = wanted
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
        """Send the requested elements of a stream, and its end."""
        serving.begun = True
        try:
            last = "" if serving.stopped else await self._elements_of(frame, serving)
            if serving.refused:
                last = self._failure(frame.id, serving.refused)
            serving.cleaned = True
            if last:
                await self._put(last)
        except DisconnectedError:
            return  # there is nobody to be told
        finally:
            self._serving.pop(frame.id, None)

    async def _elements_of(self, frame: Frame, serving: Serving) -> str:
        """Send the elements. Return the frame that ends the stream, which is empty if it has been stopped."""
        try:
            async with self._offers[frame.stream](frame.args).open() as items:
                return await self._sent(frame.id, items, serving)
        except StreamError as error:
            return self._failure(frame.id, str(error))
        except FAILURES as error:
            if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
                if not serving.stopped:
                    raise
                return ""
            if isinstance(error, DisconnectedError) and self._closed:
                return ""
            drop_error(error)
            return self._failure(frame.id, FAILED)

    async def _sent(self, number: int, items: AsyncIterator[Any], serving: Serving) -> str:
        while True:
            while not serving.credit:
                serving.more.clear()
                await serving.more.wait()
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return write_frame(type="complete", id=number)
            serving.credit = subtract_demand(serving.credit, 1)
            await self._put(self._element(number, item))

    def _element(self, number: int, item: object) -> Message:
        element = write_element(number, item)
        if self._other_takes is not None and size_of(element) > self._other_takes.frame:
            raise StreamError(f"an element is longer than the {self._other_takes.frame} bytes of a frame")
        return element

    def _failure(self, number: int, message: str) -> str:
        failure = write_frame(type="error", id=number, message=message)
        if self._other_takes is not None and size_of(failure) > self._other_takes.frame:
            return write_frame(type="error", id=number, message=FAILED)
        return failure

    # -- the end

    def close(self) -> None:
        """Cancel all streams that the other side reads, and fail all streams that are read from it.

        It does not wait for the cleanup, so that streams may call it too. The cleanup has ended when the block of
        `connect`, or the call of the StreamSocket, ends.
        """
        if not self._closed:
            self._fail_reading(2 * LEAVING)
        self._closed = True
        self._over.set()
        for serving in self._serving.values():
            serving.stop()
            if serving.cleaned:
                serving.task.cancel()

    def _fail_reading(self, turns: int) -> None:
        """Fail all streams that are read from the other side, half way through some turns."""
        if turns == LEAVING:
            self._other_said.set()
            for reading in self._reading.values():
                reading.end(DisconnectedError("the connection has ended in the middle of the stream"))
        if turns:
            asyncio.get_running_loop().call_soon(self._fail_reading, turns - 1)
        else:
            self._left.set()

    async def settle(self, *others: asyncio.Task[Any]) -> None:
        """Close, and wait for the cleanup and for other tasks. The maker of the connection calls it."""
        self.close()
        await settled(begin_task(self._left.wait()), *others, *(serving.task for serving in self._serving.values()))

    async def wait_closed(self) -> None:
        """Wait until the connection has ended."""
        await self._over.wait()
