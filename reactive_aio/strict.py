"""Strict mode: a publisher or subscriber held to the rules while it runs, by the predicates of the verification suite.

For finding out what goes wrong, not for production: each call is written down and the last ones are looked at.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, overload

from attrs import define, evolve, field

from .errors import ProtocolViolation
from .spec import Publisher, Subscriber, Subscription, add_demand
from .spec.predicates import Violation, violations
from .spec.recorder import RecordedSubscriber, Recorder
from .spec.trace import ENDINGS, SIGNALS, Facts, Kind, Signal, is_demand

T = TypeVar("T")

RULES_WHEN_CALLED: Final = ("1.1", "1.3", "1.7", "1.9", "2.3", "2.5", "2.7", "2.12", "2.13", "3.1", "3.3")
"""The rules that can be seen to be broken when a call is made.

Not 2.4: a subscriber may process its signals later, and requests without knowing yet of an end that has arrived.
"""
RULES_WHEN_RAISED: Final = ("2.8", "2.9", "2.10", "2.13", "3.15", "3.16")
"""The rules that can be seen to be broken when a call raises."""
KEPT: Final = 20
"""How many entries a violation shows."""
LONGEST: Final = 80
"""How many entries there may be before those that tell nothing more are summed up."""


@define(eq=False)
class Strict:
    """Looks at the conversation of one publisher and one subscriber while it takes place (a Judge)."""

    recorder: Recorder
    subscriber: Subscriber[Any]
    subscription: Subscription | None = field(init=False, default=None)
    violation: ProtocolViolation | None = field(init=False, default=None)
    _facts: Facts = field(init=False, factory=Facts)

    def enter(self, signal: Signal) -> None:
        """Raise where a call breaks a rule; where it is a signal, the stream ends with the violation."""
        if self.violation is not None:
            raise self.violation
        found = violations(self.recorder.trace(self._facts), RULES_WHEN_CALLED)
        if found:
            self._raise(found[0], signal)

    def leave(self, signal: Signal) -> None:
        """Raise where what a call raised breaks a rule; sum up what is over."""
        if signal.kind is Kind.RAISED and not isinstance(signal.value, ProtocolViolation):
            found = violations(self.recorder.trace(self._facts), RULES_WHEN_RAISED)
            if found:
                raise ProtocolViolation(str(found[0])) from signal.value
        if len(self.recorder.signals) > LONGEST:
            self._sum_up()

    def _raise(self, violation: Violation, signal: Signal) -> None:
        error = ProtocolViolation(str(violation))
        if signal.kind in SIGNALS:
            self.violation = error
            if self.subscription is not None:
                self.subscription.cancel()
                self.subscriber.on_error(error)
        raise error

    def _sum_up(self) -> None:
        """Replace the oldest elements and requests by their number."""
        old, recent = self.recorder.signals[:-KEPT], self.recorder.signals[-KEPT:]
        open_calls = {signal.call for signal in recent}
        dropped: set[int] = set()
        for signal in old:
            if signal.kind in {Kind.ON_NEXT, Kind.REQUEST} and signal.at not in open_calls and self._over(signal, old):
                dropped.add(signal.at)
                if signal.kind is Kind.ON_NEXT:
                    self._facts = evolve(self._facts, delivered_before=self._facts.delivered_before + 1)
                elif is_demand(signal.value):
                    total = add_demand(self._facts.requested_before, signal.value)
                    self._facts = evolve(self._facts, requested_before=total)
        self.recorder.signals[:] = [signal for signal in old if signal.call not in dropped] + recent

    @staticmethod
    def _over(signal: Signal, old: list[Signal]) -> bool:
        return any(other.kind in ENDINGS and other.call == signal.at for other in old)


@define(eq=False)
class StrictSubscriber(RecordedSubscriber):
    """A subscriber with a judge in front of it."""

    def on_subscribe(self, subscription: Subscription) -> None:
        """Note the subscription, and pass it on."""
        if isinstance(self.judge, Strict) and self.judge.subscription is None:
            self.judge.subscription = subscription
        # Not super(): attrs makes the class anew for its slots.
        RecordedSubscriber.on_subscribe(self, subscription)


@define(eq=False)
class StrictPublisher:
    """A publisher with a judge between it and each of its subscribers."""

    publisher: Publisher[Any]

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Subscribe with a judge in between."""
        self.publisher.subscribe(_judged(subscriber))


def _judged(subscriber: Any) -> Any:
    if subscriber is None:  # the publisher has to refuse it (rule 1.9)
        return None
    recorder = Recorder()
    return StrictSubscriber(recorder, subscriber, recorder.new_stream(), Strict(recorder, subscriber))


@overload
def strict(subject: Publisher[T]) -> Publisher[T]: ...
@overload
def strict(subject: Subscriber[T]) -> Subscriber[T]: ...
def strict(subject: Any) -> Any:
    """Give a publisher, or a subscriber, that raises ProtocolViolation where either side of it breaks a rule.

    The error quotes the rule, tells what was seen and what to do, and shows the last twenty signals. It is raised
    to whoever broke the rule; if that is the publisher, its subscription is cancelled and the subscriber gets the
    error by on_error.
    """
    if callable(getattr(subject, "subscribe", None)):
        return StrictPublisher(subject)
    if callable(getattr(subject, "on_subscribe", None)):
        return _judged(subject)
    raise TypeError(f"strict() takes a publisher or a subscriber, not {type(subject).__name__}")
