"""The entries of the operators that read several flows at a time; see `tests.registry`, which takes them in."""

from __future__ import annotations

from reactive_aio import Flow
from tests.registry import AnyFlow, Via, failed, raise_failure, same, wide


def alike(n: int, via: Via) -> AnyFlow:
    """Return a flow of elements that are all the same, for what mixes several flows in no certain order."""
    return via(Flow.from_iterable(["alike"] * n))


wide(
    "merge",
    lambda n, via, _: via(alike(n // 2, via).merge(alike(n - n // 2, via), prefetch=2)),
    lambda _, via, __: via(via(Flow.never()).merge(failed(via), prefetch=2)),
    mixes=True,
)

wide(
    "concat_eager",
    lambda n, via, _: via(via(Flow.range(n // 2)).concat_eager(via(Flow.range(n // 2, n)), prefetch=2)),
    lambda _, via, __: via(via(Flow.empty()).concat_eager(failed(via), prefetch=2)),
)

# -- a flow for each element

wide(
    "flat_map",
    lambda n, via, _: via(alike(n, via).flat_map(lambda item: via(Flow.of(item)), max_concurrency=2, prefetch=1)),
    lambda _, via, __: via(via(Flow.range(3)).flat_map(lambda _: failed(via), max_concurrency=2)),
    mixes=True,
)
wide(
    "concat_map",
    lambda n, via, _: via(via(Flow.range(n)).concat_map(lambda item: via(Flow.of(repr(item))))),
    lambda _, via, __: via(via(Flow.of(1)).concat_map(raise_failure)),
)
wide(
    "concat_map_eager",
    lambda n, via, _: via(
        via(Flow.range(n)).concat_map_eager(lambda item: via(Flow.of(item)), max_concurrency=2, prefetch=1)
    ),
    lambda _, via, __: via(via(Flow.of(1, 2)).concat_map_eager(lambda _: failed(via))),
)
wide(
    "switch_map",
    lambda n, via, _: via(via(Flow.of(n)).switch_map(lambda n: via(Flow.range(n)))),
    lambda _, via, __: via(via(Flow.of(1)).switch_map(lambda _: failed(via))),
)
wide(
    "exhaust_map",
    lambda n, via, _: via(via(Flow.of(n)).exhaust_map(lambda n: via(Flow.range(n)))),
    lambda _, via, __: via(failed(via).exhaust_map(Flow.of)),
)

# -- flows that are parts of another

wide(
    "window",
    lambda n, via, _: via(via(via(Flow.range(n)).window(2)).concat_map(same)),
    lambda _, via, __: via(via(failed(via).window(2)).concat_map(same)),
)
wide(
    "group_by",
    lambda n, via, _: via(via(via(Flow.range(n)).group_by(lambda _: "all", prefetch=2)).concat_map(same)),
    lambda _, via, __: via(via(via(Flow.of(1)).group_by(raise_failure)).concat_map(same)),
)

# -- one run for several subscribers; here there is one

wide(
    "share",
    lambda n, via, _: via(via(Flow.range(n)).share(lag=4)),
    lambda _, via, __: via(failed(via).share()),
)
wide(
    "multicast",
    lambda n, via, _: via(via(Flow.range(n)).multicast(via, lag=4)),
    lambda _, via, __: via(failed(via).multicast(same)),
)
