"""The entries of the synchronous operators, and of those made of them; see `tests.registry`, which takes them in."""

from __future__ import annotations

from reactive_aio import Flow
from tests.registry import failed, operator, wide

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
