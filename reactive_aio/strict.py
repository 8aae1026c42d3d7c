"""Strict mode: check a publisher or subscriber while it runs, by the predicates of the verification suite.

It is for finding faults, not for production: each call is recorded and checked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final, NoReturn, TypeVar, overload

from attrs import define, evolve, field, frozen

from ._core.containers import new_dict
from ._core.guard import FAILURES, shown
from ._fusion import label
from .errors import ProtocolViolation
from .hooks import drop_error
from .spec import Publisher, Subscriber, Subscription, add_demand
from .spec.predicates import Violation, violations
from .spec.recorder import RecordedSubscriber, Recorder
from .spec.trace import SIGNALS, TERMINALS, Facts, Kind, Signal, Trace, is_demand

__all__ = ["strict"]

T = TypeVar("T")

RULES_WHEN_CALLED: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.ON_SUBSCRIBE: ("2.13", "1.9", "1.3", "1.7", "2.12"),
    Kind.ON_NEXT: ("2.13", "1.9", "1.1", "1.3", "1.7", "3.3"),
    Kind.ON_ERROR: ("2.13", "1.9", "1.3", "1.7"),
    Kind.ON_COMPLETE: ("1.9", "1.3", "1.7"),
    Kind.REQUEST: ("2.3", "2.7"),
    Kind.CANCEL: ("2.3", "2.7"),
}
"""The rules that a call can break when it is made.

