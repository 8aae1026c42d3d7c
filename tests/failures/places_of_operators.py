"""The places in operators where a user's code is called; see `tests.failures.places`, which takes them in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from reactive_aio import Backoff, Flow
from reactive_aio._fusion import Stage
from tests.failures.code import AnyFlow, Code, Items
from tests.failures.places import SOON, by_function, flow, followed, held, identity


@frozen(eq=False)
class Passing(Stage[Any, Any]):
    """A stage of a user's own, with one method that raises."""

    code: Code
    bad: str

    def _go(self, method: str) -> None:
        if method == self.bad:
            self.code.trip()

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        """Pass on."""
        self._go("apply")
        for item in items:
            self._go("apply, in the middle")
            yield item

    def finish(self) -> Iterator[Any]:
        """Return nothing more."""
        self._go("finish")
        return iter(())

    def close(self) -> None:
        """Let go."""
        self._go("close")

    def transform(self) -> Passing:
        """Return the stage itself."""
        self._go("transform")
        return self


class BadRandom(random.Random):
    """A source of chance that raises."""

    code: Code

    def random(self) -> float:
        """Return a number."""
        self.code.trip()
        return 0.5


def bad_random(code: Code) -> BadRandom:
    """Make one."""
    made = BadRandom(1)
    made.code = code
    return made


# -- transforming and filtering


by_function("map", "fn", lambda flow, fn: flow.map(fn), lambda item: item)
by_function("map_not_none", "fn", lambda flow, fn: flow.map_not_none(fn), lambda item: item)
by_function("filter", "predicate", lambda flow, fn: flow.filter(fn), lambda _: True)
by_function("take_while", "predicate", lambda flow, fn: flow.take_while(fn), lambda _: True)
by_function("take_until", "predicate", lambda flow, fn: flow.take_until(fn), lambda _: False)
by_function("skip_while", "predicate", lambda flow, fn: flow.skip_while(fn), lambda _: False)
by_function("distinct", "key", lambda flow, fn: flow.distinct(fn), lambda item: item)
by_function("distinct_until_changed", "key", lambda flow, fn: flow.distinct_until_changed(fn), lambda item: item)
by_function(
    "distinct_until_changed",
    "comparer",
    lambda flow, fn: flow.distinct_until_changed(None, comparer=fn),
    lambda *_: False,
)
by_function("sample_fraction", "key", lambda flow, fn: flow.sample_fraction(1.0, key=fn), lambda item: item)
by_function("scan", "fn", lambda flow, fn: flow.scan(fn), lambda total, _: total)
by_function("scan", "fn, from a start", lambda flow, fn: flow.scan(fn, 0), lambda total, _: total)
by_function("sort_by", "key", lambda flow, fn: flow.sort_by(fn), lambda item: item)
by_function("handle", "fn", lambda flow, fn: flow.handle(fn), lambda item, sink: sink.next(item))
by_function("map_batches", "fn", lambda flow, fn: flow.map_batches(fn, size=1), lambda items: items)
flow("multicast", "fn", lambda code: code.numbers().multicast(code.calls(lambda shared: shared)))
by_function("flat_map_iterable", "fn", lambda flow, fn: flow.flat_map_iterable(fn), lambda item: (item,))
by_function("buffer_until_changed", "key", lambda flow, fn: flow.buffer_until_changed(fn), lambda item: item)
flow(
    "flat_map_iterable",
    "fn's generator",
    lambda code: code.numbers().flat_map_iterable(lambda _: code.generator()),
)
flow(
    "flat_map_iterable",
    "fn's generator's finally",
    lambda code: code.numbers().flat_map_iterable(lambda _: code.generator(finally_=True)),
    cleanup=True,
    python_swallows=("GeneratorExit",),
    lasting=held(lambda code: Flow.of(0, 1).flat_map_iterable(lambda _: code.generator(finally_=True))),
)
flow(
    "flat_map_iterable",
    "fn's __iter__",
    lambda code: code.numbers().flat_map_iterable(lambda _: Items(code, "__iter__")),
)
flow(
    "flat_map_iterable",
    "fn's __next__",
    lambda code: code.numbers().flat_map_iterable(lambda _: Items(code, "__next__")),
    not_kinds=("StopIteration",),
)
flow("map_batches", "fn's generator", lambda code: code.numbers().map_batches(lambda _: code.generator(), size=1))
for method in ("transform", "apply", "apply, in the middle", "finish"):
    flow("then", f"stage's {method}", lambda code, method=method: code.numbers().then(Passing(code, method)))
