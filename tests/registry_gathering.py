"""The entries of the operators that read several flows at a time; see `tests.registry`, which takes them in."""

from __future__ import annotations

from reactive_aio import Flow
from tests.registry import AnyFlow, Via, failed, wide


def alike(n: int, via: Via) -> AnyFlow:
    """Give a flow of elements that are all the same, for what mixes several flows in no certain order."""
    return via(Flow.from_iterable(["alike"] * n))


wide(
    "merge",
    lambda n, via, _: via(alike(n // 2, via).merge(alike(n - n // 2, via), prefetch=2)),
    lambda _, via, __: via(via(Flow.never()).merge(failed(via), prefetch=2)),
    asks=lambda n: max(n, 2),
    holds=4,
    mixes=True,
)
