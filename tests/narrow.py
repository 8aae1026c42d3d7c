"""A Python that counts no further than 2**31 - 1, as on a machine of 32 bits or in a browser; runs flows in it.

It is run as a script: what counts is replaced before the library is imported.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def check(n: int | None) -> None:
    """Raise what such a Python raises."""
    if n is not None and n > sys.maxsize:
        raise OverflowError("Python int too large to convert to C ssize_t")


class NarrowDeque(collections.deque[Any]):
    """A deque whose length is counted so."""

    def __init__(self, items: Iterable[Any] = (), maxlen: int | None = None) -> None:
        check(maxlen)
        super().__init__(items, maxlen)


def narrow_islice(
    items: Iterable[Any], *at: int | None, islice: Callable[..., Iterator[Any]] = itertools.islice
) -> Any:
    for n in at:
        check(n)
    return islice(items, *at)


def narrow_hint(value: object, default: int = 0, hint: Callable[..., int] = operator.length_hint) -> int:
    length = hint(value, default)
    check(length)
    return length


def main() -> None:
    """Run each flow, and tell what comes of it."""
    sys.maxsize = 2**31 - 1
    world: tuple[Any, Any, Any] = collections, itertools, operator
    world[0].deque, world[1].islice, world[2].length_hint = NarrowDeque, narrow_islice, narrow_hint
    from reactive_aio import Flow

    numbers = Flow.range(3)
    flows: dict[str, Flow[Any]] = {
        "map": numbers.map(abs),
        "flat_map_iterable": numbers.flat_map_iterable(lambda n: [n]),
        "flat_map": numbers.flat_map(Flow.of),
        "take_last": numbers.take_last(2**40),
        "skip_last": numbers.skip_last(2**40),
        "slice": numbers[0 : 2**40],
        "sliding": numbers.sliding(2**40).start_with(0, 1, 2),
        "concat": numbers.concat(Flow.empty()),
        "merge": numbers.merge(Flow.empty(), prefetch=2**40),
        "on_backpressure_buffer": numbers.on_backpressure_buffer(2**40),
        "range": Flow.range(2**40).take(3),
    }
    for name, flow in flows.items():
        sys.stdout.write(f"{name} {asyncio.run(asyncio.wait_for(flow.to_list(), 60))}\n")


if __name__ == "__main__":
    main()