flow(
    "then", "stage's close", lambda code: code.numbers().then(Passing(code, "close")), cleanup=True, not_by_workers=True
)

# -- awaiting

for name, order in (("fn", "input"), ("fn, by completion", "completion"), ("fn, by key", lambda _: "key")):
    flow(
        "map_async",
        name,
        lambda code, order=order: code.numbers().map_async(
            code.awaits(lambda item: item), max_concurrency=2, order=order
        ),
    )
flow(
    "map_async",
    "fn, one at a time",
    lambda code: code.numbers().map_async(code.awaits(lambda item: item), max_concurrency=1),
)
flow(
    "map_async",
    "fn, when it is called",
    lambda code: code.numbers().map_async(code.calls(), max_concurrency=2),
    lasting=followed(lambda code: code.numbers().map_async(identity, max_concurrency=2)),
)
flow(
    "map_async",
    "order",
    lambda code: code.numbers().map_async(identity, max_concurrency=2, order=code.calls(lambda item: item)),
)
flow("filter_when", "predicate", lambda code: code.numbers().filter_when(code.awaits(lambda _: True)))
flow(
    "filter_when",
    "predicate, two at a time",
    lambda code: code.numbers().filter_when(code.awaits(lambda _: True), max_concurrency=2),
)


async def cleaning_up(code: Code, item: Any) -> Any:
    """Wait for ever; or fail with another error, for the second element."""
    if item and not code.endless:
        await asyncio.sleep(0)
        raise code.first
    try:
        await asyncio.Event().wait()
    finally:
        code.trip()


for method in ("map_async", "filter_when"):
    flow(
        method,
        "another call's finally",
        lambda code, method=method: getattr(code.numbers(), method)(
            lambda item: cleaning_up(code, item), max_concurrency=2
        ),
        hears="first and hook",
        cleanup=True,
        in_task=True,
    )

# -- flattening

for method in ("flat_map", "concat_map", "concat_map_eager", "switch_map", "exhaust_map"):
    by_function(method, "fn", lambda flow, fn, method=method: getattr(flow, method)(fn), Flow.of)
    flow(
        method,
        "fn's flow",
        lambda code, method=method: getattr(code.numbers(0), method)(lambda _: Flow.from_iterable(code.generator())),
    )
    flow(
        method,
        "fn's async flow",
        lambda code, method=method: getattr(code.numbers(0), method)(
            lambda _: Flow.from_async_iterable(code.async_generator())
        ),
    )
    flow(
        method,
        "fn's flow's finally",
        lambda code, method=method: getattr(code.numbers(0), method)(
            lambda _: Flow.from_async_iterable(code.async_generator(finally_=True))
        ),
        cleanup=True,
        in_task=True,
        python_swallows=("GeneratorExit",),
    )

# -- combining: in a flow beside


def beside(method: str) -> AnyFlow:
    """Return a flow for an operator that reads others beside it."""
    if method == "race":
        return Flow.never()
    return Flow.range(9) if method in {"zip", "combine_latest"} else Flow.empty()


for method in ("concat", "concat_eager", "merge", "zip", "combine_latest", "race"):
    flow(
        method,
        "others",
        lambda code, method=method: getattr(beside(method), method)(code.numbers().map(code.calls(lambda item: item))),
    )
    flow(
        method,
        "others' finally",
        lambda code, method=method: getattr(beside(method), method)(
            Flow.from_async_iterable(code.async_generator(finally_=True))
        ),
        cleanup=True,
        in_task=True,
        python_swallows=("GeneratorExit",),
    )
flow(
    "merge",
    "others, errors delayed",
    lambda code: Flow.of(5).merge(code.numbers().map(code.calls(lambda item: item)), delay_errors=True),
)
flow(
    "with_latest_from", "other", lambda code: Flow.never().with_latest_from(code.numbers().map(code.calls(lambda n: n)))
)
flow(
    "take_until_other",
    "other",
    lambda code: Flow.never().take_until_other(code.numbers(0).filter(code.calls(lambda _: False))),
)
flow("take_until_other", "other, a function", lambda code: Flow.never().take_until_other(code.awaits(waits=True)))
flow("switch_if_empty", "other", lambda code: Flow.empty().switch_if_empty(code.numbers().map(code.calls(lambda n: n))))
flow(
    "timeout", "fallback", lambda code: Flow.never().timeout(SOON, fallback=code.numbers().map(code.calls(lambda n: n)))
)

