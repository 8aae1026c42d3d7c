"""The recorder: stands between publishers and subscribers and writes a trace of their calls.

It changes nothing: calls, return values and exceptions pass unchanged. It keeps no subscriber alive, so that a trace
can show whether a publisher does.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from attrs import define, field

from .._core.containers import new_list
from .protocols import Publisher, Subscriber, Subscription
from .trace import Facts, Identity, Kind, Signal, Trace


def _depth() -> int:
    depth = 0
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - the cheap way to count frames
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


class Judge(Protocol):
    """An observer of a recording while it is made. It may raise if a rule is broken."""

    def enter(self, signal: Signal, /) -> None:
        """Called before a call is passed on."""

    def leave(self, signal: Signal, /) -> None:
        """Called when a call has ended."""


@define(eq=False)
class Recorder:
    """Writes down the calls of the contract, from any thread."""

    signals: list[Signal] = field(init=False, factory=new_list)
    _lock: threading.RLock = field(init=False, factory=threading.RLock)
    """Reentrant: memory may be cleared up while it is held, and a finalizer may cancel."""
    _local: threading.local = field(init=False, factory=threading.local)
    _streams: int = field(init=False, default=0)
    _links: int = field(init=False, default=0)
    _entries: int = field(init=False, default=0)

    def subscriber(self, subscriber: Subscriber[Any], judge: Judge | None = None) -> RecordedSubscriber:
        """Stand in front of a subscriber. The pair it makes with its publisher is a stream of the trace."""
        return RecordedSubscriber(self, subscriber, self.new_stream(), judge)

    def publisher(self, publisher: Publisher[Any]) -> RecordedPublisher:
        """Stand in front of a publisher, and of each subscriber that subscribes to it."""
        return RecordedPublisher(self, publisher)

    def connect(
        self, publisher: Publisher[Any], subscriber: Subscriber[Any] | None
    ) -> weakref.ref[RecordedSubscriber] | None:
        """Subscribe, and return a weak reference to the subscriber that the publisher got."""
        recorded = None if subscriber is None else self.subscriber(subscriber)
        stream = self.new_stream() if recorded is None else recorded.stream
        subscribe: Callable[[Any], None] = publisher.subscribe
        self.call(Kind.SUBSCRIBE, stream, 0, Identity.of(subscriber), lambda: subscribe(recorded))
        return None if recorded is None else weakref.ref(recorded)

    def trace(self, facts: Facts | None = None) -> Trace:
        """Return the trace so far."""
        return Trace(tuple(self.signals), facts or Facts())

    def rest(self) -> None:
        """Write down that nothing is left to run."""
        self.add(Kind.REST, 0, 0, None, None)

    def new_stream(self) -> int:
        """Number a stream."""
        self._streams += 1
        return self._streams

    def new_link(self) -> int:
        """Number a subscription."""
        self._links += 1
        return self._links

    def call(
        self,
        kind: Kind,
        stream: int,
        link: int,
        value: Any,
        method: Callable[[], None],
        judge: Judge | None = None,
    ) -> None:
        """Write a call down, make it, and write down how it ended."""
        entry = self.add(kind, stream, link, value, None)
        stack = self._stack()
        stack.append(entry.at)
        try:
            if judge is not None:
                judge.enter(entry)
            method()
        except BaseException as error:
            stack.pop()
            end = self.add(Kind.RAISED, stream, link, error, entry.at)
            if judge is not None:
                judge.leave(end)
            raise
        stack.pop()
        end = self.add(Kind.RETURNED, stream, link, None, entry.at)
        if judge is not None:
            judge.leave(end)

    def add(self, kind: Kind, stream: int, link: int, value: Any, call: int | None) -> Signal:
        """Write an entry down."""
        loop = asyncio._get_running_loop()
        task = asyncio.current_task(loop) if loop is not None else None
        stack = self._stack()
        clock = time.perf_counter()
        now = clock if loop is None else loop.time()
        name = None if task is None else task.get_name()
        depth = _depth()
        with self._lock:
            at = self._entries
            self._entries += 1
            signal = Signal(
                at=at,
                kind=kind,
                stream=stream,
                link=link,
                value=value,
                call=at if call is None else call,
                within=stack[-1] if stack else None,
                time=now,
                clock=clock,
                thread=threading.get_ident(),
                loop=None if loop is None else id(loop),
                task=name,
                depth=depth,
            )
            self.signals.append(signal)
        return signal

    def _stack(self) -> list[int]:
        stack: list[int] | None = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack


@define(eq=False)
class RecordedSubscriber:
    """A subscriber with the recorder in front of it."""

    recorder: Recorder
    subscriber: Subscriber[Any]
    stream: int
    judge: Judge | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        """Pass the subscription on, with the recorder in front of it too."""
        link = self.recorder.new_link()
        # None is passed on as it is: what the subscriber does with it is what one wants to know.
        recorded: Any = subscription
        if subscription is not None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            recorded = RecordedSubscription(self.recorder, subscription, self.stream, link, self.judge)
        self._call(Kind.ON_SUBSCRIBE, link, lambda: self.subscriber.on_subscribe(recorded), subscription)

    def on_next(self, item: Any) -> None:
        """Pass an element on."""
        self._call(Kind.ON_NEXT, 0, lambda: self.subscriber.on_next(item), item)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on."""
        self._call(Kind.ON_ERROR, 0, lambda: self.subscriber.on_error(error), error)

    def on_complete(self) -> None:
        """Pass the end on."""
        self._call(Kind.ON_COMPLETE, 0, self.subscriber.on_complete)

    def _call(self, kind: Kind, link: int, method: Callable[[], None], value: Any = None) -> None:
        if kind is Kind.ON_SUBSCRIBE:
            value = Identity.of(value)
        self.recorder.call(kind, self.stream, link, value, method, self.judge)


@define(eq=False)
class RecordedSubscription:
    """A subscription with the recorder in front of it."""

    recorder: Recorder
    subscription: Subscription
    stream: int
    link: int
    judge: Judge | None = None

    def request(self, n: int) -> None:
        """Pass demand on."""
        call = self.recorder.call
        call(Kind.REQUEST, self.stream, self.link, n, lambda: self.subscription.request(n), self.judge)

    def cancel(self) -> None:
        """Pass the cancellation on."""
        self.recorder.call(Kind.CANCEL, self.stream, self.link, None, self.subscription.cancel, self.judge)


@define(eq=False)
class RecordedPublisher:
    """A publisher with the recorder in front of it."""

    recorder: Recorder
    publisher: Publisher[Any]

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Subscribe with the recorder in between."""
        self.recorder.connect(self.publisher, subscriber)
