"""Random programs: a source, operators, and an end, with failures and cancels somewhere. A program is plain data.

It is made from a seed, and is the same on every Python. `sources`, `steps` and `ends` define the names.
"""

from __future__ import annotations

import random
from typing import Final

from attrs import frozen

SOURCES: Final = (
    "range", "of", "list", "list", "generator", "generator", "generator",
    "async generator", "async generator", "slow async generator", "slow async generator",
    "create", "create", "slow create", "callable", "awaitable", "generate", "using", "async using",
    "callback", "later callback", "publisher", "publisher", "publisher", "publisher", "publisher", "later publisher",
    "later publisher", "later publisher", "later publisher", "hasty publisher", "hasty publisher", "flawed publisher", "empty", "never", "error", "timer", "interval", "deferred",
)  # fmt: skip
"""The kinds of sources; one that stands there twice comes twice as often."""
ENDLESS: Final = {"never"}
BARE: Final = (
    "take", "take", "take", "skip", "take_last", "skip_last", "buffer", "sliding", "pairwise", "window", "window at once",
    "start_with", "default_if_empty", "repeat", "index", "materialize", "dematerialize", "publish_on", "publish_on", "publish_on",
    "publish_on", "subscribe_on", "from_publisher", "tap", "tap", "tap", "tap", "checkpoint", "strict", "ignore_elements", "on_error_complete",
    "on_error_return", "delay", "delay_subscription", "debounce", "sample", "throttle_first", "rate_limit", "timeout",
    "buffer_timeout", "elapsed", "on_backpressure_error",
)  # fmt: skip
"""Operators without a function."""
CALLING: Final = (
    "map", "map", "filter", "map_not_none", "handle", "take_while", "take_until", "skip_while", "scan", "fold from the first",
    "distinct", "distinct_until_changed", "buffer_until_changed", "flat_map_iterable", "flat_map_iterable", "flat_map_iterable",
    "map_async", "map_async", "map_async", "map_async unordered", "map_async by key", "filter_when", "map_batches", "sort_by",
    "do_on_next", "do_on_error", "do_on_complete", "do_on_cancel", "do_on_cancel", "do_on_request", "do_on_subscribe", "do_finally", "do_finally", "do_finally",
    "discarding", "on_error_map", "repeat_when", "group_by", "group_by", "on_backpressure_drop", "on_backpressure_latest",
    "on_backpressure_buffer",
)  # fmt: skip
"""Operators with a function."""
RETRIES: Final = ("retry", "retry_if", "retry_when", "retry_backoff")
"""They have no say, or none that lasts, in which classes of errors they answer."""
GATHERING: Final = (
    "flat_map", "flat_map", "flat_map", "concat_map", "concat_map", "concat_map_eager", "switch_map", "switch_map",
    "exhaust_map", "merge", "merge", "merge delaying errors", "zip", "zip", "combine_latest", "concat", "concat_eager",
    "race", "with_latest_from", "take_until_other", "switch_if_empty", "on_error_resume_next", "on_error_resume_next by function",
    "timeout with fallback",
)  # fmt: skip
"""Operators that read other flows."""
ENDS: Final = (
    "to_list", "to_list", "first", "last", "reduce", "fold", "count", "drain", "for_each", "for_each async", "for_each async",
    "async for", "open", "open", "open slowly", "subscribe", "subscribe", "subscribe", "subscribe", "subscribe",
)  # fmt: skip
MOST: Final = 6
"""The most elements of the first source."""
LENGTHS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6)
"""How many operators follow it."""
BEYOND: Final = ("OwnBaseError", "CancelledError")
"""Errors outside of Exception; few programs have them."""


@frozen
class Source:
    """Where elements come from."""

    label: str
    kind: str
    items: tuple[int, ...]
    fails_at: int | None = None
    """The element in whose place it fails; behind all where there are not so many."""
    fails_times: int = 0
    """How many subscriptions fail so."""
    cleanup_fails: bool = False

    def __str__(self) -> str:
        fails = "" if self.fails_at is None else f", fails {self.fails_times} times at {self.fails_at}"
        return f"{self.label}:{self.kind}{list(self.items)}{fails}{', fails to clean up' * self.cleanup_fails}"


@frozen
class Step:
    """An operator."""

    label: str
    name: str
    n: int
    fails_at: int | None = None
    """Which call of its function fails, if any."""
    other: Chain | None = None

    def __str__(self) -> str:
        fails = "" if self.fails_at is None else f", fails at call {self.fails_at}"
        other = "" if self.other is None else f", ({self.other})"
        return f"{self.label}:{self.name}({self.n}{other}{fails})"

    @property
    def size(self) -> int:
        """A prefetch, or how many at a time: large enough for one to be asked again before all has come."""
        return (1, 2, 4, 8)[self.n]

    @property
    def names(self) -> set[str]:
        """The names of all that is in it."""
        return {self.name} | (set() if self.other is None else self.other.names)


