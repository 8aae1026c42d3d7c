"""The entries of the synchronous operators, and of those made of them; see `tests.registry`, which takes them in."""

from __future__ import annotations

from collections.abc import Callable

from reactive_aio import Completed, Failed, Flow, Next, SynchronousSink
from tests.registry import FailureError, failed, flaky, operator, same, wide


def nothing() -> None:
    """Do nothing."""


def give_odd(pairs: int) -> Callable[[int, SynchronousSink[int]], None]:
    """Return a function for handle that emits the odd numbers, and completes behind so many."""

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
wide(
    "take_until_other",
    lambda n, via, _: via(via(Flow.range(n)).take_until_other(via(Flow.never()))),
    lambda _, via, __: via(failed(via).take_until_other(via(Flow.never()))),
    passes=True,
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
operator("sample_fraction", lambda flow: flow.sample_fraction(1.0))
wide(
    "ignore_elements",
    lambda n, via, _: via(via(via(Flow.range(3)).ignore_elements()).concat(via(Flow.range(n)))),
    lambda _, via, __: via(failed(via).ignore_elements()),
)

# -- transforming

wide(
    "map_batches",
    lambda n, via, _: via(via(Flow.range(n)).map_batches(lambda items: items, size=3)),
    lambda _, via, __: via(failed(via).map_batches(lambda items: items, size=3)),
)
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
operator("sort_by", lambda flow: flow.sort_by())
operator("repartition", lambda flow: flow.repartition(3))
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

# -- windowing

wide(
    "sliding",
    lambda n, via, _: via(via(Flow.range(2 * n + 1)).sliding(3, step=2)),
    lambda _, via, __: via(failed(via).sliding(2)),
)
wide(
    "buffer_until_changed",
    lambda n, via, _: via(via(Flow.range(2 * n)).buffer_until_changed(lambda item: item // 2)),
    lambda _, via, __: via(failed(via).buffer_until_changed()),
)

wide(
    "group_by_key",
    lambda n, via, _: via(via(Flow.range(n)).group_by_key(lambda item: item % 3).map(str).pairs()),
    lambda _, via, __: via(failed(via).group_by_key(abs).scan(max).pairs()),
)
wide(
    "group_by_key",
    lambda n, via, _: via(via(Flow.range(2 * n)).group_by_key(lambda item: item // 2, order_by=abs).buffer(2).pairs()),
    lambda _, via, __: via(failed(via).group_by_key(abs).count()),
    variant="in order",
)

# -- combining

wide(
    "start_with",
    lambda n, via, _: via(via(Flow.range(n)).start_with("first", "second").skip(2)),
    lambda _, via, __: via(failed(via).start_with(1).skip(1)),
)
operator("default_if_empty", lambda flow: flow.default_if_empty("nothing").filter(lambda item: item != "nothing"))
wide(
    "switch_if_empty",
    lambda n, via, _: via(via(Flow.empty()).switch_if_empty(via(Flow.range(n)))),
    lambda _, via, __: via(via(Flow.empty()).switch_if_empty(failed(via))),
)
wide(
    "race",
    lambda n, via, _: via(via(Flow.range(n)).race(via(Flow.never()))),
    lambda _, via, __: via(via(Flow.never()).race(failed(via))),
    passes=True,
)
wide(
    "zip",
    lambda n, via, _: via(via(Flow.range(n)).zip(via(Flow.range(n + 3)), prefetch=2)),
    lambda _, via, __: via(via(Flow.never()).zip(failed(via), prefetch=2)),
)
# Which of two flows is the first to have its turn is anybody's guess on some loops: one element of each gives one tuple.
wide(
    "combine_latest",
    lambda n, via, _: via(via(via(Flow.of("left")).combine_latest(via(Flow.of("right")), prefetch=2)).repeat(n)),
    lambda _, via, __: via(via(Flow.never()).combine_latest(failed(via), prefetch=2)),
)
wide(
    "with_latest_from",
    lambda n, via, _: via(via(Flow.range(n)).with_latest_from(via(Flow.of("latest")))),
    lambda _, via, __: via(via(Flow.never()).with_latest_from(failed(via))),
)

# -- recovering

wide(
    "retry_if",
    lambda n, via, _: via(flaky()(n, via).retry_if(lambda _, attempt: attempt < 9)),
    lambda _, via, __: via(failed(via).retry_if(lambda _, attempt: attempt < 3)),
    recovers=True,
)
wide(
    "on_error_return",
    lambda n, via, _: (
        via(via(Flow.range(n - 1).concat(failed(via))).on_error_return("last")) if n else via(Flow.empty())
    ),
    lambda _, via, __: via(failed(via).on_error_return("last", errors=OSError)),
    recovers=True,
)
wide(
    "on_error_complete",
    lambda n, via, _: via(via(Flow.range(n).concat(failed(via))).on_error_complete()),
    lambda _, via, __: via(failed(via).on_error_complete(errors=OSError)),
    recovers=True,
)
operator("on_error_map", lambda flow: flow.on_error_map(same))

# -- observing

operator("do_on_next", lambda flow: flow.do_on_next(same))
operator("do_on_error", lambda flow: flow.do_on_error(same))
operator("do_on_complete", lambda flow: flow.do_on_complete(nothing))
operator("do_on_subscribe", lambda flow: flow.do_on_subscribe(nothing))
operator("do_on_request", lambda flow: flow.do_on_request(same))
operator("do_on_cancel", lambda flow: flow.do_on_cancel(nothing))
operator("do_finally", lambda flow: flow.do_finally(nothing))
operator("do_on_discard", lambda flow: flow.do_on_discard(same))
operator("log", lambda flow: flow.log(level=1))
operator("checkpoint", lambda flow: flow.checkpoint("here"))