Not 2.4: a subscriber may process its signals later, and requests without knowing yet of an end that has arrived.
Not 3.1: a publisher may call on_subscribe on a thread of its own, which says nothing about where the subscriber is at home.
"""
RULES_WHEN_RAISED: Final = ("2.8", "2.9", "2.10", "2.13", "3.15", "3.16")
"""The rules that a call can break when it raises."""
KEPT: Final = 20
"""How many entries a violation shows."""


class NoneViolation(ProtocolViolation, TypeError):  # noqa: N818 - the term of the field
    """A call had None for an element, an error or a subscription. Rule 2.13 requires a TypeError."""


PASSED_ON: Final = (ProtocolViolation, SystemExit, KeyboardInterrupt)
"""Exceptions that are raised as they are: they have been reported, or end the program."""


@define(eq=False)
class Strict:
    """Checks the calls of one publisher and one subscriber while they are made (a Judge).

    It refers to neither of them, because the subscriber may keep its subscription, and so the judge (rule 3.13). Of
    ended calls it keeps only what it needs to judge later ones. It counts elements and demand.
    """

    recorder: Recorder
    broken: str | None = field(init=False, default=None)
    """How a signal broke a rule before the stream was over. After that, nothing is passed on."""
    _over: bool = field(init=False, default=False)
    """Whether there was an end or a cancel."""
    _calls: dict[int, tuple[Signal, ...]] = field(init=False, factory=new_dict)
    """The records of calls, by the place where they began."""
    _facts: Facts = field(init=False, factory=Facts)
    _lock: threading.RLock = field(init=False, factory=threading.RLock)

    def enter(self, signal: Signal) -> None:
        """Raise if a call breaks a rule, and for a signal after one that did."""
        del self.recorder.signals[:-KEPT]
        if self.broken is not None:
            if signal.kind in SIGNALS:
                raise ProtocolViolation(self.broken)
            return
        with self._lock:
            self._calls[signal.at] = (signal,)
            trace = self._trace()
        found = violations(trace, RULES_WHEN_CALLED[signal.kind])
        if found:
            with self._lock:
                del self._calls[signal.at]
            self._refuse(found[0], signal)
        self._over = self._over or signal.kind in TERMINALS or signal.kind is Kind.CANCEL

    def leave(self, signal: Signal) -> None:
        """Raise if an exception of a call breaks a rule. Forget what later checks do not need."""
        with self._lock:
            if signal.call not in self._calls:  # it was refused
                return
            trace = self._trace(signal)
            self._sum_up(signal)
        if signal.kind is Kind.RAISED and not isinstance(signal.value, PASSED_ON):
            found = violations(trace, RULES_WHEN_RAISED)
            if found:
                raise ProtocolViolation(self._text(found[0])) from signal.value

    def _refuse(self, violation: Violation, signal: Signal) -> NoReturn:
        text = self._text(violation)
        if signal.kind in SIGNALS and signal.kind is not Kind.ON_SUBSCRIBE and not self._over:
            self.broken = text
        raise (NoneViolation if violation.rule == "2.13" else ProtocolViolation)(text)

    def _sum_up(self, end: Signal) -> None:
        """Replace the entries of ended elements and requests by counts, and forget all cancels but the first."""
        entry = self._calls[end.call][0]
        if entry.kind is Kind.ON_NEXT:
            self._facts = evolve(self._facts, delivered_before=self._facts.delivered_before + 1)
        elif entry.kind is Kind.REQUEST and is_demand(entry.value):
            total = add_demand(self._facts.requested_before, entry.value)
            self._facts = evolve(self._facts, requested_before=total)
        cancels = [at for at, (call, *_) in self._calls.items() if call.kind is Kind.CANCEL]
        if entry.kind in {Kind.ON_NEXT, Kind.REQUEST} or end.call in cancels[1:]:
            del self._calls[end.call]
        else:
            # As if it had returned: its error is reported once.
            self._calls[end.call] = (entry, evolve(end, kind=Kind.RETURNED, value=None))

    def _trace(self, *more: Signal) -> Trace:
        return Trace((*chain.from_iterable(self._calls.values()), *more), self._facts)

    def _text(self, violation: Violation) -> str:
        """Return the text of a violation, with the last signals instead of those that showed it."""
        signals = (evolve(signal, value=_Labelled(signal)) for signal in self.recorder.trace().signals)
        return str(evolve(violation, trace=Trace(tuple(signals))))


@frozen
class _Labelled:
    """The value of a signal, as messages show elements. A setting hides the values."""

    signal: Signal

    def __repr__(self) -> str:
        value = self.signal.value
        return label(value, 60) if self.signal.kind is Kind.ON_NEXT and value is not None else shown(value)


class _Nothing:
    """The subscription of a stream that is over before it began."""

    def request(self, n: int) -> None:
        """Nothing."""

    def cancel(self) -> None:
        """Nothing."""


@define(eq=False)
class StrictSubscriber(RecordedSubscriber):
    """A subscriber with a judge in front of it."""

    _subscription: Subscription = field(init=False, factory=_Nothing)
    _subscribed: bool = field(init=False, default=False)
    _ended: bool = field(init=False, default=False)
    """Whether the subscriber has got a violation."""

    def on_subscribe(self, subscription: Subscription) -> None:
        """Pass the first subscription on, and cancel any other (rule 2.5)."""
        if subscription is not None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            if self._subscribed or self._ended:
                subscription.cancel()
            else:
                self._subscribed, self._subscription = True, subscription
        # Not super(): attrs makes the class anew for its slots.
        RecordedSubscriber.on_subscribe(self, subscription)

    def _call(self, kind: Kind, link: int, method: Callable[[], None], value: Any = None) -> None:
        try:
            RecordedSubscriber._call(self, kind, link, method, value)
        except ProtocolViolation as violation:
            if isinstance(self.judge, Strict) and self.judge.broken is not None and not self._ended:
                self._ended = True
                self._end(violation)
            raise

    def _end(self, violation: ProtocolViolation) -> None:
        """Cancel, and signal the violation to the subscriber. Ignore exceptions of both: nobody else could get them."""
        try:
            self._subscription.cancel()
            if not self._subscribed:
                self.subscriber.on_subscribe(self._subscription)  # rule 1.9
        except FAILURES as error:
            drop_error(error)
        try:
            self.subscriber.on_error(violation)
        except FAILURES as error:
            drop_error(error)


@define(eq=False)
class StrictPublisher:
    """A publisher with a judge between it and each of its subscribers."""

    publisher: Publisher[Any]

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Subscribe with a judge in between."""
        self.publisher.subscribe(judged(subscriber))


def judged(subscriber: Any) -> Any:
    """Put a judge in front of a subscriber; None stays None, which the publisher has to refuse (rule 1.9)."""
    if subscriber is None:
        return None
    recorder = Recorder()
    return StrictSubscriber(recorder, subscriber, recorder.new_stream(), Strict(recorder))


@overload
def strict(subject: Publisher[T]) -> Publisher[T]: ...
@overload
def strict(subject: Subscriber[T]) -> Subscriber[T]: ...
def strict(subject: Any) -> Any:
    """Return a publisher, or a subscriber, that raises ProtocolViolation if either side of it breaks a rule.

    The error quotes the rule, says what was seen and what to do, and shows the last twenty signals. It is raised in the
    code that broke the rule. If that is the publisher, its subscription is cancelled and the subscriber gets the error
    by on_error, unless the stream is over. If a publisher subscribes a second time, only the second subscription is
    cancelled (rule 2.5).
    For None the error is a TypeError as well (rule 2.13).
    """
    if callable(getattr(subject, "subscribe", None)):
        return StrictPublisher(subject)
    if callable(getattr(subject, "on_subscribe", None)):
        return judged(subject)
    raise TypeError(f"strict() takes a publisher or a subscriber, not {type(subject).__name__}")
