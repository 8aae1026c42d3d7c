"""The entries of the synchronous operators, and of those made of them; see `tests.registry`, which takes them in."""

from __future__ import annotations

from collections.abc import Callable

from reactive_aio import Completed, Failed, Flow, Next, SynchronousSink
from tests.registry import FailureError, failed, operator, same, wide


def give_odd(pairs: int) -> Callable[[int, SynchronousSink[int]], None]:
    """Give a function for handle that emits the odd numbers, and completes behind so many."""

    def give(item: int, sink: SynchronousSink[int]) -> None:
        if item % 2:
            sink.next(item)
        if item >= 2 * pairs - 1:
            sink.complete()

    return give


# -- filtering

operator("take_while", lambda flow: flow.take_while(lambda _: True))
wide(
    "take_until",
    lambda n, via, _: via(via(Flow.range(n + 1)).take_until(lambda item: item == n).skip(1)),
    lambda _, via, __: via(failed(via).take_until(bool)),
)
operator("take_last", lambda flow: flow.take_last(10_000))
wide(
    "skip_last",
    lambda n, via, _: via(via(Flow.range(n + 2)).skip_last(2)),
    lambda _, via, __: via(failed(via).skip_last(2)),
)
wide(
    "skip_while",
    lambda n, via, _: via(via(Flow.range(n + 3)).skip_while(lambda item: item < 3)),
    lambda _, via, __: via(failed(via).skip_while(bool)),
)
wide(
    "__getitem__",
    lambda n, via, _: via(via(Flow.range(2 * n + 9))[2 : 2 * n + 2 : 2]),
    lambda _, via, __: via(failed(via)[1:]),
)
wide(
    "distinct",
    lambda n, via, _: via(via(Flow.range(2 * n)).distinct(lambda item: item // 2)),
    lambda _, via, __: via(failed(via).distinct()),
    ends_late=True,
)
wide(
    "distinct_until_changed",
    lambda n, via, _: via(via(Flow.range(2 * n)).distinct_until_changed(lambda item: item // 2)),
    lambda _, via, __: via(failed(via).distinct_until_changed()),
    ends_late=True,
)
operator("of_type", lambda flow: flow.of_type(int))
wide(
    "ignore_elements",
    lambda n, via, _: via(via(via(Flow.range(3)).ignore_elements()).concat(via(Flow.range(n)))),
    lambda _, via, __: via(failed(via).ignore_elements()),
)

# -- transforming

wide(
    "map_not_none",
    lambda n, via, _: via(via(Flow.range(2 * n)).map_not_none(lambda item: item if item % 2 else None)),
    lambda _, via, __: via(failed(via).map_not_none(same)),
)
wide(
    "scan",
    lambda n, via, _: via(via(Flow.range(n + 1)).scan(lambda total, item: total + item).skip(1)),
    lambda _, via, __: via(failed(via).scan(max)),
)
wide(
    "scan",
    lambda n, via, _: via(via(Flow.range(n)).scan(lambda total, item: total + item, 0).skip(1)),
    lambda _, via, __: via(failed(via).scan(max, 0).skip(1)),
    variant="from",
)
wide(
    "index",
    lambda n, via, _: via(via(Flow.range(n)).index(1)),
    lambda _, via, __: via(failed(via).index()),
)
wide(
    "handle",
    lambda n, via, _: via(via(Flow.range(2 * n + 1)).handle(give_odd(n))),
    lambda _, via, __: via(failed(via).handle(give_odd(0))),
)
wide(
    "pairwise",
    lambda n, via, _: via(via(Flow.range(n + 1)).pairwise()),
    lambda _, via, __: via(failed(via).pairwise()),
)
wide(
    "materialize",
    lambda n, via, _: via(via(via(Flow.range(n)).materialize()).take(n)),
    lambda _, via, __: via(via(failed(via).materialize()).dematerialize()),
    recovers=True,
)
wide(
    "dematerialize",
    lambda n, via, _: via(via(Flow.of(*map(Next, range(n)), Completed())).dematerialize()),
    lambda _, via, __: via(via(Flow.of(Failed(FailureError("failed")))).dematerialize()),
    ends_late=True,
)
