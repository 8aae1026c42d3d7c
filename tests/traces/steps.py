"""The operators of programs, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from reactive_aio import Backoff, Flow, SynchronousSink, schedulers
from tests.traces.programs import Chain, Step
from tests.traces.run import AnyFlow, Fn, Run
from tests.traces.sources import Tapped, source
from tests.traces.tape import number, show

Build = Callable[[AnyFlow, Run, Step], AnyFlow]


def chain(run: Run, described: Chain, offset: int = 0) -> AnyFlow:
    """Return the flow of a chain."""
    flow = source(run, described.source, offset)
    for step in described.steps:
        flow = run.via(STEPS[step.name](flow, run, step))
    return flow


def other(run: Run, step: Step, offset: int = 0) -> AnyFlow:
    """Return the flow that a step reads beside its input."""
    assert step.other is not None
    return chain(run, step.other, offset)


def inner(run: Run, step: Step) -> Fn:
    """Return a function that makes a flow of an element."""
    return run.fn(step, lambda item: other(run, step, number(item)))


def each_window(run: Run, step: Step) -> Fn:
    """Return a function that reads a window or a group."""

    def read(window: AnyFlow) -> AnyFlow:
        run.say(f"{step.label} reads a part")
        return run.via(window.map(lambda item: [item]))

    return read


def some(run: Run, step: Step) -> Fn:
    """Return a function that makes up to two elements of one, by a generator, or in a list."""

    def generate(item: Any) -> Iterator[int]:
        try:
            for more in range(number(item) % 3):
                run.say(f"{step.label} makes {show(item)}+{more}")
                yield number(item) + more
        finally:
            run.say(f"{step.label} has made {show(item)}")

    return run.fn(step, generate if step.n % 2 else lambda item: [number(item)] * (number(item) % 3))


def handled(step: Step) -> Fn:
    """Return a function that emits, leaves out, or ends."""

    def handle(item: Any, sink: SynchronousSink[int]) -> None:
        if number(item) % 3:
            sink.next(number(item) + 1)
        if number(item) == 10 + step.n:
            sink.complete()

    return handle


def discarding(flow: AnyFlow, fn: Fn) -> AnyFlow:
    """Listen to what is discarded: the one place for that operator."""
    return flow.do_on_discard(fn)


def grouped(flow: AnyFlow, run: Run, step: Step) -> AnyFlow:
    """Group, and read the groups."""
    key = run.fn(step, lambda item: number(item) % 3)
    groups = run.via(flow.group_by(key, max_groups=2 + step.n, prefetch=step.size))
    return groups.flat_map(each_window(run, step), max_concurrency=4, prefetch=step.size)


def total(left: Any, item: Any) -> int:
    """Add."""
    return (number(left) + number(item)) % 97


def odd(*args: Any) -> int:
    """Return whether an element is odd."""
    return number(args[0]) % 2


def half(item: Any) -> int:
    """Return the same for two neighbours."""
    return number(item) // 2


def nothing(*_: Any) -> None:
    """Do nothing."""


def plus(step: Step) -> Fn:
    """Return a function that adds."""
    return lambda item: number(item) + step.n


def mapped_error(error: BaseException) -> BaseException:
    """Make another error of one."""
    return KeyError(f"mapped {type(error).__name__}")


def batch(items: list[Any]) -> list[int]:
    """Turn a batch round."""
    return [number(item) for item in reversed(items)]


def early(step: Step) -> Fn:
    """Return a function that is true of smaller elements."""
    return lambda item: number(item) < 6 + step.n


def tries(run: Run, step: Step, least: int) -> Fn:
    """Return a function that agrees to a few more subscriptions."""
    return run.fn(step, lambda *args: args[-1] < step.n + least)


STEPS: Final[dict[str, Build]] = {
    # -- without a function
    "take": lambda flow, _, step: flow.take(step.n),
    "skip": lambda flow, _, step: flow.skip(step.n),
    "take_last": lambda flow, _, step: flow.take_last(step.n),
    "skip_last": lambda flow, _, step: flow.skip_last(step.n),
    "buffer": lambda flow, _, step: flow.buffer(step.n + 1),
    "sliding": lambda flow, _, step: flow.sliding(step.n + 1, step=2),
    "pairwise": lambda flow, _, __: flow.pairwise(),
    "window": lambda flow, run, step: run.via(flow.window(step.n + 1)).concat_map(each_window(run, step)),
    "window at once": lambda flow, run, step: run.via(flow.window(step.n + 1)).flat_map(
        each_window(run, step), max_concurrency=2, prefetch=step.size
    ),
    "start_with": lambda flow, _, step: flow.start_with(step.n, step.n + 1),
    "default_if_empty": lambda flow, _, step: flow.default_if_empty(step.n),
    "repeat": lambda flow, _, step: flow.repeat(step.n),
    "index": lambda flow, _, step: flow.index(step.n),
    "materialize": lambda flow, _, __: flow.materialize(),
    "dematerialize": lambda flow, run, _: run.via(flow.materialize()).dematerialize(),
    "publish_on": lambda flow, _, step: flow.publish_on(schedulers.current(), prefetch=step.size),
    "subscribe_on": lambda flow, _, __: flow.subscribe_on(schedulers.current()),
    "from_publisher": lambda flow, _, __: Flow.from_publisher(flow),
    "tap": lambda flow, run, step: Flow.from_publisher(Tapped(run, f"{step.label} tap", flow)),
    "checkpoint": lambda flow, _, step: flow.checkpoint(f"checkpoint {step.label}"),
    "strict": lambda flow, _, __: flow.strict(),
    "ignore_elements": lambda flow, _, __: flow.ignore_elements(),
    "on_error_complete": lambda flow, _, __: flow.on_error_complete(errors=BaseException),
    "on_error_return": lambda flow, _, step: flow.on_error_return(step.n, errors=BaseException),
    "delay": lambda flow, _, step: flow.delay(0.2 * step.n, max_size=step.n + 2),
    "delay_subscription": lambda flow, _, step: flow.delay_subscription(0.4 * step.n),
    "debounce": lambda flow, _, step: flow.debounce(0.2 + step.n / 4),
    "sample": lambda flow, _, step: flow.sample(0.2 + step.n / 4),
    "throttle_first": lambda flow, _, step: flow.throttle_first(0.2 + step.n / 4),
    "rate_limit": lambda flow, _, step: flow.rate_limit(step.n + 1, 0.6),
    "timeout": lambda flow, _, step: flow.timeout(0.35 + step.n / 2),
    "buffer_timeout": lambda flow, _, step: flow.buffer_timeout(step.n + 1, 0.45),
    "elapsed": lambda flow, _, __: flow.elapsed(),
    "on_backpressure_error": lambda flow, _, __: flow.on_backpressure_error(),
    # -- with a function
    "map": lambda flow, run, step: flow.map(run.fn(step, plus(step))),
    "filter": lambda flow, run, step: flow.filter(run.fn(step, odd)),
    "map_not_none": lambda flow, run, step: flow.map_not_none(
        run.fn(step, lambda item: number(item) + 1 if odd(item) else None)
    ),
    "handle": lambda flow, run, step: flow.handle(run.fn(step, handled(step))),
    "take_while": lambda flow, run, step: flow.take_while(run.fn(step, early(step))),
    "take_until": lambda flow, run, step: flow.take_until(run.fn(step, lambda item: number(item) > 7 + step.n)),
    "skip_while": lambda flow, run, step: flow.skip_while(run.fn(step, early(step))),
    "scan": lambda flow, run, step: flow.scan(run.fn(step, total), step.n),
    "fold from the first": lambda flow, run, step: flow.scan(run.fn(step, total)),
    "distinct": lambda flow, run, step: flow.distinct(run.fn(step, half)),
    "distinct_until_changed": lambda flow, run, step: flow.distinct_until_changed(run.fn(step, half)),
    "buffer_until_changed": lambda flow, run, step: flow.buffer_until_changed(run.fn(step, half)),
    "flat_map_iterable": lambda flow, run, step: flow.flat_map_iterable(some(run, step)),
    "map_async": lambda flow, run, step: flow.map_async(run.later(step, plus(step)), max_concurrency=step.n + 1),
    "map_async unordered": lambda flow, run, step: flow.map_async(
        run.later(step, plus(step)), max_concurrency=step.n + 1, order="completion"
    ),
    "map_async by key": lambda flow, run, step: flow.map_async(
        run.later(step, plus(step)), max_concurrency=step.n + 1, order=odd
    ),
    "filter_when": lambda flow, run, step: flow.filter_when(run.later(step, odd), max_concurrency=step.n + 1),
    "map_batches": lambda flow, run, step: flow.map_batches(run.fn(step, batch), size=step.n + 1),
    "sort_by": lambda flow, run, step: flow.sort_by(run.fn(step, number)),
    "do_on_next": lambda flow, run, step: flow.do_on_next(run.fn(step, nothing)),
    "do_on_error": lambda flow, run, step: flow.do_on_error(run.fn(step, nothing)),
    "do_on_complete": lambda flow, run, step: flow.do_on_complete(run.fn(step, nothing)),
    "do_on_cancel": lambda flow, run, step: flow.do_on_cancel(run.fn(step, nothing)),
    "do_on_request": lambda flow, run, step: flow.do_on_request(run.fn(step, nothing)),
    "do_on_subscribe": lambda flow, run, step: flow.do_on_subscribe(run.fn(step, nothing)),
    "do_finally": lambda flow, run, step: flow.do_finally(run.fn(step, nothing)),
    "discarding": lambda flow, run, step: discarding(flow, run.fn(step, nothing)),
    "on_error_map": lambda flow, run, step: flow.on_error_map(run.fn(step, mapped_error), errors=BaseException),
    "repeat_when": lambda flow, run, step: flow.repeat_when(run.later(step, lambda _, times: times < 1 + step.n % 2)),
    "group_by": grouped,
    "on_backpressure_drop": lambda flow, run, step: flow.on_backpressure_drop(run.fn(step, nothing)),
    "on_backpressure_latest": lambda flow, run, step: flow.on_backpressure_latest(run.fn(step, nothing)),
    "on_backpressure_buffer": lambda flow, run, step: flow.on_backpressure_buffer(
        step.n + 1, overflow=("drop_oldest", "drop_latest")[step.n % 2], on_drop=run.fn(step, nothing)
    ),
    # -- beginning again
    "retry": lambda flow, _, step: flow.retry(step.n),
    "retry_if": lambda flow, run, step: flow.retry_if(tries(run, step, 0)),
    "retry_when": lambda flow, run, step: flow.retry_when(run.later(step, lambda _, times: times < step.n)),
    "retry_backoff": lambda flow, _, step: flow.retry(
        Backoff(0.3, max_retries=step.n, random=Random(step.n)), errors=BaseException
    ),
    # -- reading other flows
    "flat_map": lambda flow, run, step: flow.flat_map(inner(run, step), max_concurrency=step.n + 1, prefetch=step.size),
    "concat_map": lambda flow, run, step: flow.concat_map(inner(run, step)),
    "concat_map_eager": lambda flow, run, step: flow.concat_map_eager(
        inner(run, step), max_concurrency=step.n + 1, prefetch=step.size
    ),
    "switch_map": lambda flow, run, step: flow.switch_map(inner(run, step)),
    "exhaust_map": lambda flow, run, step: flow.exhaust_map(inner(run, step)),
    "merge": lambda flow, run, step: flow.merge(other(run, step), prefetch=step.size),
    "merge delaying errors": lambda flow, run, step: flow.merge(
        other(run, step), other(run, step, 5), prefetch=step.size, delay_errors=True
    ),
    "zip": lambda flow, run, step: flow.zip(other(run, step), prefetch=step.size),
    "combine_latest": lambda flow, run, step: flow.combine_latest(other(run, step), prefetch=step.size),
    "concat": lambda flow, run, step: flow.concat(other(run, step)),
    "concat_eager": lambda flow, run, step: flow.concat_eager(other(run, step), prefetch=step.size),
    "race": lambda flow, run, step: flow.race(other(run, step)),
    "with_latest_from": lambda flow, run, step: flow.with_latest_from(other(run, step)),
    "take_until_other": lambda flow, run, step: flow.take_until_other(other(run, step)),
    "switch_if_empty": lambda flow, run, step: flow.switch_if_empty(other(run, step)),
    "on_error_resume_next": lambda flow, run, step: flow.on_error_resume_next(other(run, step), errors=BaseException),
    "on_error_resume_next by function": lambda flow, run, step: flow.on_error_resume_next(
        inner(run, step), errors=BaseException
    ),
    "timeout with fallback": lambda flow, run, step: flow.timeout(0.35 + step.n / 2, fallback=other(run, step)),
}
