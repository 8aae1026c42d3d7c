"""A subscriber that a test drives, with expectations."""

from __future__ import annotations

import asyncio
import re
from types import TracebackType
from typing import Generic, Self, TypeVar, overload

from .._clocks.virtual import DeadlockError, VirtualTimeLoop
from ..spec import UNBOUNDED, Publisher
from .listening import COMPLETE, NEXT, Listener
from .settling import settle
from .snapshot import Event, regions, shown

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


class ProbeError(AssertionError):
    """An expectation of a probe did not hold. The message ends with all signals of the probe."""


class StreamProbe(Generic[T]):
    """A subscriber for tests. It requests when you call it, and every signal must be expected.

    Signals are expected in their order. A probe fails at the end of its block if a signal was not expected, or if the
    publisher broke a rule. It also fails if the stream was neither verified to its end nor cancelled.

    Waits use the loop's clock, virtual or real, and take at most ``within`` real seconds.
    (Reactor: ``StepVerifier``.)
    """

    def __init__(self, publisher: Publisher[T], *, request: int = 0, within: float = 30.0) -> None:
        """Make a probe. Enter it with ``async with``.

        Args:
            publisher: what to subscribe to: a flow, or anything else that has ``subscribe``.
            request: the first demand.
            within: real seconds that any wait may take.
        """
        if not callable(getattr(publisher, "subscribe", None)):
            raise TypeError(f"probe() takes a flow or another publisher, not {type(publisher).__name__}")
        _check_demand("probe", "request", request)
        self.publisher = publisher
        self.within = within
        self._first = request
        self._verified = 0
        self._listening: Listener[T] | None = None

    @property
    def entered(self) -> bool:
        """Return whether the probe has been used."""
        return self._listening is not None

    @property
    def events(self) -> list[Event]:
        """All signals so far but on_subscribe, expected or not."""
        return self._listener.events

    @property
    def _listener(self) -> Listener[T]:
        if self._listening is None:
            raise RuntimeError("enter a probe before you use it: `async with probe(flow) as p`")
        return self._listening

    # -- what a test does

    async def request(self, n: int = 1) -> None:
        """Ask for ``n`` more elements. They arrive while the test awaits something."""
        _check_demand("request", "n", n)
        self._listener.request(n)

    async def request_unbounded(self) -> None:
        """Ask for all elements."""
        self._listener.request(UNBOUNDED)

    def cancel(self) -> None:
        """Cancel the subscription. Later signals are ignored (rule 2.8)."""
        self._listener.cancel()

    # -- what a test expects

    async def expect_next(self, *items: T) -> None:
        """Wait for these elements, in this order."""
        for item in items:
            expected = f"next {item!r}"
            event = await self._next_event(expected)
            if event.kind != NEXT or event.value != item:
                raise self._failure(expected, event)

    async def expect_count(self, n: int) -> list[T]:
        """Wait for ``n`` elements, whatever they are, and return them."""
        items: list[T] = []
        for at in range(1, n + 1):
            event = await self._next_event(f"element {at} of {n}")
            if event.kind != NEXT:
                raise self._failure(f"element {at} of {n}", event)
            items.append(event.value)
        return items

    async def expect_complete(self) -> None:
        """Wait for the end of the stream."""
        event = await self._next_event(COMPLETE)
        if event.kind != COMPLETE:
            raise self._failure(COMPLETE, event)

    @overload
    async def expect_error(self, *, match: str | None = None) -> Exception: ...
    @overload
    async def expect_error(self, kind: type[E] | tuple[type[E], ...], *, match: str | None = None) -> E: ...
    async def expect_error(
        self, kind: type[BaseException] | tuple[type[BaseException], ...] = Exception, *, match: str | None = None
    ) -> BaseException:
        """Wait for the failure of the stream and return it. ``match`` is searched for in its text."""
        names = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        expected = f"error {names}" + ("" if match is None else f" matching {match!r}")
        event = await self._next_event(expected)
        if event.kind == NEXT or not isinstance(event.value, kind):
            raise self._failure(expected, event)
        if match is not None and not re.search(match, str(event.value)):
            raise self._failure(expected, event)
        return event.value

    async def expect_no_event(self, *, for_: float = 0.0) -> None:
        """Expect that nothing at all arrives for some seconds, or with 0 until the loop is idle.

        It also fails for an earlier signal that was not expected. A signal that arrives exactly at the end is not part
        of the time span.
        """
        until = self._listener.loop.time() + for_
        expected = f"no event for {for_:g} s" if for_ else "no event"
        if not for_:
            await self._settle(expected)
        elif self._unverified() is None:
            await self._pass(for_, expected)
        event = self._unverified()
        if event is not None and (not for_ or event.at < until):
            raise self._failure(expected, event)
        self._check(expected)

    # -- waiting

    async def _next_event(self, expected: str) -> Event:
        while self._unverified() is None and not self._listener.violations:
            await self._wait(expected)
        self._check(expected)
        self._verified += 1
        return self.events[self._verified - 1]

    def _unverified(self) -> Event | None:
        return self.events[self._verified] if self._verified < len(self.events) else None

    async def _wait(self, expected: str, *, longer: float = 0.0) -> None:
        """Wait for a signal of any kind."""
        loop, arrival = self._listener.loop, self._listener.arrival()
        timer: asyncio.TimerHandle | None = None
        if isinstance(loop, VirtualTimeLoop):
            loop.expire(arrival, self.within)
        else:
            timer = loop.call_later(self.within + longer, _time_out, arrival)
        try:
            await arrival
        except (TimeoutError, DeadlockError) as error:
            raise self._failure(expected, why=error) from None
        finally:
            if timer is not None:
                timer.cancel()

    async def _pass(self, seconds: float, expected: str) -> None:
        """Let time pass, until a signal comes."""
        end = self._listener.loop.call_later(seconds, self._listener.wake)
        try:
            await self._wait(expected, longer=seconds)
        finally:
            end.cancel()

    async def _settle(self, expected: str) -> None:
        try:
            await settle(within=self.within)
        except TimeoutError as error:
            raise self._failure(expected, why=error) from None

    # -- the block

    async def __aenter__(self) -> Self:
        if self._listening is not None:
            raise RuntimeError("a probe serves one subscription. Make another probe")
        listener = self._listening = Listener(asyncio.get_running_loop())
        self.publisher.subscribe(listener)
        while listener.subscription is None and not listener.violations:
            await self._wait("on_subscribe")
        self._check("on_subscribe")
        if self._first:
            listener.request(self._first)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        listener = self._listener
        verified = listener.cancelled or (listener.ended and self._unverified() is None)
        if not listener.ended:
            listener.cancel()
        if error is not None:
            return
        await self._settle("the loop to come to rest")
        left = self._unverified()
        if left is not None:
            raise self._failure("nothing more, but a signal is left that was not expected", left)
        self._check("nothing more")
        if not verified:
            raise self._failure("to be verified to its end: by expect_complete(), expect_error() or cancel()")

    # -- failing

    def _check(self, expected: str) -> None:
        if self._listener.violations:
            raise self._failure(expected)

    def _failure(self, expected: str, event: Event | None = None, *, why: Exception | None = None) -> ProbeError:
        got = f"; got {event}" if event is not None else "" if why is None else f"; {type(why).__name__}: {why}"
        taken = self._verified
        matched = taken - 1 if taken and self.events[taken - 1] is event else taken
        return ProbeError("\n  ".join([f"the probe expected {expected}{got}", *self._report(matched)]))

    def snapshot(self) -> list[str]:
        """Return the lines of a report: the requests, the signals, and the elements that the regions of a flow hold."""
        return self._report(self._verified)

    def _report(self, matched: int) -> list[str]:
        listener = self._listener
        seen = [f"{event}{' (expected)' if at < matched else ''}" for at, event in enumerate(self.events)]
        return [
            f"of {self.publisher!r}",
            *(f"a rule was broken: {violation}" for violation in listener.violations),
            f"requested {shown(listener.requested)}, received {listener.received}"
            + (", cancelled" if listener.cancelled else ""),
            "events: " + (", ".join(seen) or "none"),
            *regions(listener.subscription),
        ]


def _check_demand(method: str, name: str, n: object) -> None:
    """Raise unless a demand is a whole number. It may break a rule, which is for the publisher to see."""
    if not isinstance(n, int):
        raise TypeError(f"{method}({name}={n!r}): {name} is a whole number, not {type(n).__name__}")


def _time_out(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError("no signal came"))


def probe(publisher: Publisher[T], *, request: int = 0, within: float = 30.0) -> StreamProbe[T]:
    """Return a probe of a flow, or of any publisher. Enter it with ``async with``.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.testing import probe, run_virtual
    >>> async def main():
    ...     async with probe(Flow.range(3)) as p:
    ...         await p.request(2)
    ...         await p.expect_next(0, 1)
    ...         await p.expect_no_event(for_=60)
    ...         await p.request(1)
    ...         await p.expect_next(2)
    ...         await p.expect_complete()
    >>> run_virtual(main())
    """
    return StreamProbe(publisher, request=request, within=within)