# -- windowing

flow("group_by", "key", lambda code: code.numbers().group_by(code.calls(lambda n: n)).flat_map(lambda group: group))
flow(
    "group_by",
    "a group's reader",
    lambda code: code.numbers().group_by(lambda n: n).flat_map(lambda group: group.map(code.calls(lambda n: n))),
)
flow(
    "group_by",
    "source",
    lambda code: code.numbers().map(code.calls(lambda n: n)).group_by(lambda n: n).flat_map(lambda group: group),
)
flow("group_by_key", "key", lambda code: code.numbers().group_by_key(code.calls(lambda n: n)).pairs())
flow(
    "group_by_key", "order_by", lambda code: code.numbers().group_by_key(abs, order_by=code.calls(lambda n: n)).pairs()
)
flow(
    "group_by_key",
    "a function for each key",
    lambda code: code.numbers().group_by_key(abs).map(code.calls(lambda n: n)).pairs(),
)
flow(
    "group_by_key",
    "source",
    lambda code: code.numbers().map(code.calls(lambda n: n)).group_by_key(abs).take(9).pairs(),
)
flow(
    "group_by_key",
    "key of a join's right side",
    lambda code: code.numbers().group_by_key(abs).join(code.numbers().group_by_key(code.calls(lambda n: n))),
)
flow(
    "group_by_key",
    "key of a join within a time",
    lambda code: (
        code.numbers().group_by_key(code.calls(lambda n: n)).join(code.numbers().group_by_key(abs), within=1e6)
    ),
)
flow(
    "window",
    "a window's reader",
    lambda code: code.numbers().window(2).concat_map(lambda window: window.map(code.calls(lambda n: n))),
)

# -- recovering

flow("on_error_map", "fn", lambda code: code.failing().on_error_map(code.calls(lambda error: error)))
flow(
    "on_error_resume_next",
    "fallback",
    lambda code: code.failing().on_error_resume_next(code.calls(lambda _: Flow.never())),
)
flow(
    "on_error_resume_next",
    "fallback's flow",
    lambda code: code.failing().on_error_resume_next(lambda _: Flow.from_iterable(code.generator())),
)
flow("retry_if", "predicate", lambda code: code.failing().retry_if(code.calls(lambda *_: False)))
flow("retry_when", "decide", lambda code: code.failing().retry_when(code.awaits(lambda *_: False)))
flow("repeat_when", "decide", lambda code: code.numbers().repeat_when(code.awaits(lambda *_: False)))
flow("retry", "resume", lambda code: code.failing().retry(Backoff(0.0, max_retries=2), resume=code.calls()))
flow("retry", "random", lambda code: code.failing().retry(Backoff(SOON, max_retries=2, random=bad_random(code))))

# -- observing

by_function("do_on_next", "fn", lambda flow, fn: flow.do_on_next(fn), lambda _: None)
by_function("do_on_complete", "fn", lambda flow, fn: flow.do_on_complete(fn), lambda: None)
by_function("do_on_subscribe", "fn", lambda flow, fn: flow.do_on_subscribe(fn), lambda: None)
by_function("do_on_request", "fn", lambda flow, fn: flow.do_on_request(fn), lambda _: None)
by_function("do_on_cancel", "fn", lambda flow, fn: flow.do_on_cancel(fn), lambda: None, cleanup=True, early=True)
by_function("do_finally", "fn", lambda flow, fn: flow.do_finally(fn), lambda: None, cleanup=True)
flow("do_on_error", "fn", lambda code: code.failing().do_on_error(code.calls()))
flow("do_on_discard", "fn", lambda code: discarding(code).do_on_discard(code.calls()), hears="first and hook")


def discarding(code: Code) -> AnyFlow:
    """Return a flow that discards an element, and fails."""
    return code.failing().buffer(2)


# -- overflow

for method, more in (
    ("on_backpressure_drop", {}),
    ("on_backpressure_latest", {}),
    ("on_backpressure_buffer", {"max_size": 1, "overflow": "drop_oldest"}),
    ("on_backpressure_buffer", {"max_size": 1, "overflow": "drop_latest"}),
):
    flow(
        method,
        f"on_drop {more.get('overflow', '')}".strip(),
        lambda code, method=method, more=more: getattr(
            Flow.of(*range(9)).concat(Flow.never()) if code.endless else Flow.range(9), method
        )(**more, on_drop=code.calls()).map_async(identity, max_concurrency=1),
    )