@frozen
class Chain:
    """A source and operators."""

    source: Source
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return " . ".join(map(str, (self.source, *self.steps)))

    @property
    def names(self) -> set[str]:
        """The names of all that is in it."""
        return {self.source.kind}.union(*(step.names for step in self.steps))


@frozen
class End:
    """The reader of the flow."""

    name: str
    first: int
    """How many elements are asked for at first; 0 for all."""
    then: int
    """How many whenever these have come."""
    later: bool
    """Whether they are asked for in a later turn."""
    leaves_after: int | None
    """After how many elements it has enough."""
    fails_at: int | None

    def __str__(self) -> str:
        later = " later" * self.later
        leaves = "" if self.leaves_after is None else f", leaves after {self.leaves_after}"
        fails = "" if self.fails_at is None else f", fails at {self.fails_at}"
        return f"{self.name}({self.first}, {self.then}{later}{leaves}{fails})"


@frozen
class Program:
    """A program, whole."""

    seed: int
    chain: Chain
    end: End
    error: str
    """The name of the errors it raises."""
    cancel_at: int | None
    """The turn of the loop in which the end is cancelled."""
    hook_fails: bool

    def __str__(self) -> str:
        cancel = "" if self.cancel_at is None else f", cancelled at turn {self.cancel_at}"
        return f"{self.seed}: {self.chain} -> {self.end}; {self.error}{cancel}{', hooks fail' * self.hook_fails}"

    @property
    def names(self) -> set[str]:
        """The names of all that is in it."""
        return self.chain.names | {f"-> {self.end.name}", self.error} | ({"cancel"} if self.cancel_at else set())


@frozen
class _Maker:
    """Makes the parts of one program."""

    rng: random.Random
    failing: float
    """The chance that a part fails."""
    names: tuple[tuple[str, ...], ...]

    def chance(self, of: float) -> bool:
        return self.rng.random() < of

    def count(self, below: int) -> int:
        return self.rng.randrange(below)

    def source(self, label: str, most: int) -> Source:
        kind = SOURCES[self.count(len(SOURCES))]
        if kind in ENDLESS and self.chance(0.5):
            kind = "list"
        most *= 3 if most == MOST and self.chance(0.3) else 1
        items = tuple(self.count(12) for _ in range(self.count(most + 1)))
        fails_at = self.count(len(items) + 1) if self.chance(self.failing) else None
        times = (1, 1, 2, 99)[self.count(4)]
        return Source(label, kind, items, fails_at, times, self.chance(self.failing / 2))

    def chain(self, label: str, most: int, length: int) -> Chain:
        source = self.source(f"{label}s", most)
        return Chain(source, tuple(self.step(f"{label}{at}", inside=most < MOST) for at in range(length)))

    def step(self, label: str, *, inside: bool) -> Step:
        family = self.names[self.count(len(self.names))]
        name, n = family[self.count(len(family))], self.count(4)
        fails_at = self.count(5) if self.chance(self.failing) else None
        other = None
        if name in GATHERING:
            # The inner part is smaller, so that a program has an end.
            other = self.chain(f"{label}.", 3, 0 if inside else self.count(3) // 2)
        return Step(label, name, n, fails_at, other)

    def end(self) -> End:
        leaves = self.count(5) if self.chance(0.3) else None
        fails_at = self.count(4) if self.chance(self.failing / 2) else None
        name = ENDS[self.count(len(ENDS))]
        return End(name, self.count(4), 1 + self.count(3), self.chance(0.4), leaves, fails_at)


def program(seed: int) -> Program:
    """Make the program of a seed."""
    rng = random.Random(seed)
    beyond = rng.random() < 0.03
    error = BEYOND[rng.randrange(len(BEYOND))] if beyond else "BoomError"
    names = (BARE, BARE, CALLING, CALLING, GATHERING, GATHERING, BARE if beyond else (*RETRIES, *CALLING, *BARE))
    maker = _Maker(rng, (0.0, 0.08, 0.2, 0.4)[rng.randrange(4)], names)
    chain = maker.chain("", MOST, LENGTHS[rng.randrange(len(LENGTHS))])
    cancel_at = 1 + rng.randrange(14) if rng.random() < 0.15 else None
    return Program(seed, chain, maker.end(), error, cancel_at, rng.random() < 0.02)
