"""Events that a client can resume where it left off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from attrs import define, evolve, field, frozen

from .._flow.flow import Flow
from .._flow.shared import Shared
from .._fusion import Stage, Transform
from ..operators._fluent import check_count, check_flow, check_function
from ..operators.sharing.taking import Taken
from ._events import Event, Openable

T = TypeVar("T")

Numbered = tuple[str, int, Event]
"""The name of a run, and the number of an event in it."""

MOST_DIGITS: Final = 20
"""The most digits of a number that a client sends. A longer number is not from this service."""


@define(eq=False)
class Resumable(Openable, Generic[T]):
    """Share one stream with all clients, number its events, and let each client go on after its last event.

    Pass it to `EventStream`. ``flow`` is run once for all clients, as by ``Flow.share``. ``event`` turns an element
    into an Event, once for all clients. Its ``id`` is set here. The latest ``replay`` events are kept for returning
    clients, as long as some client is there. With ``async with``, as in the lifespan of an application, they are kept
    also without clients. A new client gets the events from then on. A returning client goes on after its last event if
    that is still kept. Else events may be missing, because they are no longer kept or another run has begun. Then it
    first gets an Event of the type "reset", and then the kept events. A gap is never silent.
    Demand: the others wait for the slowest client when it is ``lag`` events behind. With ``evict_after`` they wait that
    many seconds, and then its response ends. The client comes back, and goes on or is reset.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import Event, EventStream, Resumable
    >>> ticks = Flow.interval(0.1).on_backpressure_latest()
    >>> resumable = Resumable(ticks, lambda n: Event(str(n)), replay=1000)
    >>> stream = EventStream(resumable)
    >>> async def lifespan(application):
    ...     async with resumable:
    ...         yield
    """

    flow: Flow[T]
    event: Callable[[T], Event]
    replay: int = field(kw_only=True)
    lag: int = field(default=256, kw_only=True)
    evict_after: float | None = field(default=None, kw_only=True)
    _shared: Shared[Numbered] = field(init=False, repr=False)
    _latest: tuple[str, int] = field(init=False, default=("", -1), repr=False)
    """The latest run, and the number of its latest event."""

    def __attrs_post_init__(self) -> None:
        check_flow("Resumable", self.flow)
        check_function("Resumable", self.event)
        check_count("Resumable", "replay", self.replay, 1)
        self._shared = Flow.defer(self._run).share(lag=self.lag, replay=self.replay, evict_after=self.evict_after)

    async def __aenter__(self) -> Resumable[T]:
        """Keep the events until the end of the block."""
        await self._shared.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all responses, and wait for the cleanup."""
        await self._shared.__aexit__(kind, error, traceback)

    def __call__(self, last_id: str | None) -> Flow[Event]:
        """Return the events of a client that had the event with this id last, or none yet."""
        return self._shared.then(Behind(self, last_id))

    def opened(self, last_id: str | None) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open the events of a client, encoded, for the task that sends them: those of the flow, without a region for each client."""
        return Taken(self._shared, partial(self._encoded_behind, last_id))

    def behind(self, last_id: str | None) -> InTurnBehind:
        """Return the position of a client that subscribes now."""
        latest_run, latest = self._latest
        if last_id is None:
            return InTurnBehind(latest_run, latest, returning=False)
        run, _, text = last_id.rpartition("-")
        if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS:
            number = int(text)
            if run != latest_run or number <= latest:
                return InTurnBehind(run, number, returning=True)
        # Nobody has given that id, so it says nothing about the events that the client has had.
        return InTurnBehind("", -1, returning=True)

    def _encoded_behind(self, last_id: str | None) -> Callable[[Numbered], Sequence[bytes]]:
        return self.behind(last_id).encoded

    def _run(self) -> Flow[Numbered]:
        # Numbers of one run mean nothing in the next: so they have a name of the run with them.
        run = token_hex(4)

        def numbered(indexed: tuple[int, T]) -> Numbered:
            number, item = indexed
            event = evolve(self.event(item), id=f"{run}-{number}")
            self._latest = (run, number)
            return run, number, event

        return self.flow.index().map(numbered)


@frozen
class Behind(Stage[Numbered, Event]):
    """Emits the events of one client, without those that it has had."""

    stream: Resumable[Any]
    last_id: str | None

    needs_whole_stream = True

    def transform(self) -> Transform[Numbered, Event]:
        """Begin where the client has left off."""
        return self.stream.behind(self.last_id)


@define(eq=False)
class InTurnBehind(Transform[Numbered, Event]):
    """One client."""

    run: str
    had: int
    """The number of its last event, in that run."""
    returning: bool = field(kw_only=True)
    """Whether it gets a reset after a gap."""

    def apply(self, items: Iterator[Numbered]) -> Iterator[Event]:
        """Yield each new event, after a reset if some are missing."""
        for run, number, event in items:
            if run != self.run or number > self.had + 1:
                self.run, self.had = run, number - 1
                if self.returning:
                    yield Event(event="reset")
            if number > self.had:
                self.had = number
                yield event

    def encoded(self, numbered: Numbered) -> Sequence[bytes]:
        """Return the chunks to send for one event. There are none if it is not new."""
        run, number, event = numbered
        if number == self.had + 1 and run == self.run:  # nearly always
            self.had = number
            return (event.encode(),)
        return [each.encode() for each in self.apply(iter((numbered,)))]
