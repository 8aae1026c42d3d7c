"""One flow that has several uses inside one subscription."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import Context
from functools import partial
from typing import Any, ClassVar

from attrs import define, field

from ..._core.here import Here
from ..._plan import Inlet
from ...errors import SourceConsumedError
from ...hooks import discard, drop_error
from ...spec import Subscription
from .broadcast import Broadcast, Then, do, post
from .log import Log
from .mutex import Mutex
from .reader import Reader


@define(eq=False)
class Inside(Broadcast, Here):
    """The log of a flow that is subscribed to once for all of its uses, inside the subscription that the inlet belongs to (a Receiver).

    It lasts as long as that one. Without readers it pauses, and the next reader begins with the unread elements. Its
    readers are on the event loop of the inlet.
    """

    STAYS: ClassVar[str] = (
        "the flow that multicast() passes to its function can't be pickled: its subscription is in this process. Send its "
        "elements with publish_on()"
    )

    inlet: Inlet[Any] | None
    """Until the subscription ends: its flow leads back to here."""
    context: Context
    lag: int
    log: Log = field(init=False, factory=lambda: Log(0))
    mutex: Mutex = field(init=False, factory=Mutex)
    started: bool = field(init=False, default=False)
    """Whether elements may be requested from the flow."""
    over: bool = field(init=False, default=False)
    """Whether the subscription has ended."""
    held_up: Then | None = field(init=False, default=None)
    """Is called when one holds the others up."""
    _asked: int = field(init=False, default=0)
    _upstream: Subscription | None = field(init=False, default=None)

    # -- the uses

    def join(self, inlet: Inlet[Any]) -> Reader:
        """Add a reader, on its loop."""
        with self.mutex:
            if self.over:
                raise SourceConsumedError(
                    "the flow that multicast() passes to its function can't be read after the flow of multicast() has ended"
                )
            reader = Reader(self, inlet)
            calls = tuple(self._join(reader))
        for call in calls:
            call()
        return reader

    @property
    def readers(self) -> list[Reader]:
        """All readers."""
        with self.mutex:
            return self.everybody

    @property
    def slowest(self) -> list[Reader]:
        """The readers that hold up the others; none if no reader is held up."""
        with self.mutex:
            last = self.log.places.least
            return [each for each in self.everybody if each.cursor.at == last] if self.log.is_held_up(self.lag) else []

    @property
    def keeps(self) -> bool:
        """Until the subscription ends."""
        return not self.over

    @property
    def _keeps_now(self) -> bool:
        return not self.over

    def _settle(self) -> Then | None:
        log = self.log
        if self._upstream is None or log.ended or not self.started:
            return None
        missing = min(log.goals.greatest, log.places.least + self.lag) - self._asked
        if missing > 0:
            self._asked += missing
            return partial(self._upstream.request, missing)
        return self.held_up if self.held_up is not None and log.is_held_up(self.lag) else None

    @property
    def _hooks(self) -> Context:
        return self.context

    @property
    def _may_be_joined(self) -> bool:
        return not self.over

    def _deserted(self) -> Iterable[Then]:
        return (*self._unheard(), self._forget) if self.over else ()

    def _forget(self) -> None:
        """Let go of the inlet, when neither the subscription nor a reader is left to report a failure for."""
        self.inlet = None

    def _released(self, reader: Reader) -> Iterable[Then]:
        return (reader.release,)

    def _drop(self, error: BaseException) -> None:
        if self.inlet is not None:
            self.inlet.dropped(error)
        else:
            self.context.copy().run(drop_error, error)

    # -- the subscription they are inside of, on its loop

    def start(self) -> None:
        """Request the current demand from the flow, and from now on all later demand."""
        self._change(started=True)

    def close(self) -> None:
        """Cancel the flow, with the end of the subscription. Elements that no reader has had are discarded."""
        with self.mutex:
            if self.over:
                return
            self.over, self.held_up = True, None
            upstream, self._upstream = self._upstream, None
            calls: tuple[Then, ...] = ()
            if not self.log.readers:
                calls = (*self._unheard(), *self._let_go(*self.log.keep_no_more()), self._forget)
        if upstream is not None:
            upstream.cancel()
        for call in calls:
            call()

    # -- what the flow signals, on that loop

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription, and request the current demand."""
        if self.over:
            subscription.cancel()
        else:
            self._upstream = subscription
            self._change(started=self.started)

    def _change(self, *, started: bool) -> None:
        with self.mutex:
            self.started = started
            then = self._settle()
        if then is not None:
            then()

    def on_chunk(self, items: list[Any]) -> None:
        """Add elements to the log."""
        if self.over:
            discard(items)
            return
        head = self.log.head  # it is let go of behind the lock
        with self.mutex:
            deliveries = self._put(items)
            then = self._settle()
        del head
        post(deliveries)
        if then is not None:
            then()

    def on_error(self, error: BaseException) -> None:
        """Add the failure to the log, after the elements."""
        if self.over:
            drop_error(error)
        else:
            self._over(error)

    def on_complete(self) -> None:
        """Add the end to the log, after the elements."""
        self._over(None)

    def _over(self, error: BaseException | None) -> None:
        with self.mutex:
            self._upstream = None
            calls = tuple(self._end(error))
        do(calls)
