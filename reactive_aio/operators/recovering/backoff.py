"""How often to subscribe again, and how long to wait before."""

from __future__ import annotations

from random import Random, uniform
from typing import Final

from attrs import field, frozen

from ..._fusion import label
from .._fluent import check_count, check_flag, check_seconds

MOST: Final = 1e9
"""The largest factor, so that no wait comes out as infinite."""


@frozen
class Backoff:
    """A policy for `Flow.retry`: how long it waits before it tries again, and how often it does.

    The first wait is ``first`` seconds. Each later wait is ``factor`` times the one before, up to ``max_delay`` seconds.
    ``jitter``, from 0 to 1, changes each wait at random: 0.5 makes it up to half longer or shorter. ``random`` supplies the
    random numbers. ``max_retries`` is the number of retries after the first attempt; None means no limit.
    **By default each element resets the count and the waits**, so ``max_retries`` is a number in a row. A source that emits
    before each failure is then retried for ever. With ``reset=False`` all retries of a subscription count.

    >>> from reactive_aio import Backoff
    >>> Backoff(0.5, max_retries=3)
    Backoff(first=0.5, max_retries=3, factor=2.0, max_delay=60.0, jitter=0.5, reset=True)
    """

    first: float
    max_retries: int | None = field(kw_only=True, default=None)
    factor: float = field(kw_only=True, default=2.0)
    max_delay: float = field(kw_only=True, default=60.0)
    jitter: float = field(kw_only=True, default=0.5)
    reset: bool = field(kw_only=True, default=True)
    random: Random | None = field(kw_only=True, default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        check_seconds("Backoff", "first", self.first)
        check_seconds("Backoff", "max_delay", self.max_delay)
        check_flag("Backoff", "reset", self.reset)
        if self.max_retries is not None:
            check_count("Backoff", "max_retries", self.max_retries, 0)
        if self.max_delay < self.first:
            raise ValueError(f"Backoff(max_delay={self.max_delay:g}): max_delay must be at least first, {self.first:g}")
        _check_number("factor", self.factor, 1, MOST)
        _check_number("jitter", self.jitter, 0, 1)
        random: object = self.random
        if random is not None and not isinstance(random, Random):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"Backoff(random=...) takes a random.Random, not {type(random).__name__}")

    def spread(self, delay: float) -> float:
        """Return the delay with jitter, so that those that failed together do not retry together."""
        share = delay * self.jitter
        draw = uniform if self.random is None else self.random.uniform
        return draw(delay - share, min(delay + share, self.max_delay)) if share else delay

    def after(self, delay: float) -> float:
        """Return the delay that follows ``delay``."""
        return min(delay * self.factor, self.max_delay)


def at_once(max_retries: int | None) -> Backoff:
    """Return the policy of a plain number: no waits, and the same number of retries after an element as before."""
    return Backoff(0.0, max_retries=max_retries, reset=False)


def _check_number(name: str, value: object, least: float, most: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"Backoff({name}={label(value)}): {name} is a number from {least:g} to {most:g}")


def check_retries(policy: object) -> None:
    """Raise unless the value is a number of retries or a policy."""
    if not isinstance(policy, int) or isinstance(policy, bool):
        kind = type(policy).__name__
        raise TypeError(
            f"retry(policy={label(policy)}): policy is of type {kind}. Pass a number of retries, a Backoff(...) or None"
        )
    check_count("retry", "policy", policy, 0)
