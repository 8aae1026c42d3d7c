"""The market: prices that are made up, and a score of each that runs in a region of its own."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Iterator
from statistics import fmean, pstdev
from typing import Any

from attrs import frozen

from reactive_aio import Flow, schedulers

SYMBOLS = ("ANT", "BEE", "CAT")
REMEMBERED = 20
"""How many prices a score looks back on."""


@frozen
class Tick:
    """A price, with those before it: so a score needs no memory, and any worker can compute it."""

    symbol: str
    price: float
    before: tuple[float, ...]


@frozen
class Quote:
    """A price with its score: by how many standard deviations it is off its latest mean."""

    symbol: str
    price: float
    score: float


def ticks(seed: int) -> Iterator[Tick]:
    """Let each price walk at random, the same way for the same seed."""
    chance = random.Random(seed)
    history = {symbol: deque([100.0], maxlen=REMEMBERED) for symbol in SYMBOLS}
    while True:
        for symbol, prices in history.items():
            before = tuple(prices)
            prices.append(round(prices[-1] * (1 + chance.gauss(0, 0.002)), 2))
            yield Tick(symbol, prices[-1], before)


def score(tick: Tick) -> Quote:
    """Say how unusual a price is."""
    spread = pstdev(tick.before) or 1.0
    return Quote(tick.symbol, tick.price, round((tick.price - fmean(tick.before)) / spread, 2))


def quotes(seed: int, per_second: int) -> Flow[Quote]:
    """Return the scored prices at a steady rate.

    Only what stands between the two boundaries leaves this event loop. To compute it elsewhere is a matter of one line.
    """
    # The pace stands in front of the boundary: else all that it reads ahead would be made at once.
    feed = Flow.defer(lambda: Flow.from_iterable(ticks(seed))).rate_limit(1, per=1 / per_second)
    return feed.publish_on(engine(), prefetch=16).map(score).publish_on(schedulers.current(), prefetch=16)


def engine() -> Any:
    """Choose where prices are scored, by the variable ENGINE."""
    name = os.environ.get("ENGINE", "asyncio")
    if name == "asyncio":
        return schedulers.thread("scores")
    if name != "spark":
        raise ValueError(f"ENGINE={name}: it is asyncio or spark")
    from reactive_aio.spark.session import local_session

    return schedulers.spark(local_session("service"), slots=1)
