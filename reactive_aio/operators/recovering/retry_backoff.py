"""The combinator that subscribes again when its flow fails, after longer and longer waits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random, uniform
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ...guard import Failed, guarded
from ...notes import add_note
from ...segments import Inlet, Pushed, label
from ...segments.nodes import FlowLike
from ...spec import Subscription
from .._fluent import check_flow, check_seconds
from ..timing.waiting import Waiting
from .resume import Errors

T = TypeVar("T")

MOST: Final = 1e9
"""The largest factor, so that no wait comes out as infinite."""


@frozen
class Backoff:
    """How often to try again, and how long to wait before."""

    max_retries: int | None
    first: float
    factor: float
    max_delay: float
    jitter: float
    random: Random | None = field(repr=False)

    def spread(self, delay: float) -> float:
        """Give the delay with its share of chance, which keeps those apart that have failed together."""
        share = delay * self.jitter
        draw = uniform if self.random is None else self.random.uniform
        return draw(delay - share, min(delay + share, self.max_delay)) if share else delay

    def after(self, delay: float) -> float:
        """Give the delay that follows another."""
        return min(delay * self.factor, self.max_delay)


def check_backoff(backoff: float, factor: float, max_delay: float, jitter: float, random: object) -> None:
    """Refuse at once waits that make no sense."""
    check_seconds("retry_backoff", "backoff", backoff)
    check_seconds("retry_backoff", "max_delay", max_delay)
    if max_delay < backoff:
        raise ValueError(f"retry_backoff(max_delay={max_delay:g}): it is below the first wait, backoff={backoff:g}")
    given: list[tuple[str, object, float, float]] = [("factor", factor, 1, MOST), ("jitter", jitter, 0, 1)]
    for name, value, least, most in given:
        if isinstance(value, bool) or not (isinstance(value, (int, float)) and least <= value <= most):
            raise ValueError(f"retry_backoff({name}={label(value)}): {name} is a number from {least:g} to {most:g}")
    if random is not None and not isinstance(random, Random):
        raise TypeError(f"retry_backoff(random=...) takes a random.Random, not {type(random).__name__}")


@frozen
class RetryBackoff(Pushed[T]):
    """Source of ``Flow.retry_backoff``."""

    flow: FlowLike
    backoff: Backoff
    errors: Errors
    reset: bool
    resume: Callable[[Any], FlowLike] | None

    @property
    def arguments(self) -> str:
        """How often, and how long at first."""
        return f"{label(self.flow)}, {self.backoff.max_retries}, {self.backoff.first:g}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first attempt."""
        attempts = SpacedAttempts(inlet, self)
        attempts.advance(self.flow)
        return attempts


@define(eq=False)
class SpacedAttempts(Waiting):
    """Waits after a failure, and subscribes anew; in one subscription."""

    given: RetryBackoff[Any]
    _retries: int = field(init=False, default=0)
    """How many there have been, since the last element where that resets them."""
    _delay: float = field(init=False)
    """The next one, without its share of chance."""
    _last: list[Any] = field(init=False, factory=list[Any])
    """The last element of all attempts, where it is needed to go on from it."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._delay = self.given.backoff.first

    def on_source_chunk(self, items: list[Any]) -> None:
        """Pass elements on: a success."""
        if self.given.reset and self._retries:
            self._retries, self._delay = 0, self.given.backoff.first
        if self.given.resume is not None:
            self._last = items[-1:]
        super().on_source_chunk(items)

    def on_source_complete(self) -> None:
        """Complete with the attempt that did."""
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Wait for the next attempt, or give up with this failure."""
        backoff = self.given.backoff
        if not isinstance(error, self.given.errors):
            self.fail(error)
        elif self._retries == backoff.max_retries:
            add_note(error, f"given up after {self._retries} retries in a row: {self.inlet.where}")
            self.fail(error)
        else:
            self._retries += 1
            delay, self._delay = self._delay, backoff.after(self._delay)
            if delay:
                self._wait(delay)
            else:
                self.on_time()

    def _wait(self, delay: float) -> None:
        # Guarded, because a generator of random numbers may be of a class of the user's.
        spread = guarded(self.inlet.context, self.given.backoff.spread, delay)
        if isinstance(spread, Failed):
            self.fail(spread.error)
        else:
            self.timer.start(spread)

    def on_time(self) -> None:
        """Try once more."""
        resume = self.given.resume
        if resume is None or not self._last:
            self.advance(self.given.flow)
            return
        flow = guarded(self.inlet.context, _resumed, resume, self._last[0])
        if isinstance(flow, Failed):
            add_note(flow.error, f"raised by the resume of {self.inlet.where}")
            self.fail(flow.take())
        else:
            self.advance(flow)


def _resumed(resume: Callable[[Any], FlowLike], last: Any) -> FlowLike:
    flow = resume(last)
    check_flow("retry_backoff(resume=...)", flow)
    return flow
