"""The operators as steps of random chains: each with what it does to a flow and what the same is to a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from itertools import accumulate, dropwhile, groupby, pairwise, takewhile
from operator import add
from typing import Any

from attrs import define, frozen
from hypothesis import strategies as st

from reactive_aio import Backoff, Emitter, Flow, SynchronousSink, schedulers
from reactive_aio.operators.folding.collect import Collect
from reactive_aio.operators.transforming.map import Map

Numbers = list[int]


@frozen
class Step:
    """One operator, on a flow and on a list."""

    name: str
    on_flow: Callable[[Flow[int]], Flow[int]]
    on_list: Callable[[Numbers], Numbers]

    def __repr__(self) -> str:
        return self.name


def failing_once(numbers: Numbers) -> Flow[int]:
    """A flow that fails at its first subscription only, before its first element."""
    attempts: list[int] = []

    def attempt() -> Flow[int]:
        attempts.append(1)
        return Flow.error(OSError("first")) if len(attempts) == 1 else Flow.from_iterable(numbers)

    return Flow.defer(attempt)


async def later(n: int) -> int:
    """Return a number, some of them a turn later."""
    if n % 3:
        await asyncio.sleep(0)
    return n


async def is_odd(n: int) -> bool:
    """Return whether a number is odd, some of them a turn later."""
    return bool(await later(n) % 2)


async def once_more(failure: BaseException, attempt: int) -> bool:
    """Agree to the first repetition."""
    return attempt < 2


async def twice(emitted: int, runs: int) -> bool:
    """Agree to the first repetition."""
    return runs < 2


@frozen
class Read:
    """An async iterable that can be read any number of times; it suspends now and then."""

    numbers: Numbers

    async def __aiter__(self) -> AsyncIterator[int]:
        for n in self.numbers:
            yield await later(n)


def created(numbers: Numbers) -> Flow[int]:
    """A flow of a producer."""

    async def produce(emit: Any) -> None:
        for n in numbers:
            await emit(await later(n))

    return Flow.create(produce)


def called_back(numbers: Numbers) -> Flow[int]:
    """A flow of callbacks that come at once."""

    def register(emitter: Emitter[int]) -> None:
        for n in numbers:
            emitter.next(n)
        emitter.complete()

    return Flow.from_callback(register, max_size=max(1, len(numbers)))


@define(eq=False)
class Client:
    """A client that gives what is asked for, suspends now and then, and has nothing yet now and then."""

    numbers: Numbers
    at: int = 0
    asked: int = 0

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left to be done."""

    async def fetch(self, n: int) -> Numbers:
        """Return the next of the numbers."""
        self.asked += 1
        if await later(self.asked) % 3 == 0:
            return self.numbers[:0]
        if self.at >= len(self.numbers):
            raise StopAsyncIteration
        start, self.at = self.at, self.at + n
        return self.numbers[start : self.at]

    async def idle(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""


def iterated(flow: Flow[int]) -> Flow[int]:
    """A flow of an async generator that reads another one."""

    async def read() -> AsyncIterator[int]:
        async for n in flow:
            yield n

    return Flow.from_async_iterable(read)


def by_the_clock(numbers: Numbers) -> Flow[int]:
    """A flow of ticks, as many as there are numbers."""
    ticks = Flow.interval(1e-9).take(len(numbers)).on_backpressure_buffer(max(1, len(numbers)))
    return ticks.map(numbers.__getitem__)


SOURCES: dict[str, Callable[[Numbers], Flow[int]]] = {
    "from_iterable": Flow.from_iterable,
    "of": lambda ns: Flow.of(*ns),
    "range": lambda ns: Flow.range(len(ns)).map(ns.__getitem__),
    "never": lambda ns: Flow.from_iterable(ns).concat(Flow.never()).take(len(ns)),
    "defer": lambda ns: Flow.defer(lambda: Flow.from_iterable(ns)),
    "from_async_iterable": lambda ns: Flow.from_async_iterable(Read(ns)),
    "create": created,
    "from_callback": called_back,
    "from_poll": lambda ns: Flow.from_poll(lambda: Client(ns), max_batch=3),
    "interval": by_the_clock,
    "timer": lambda ns: Flow.timer(1e-9).flat_map_iterable(lambda _: ns),
    "from_awaitable": lambda ns: Flow.from_awaitable(lambda: later(1)).flat_map_iterable(lambda _: ns),
    "from_callable": lambda ns: Flow.from_callable(lambda: ns).flat_map_iterable(list),
    "generate": lambda ns: Flow.generate(lambda at: (ns[at], at + 1) if at < len(ns) else None, 0),
    "using": lambda ns: Flow.using(lambda: nullcontext(ns), Flow.from_iterable),
    "from_publisher": lambda ns: Flow.from_publisher(Flow.from_iterable(ns)),
}


def odd_below(limit: int) -> Callable[[int, SynchronousSink[int]], None]:
    """A function for handle: odd numbers only, and the end behind the first that is not below a limit."""

    def handle(n: int, sink: SynchronousSink[int]) -> None:
        if n % 2:
            sink.next(n)
        if n >= limit:
            sink.complete()

    return handle


def until(numbers: Numbers, limit: int) -> Numbers:
    """The numbers up to and with the first that is not below a limit."""
    return numbers[: next((at for at, n in enumerate(numbers, 1) if n >= limit), len(numbers))]


def seen(flow: Flow[int]) -> Flow[int]:
    """A flow looked at in every way that changes nothing."""
    flow = flow.do_on_next(abs).do_on_subscribe(list[int]).do_on_request(abs).do_on_cancel(list[int])
    flow = flow.do_on_error(str).do_on_complete(list[int]).do_finally(list[int]).checkpoint("here").log(level=1)
    return flow.do_on_discard(abs)


def in_time(flow: Flow[int]) -> Flow[int]:
    """A flow kept to times that are none."""
    flow = flow.timeout(1e6).retry(Backoff(1.0, max_retries=1)).rate_limit(1_000_000, 1e-6).delay(1e-9, max_size=2)
    return flow.delay_subscription(1e-9).elapsed().map(lambda pair: pair[1]).timestamp().map(lambda pair: pair[1])


def kept(flow: Flow[int]) -> Flow[int]:
    """A flow that can't be slowed, in front of enough room."""
    flow = flow.on_backpressure_error().on_backpressure_buffer(100_000)
    flow = flow.on_backpressure_drop().on_backpressure_buffer(100_000)
    return flow.on_backpressure_latest().on_backpressure_buffer(100_000)


def failing_at_last(flow: Flow[int], error: BaseException) -> Flow[int]:
    """A flow that fails where it would complete."""
    return flow.concat(Flow.error(error))


def plain(k: int) -> list[Step]:
    """The operators that chains are mostly made of, with a number in each."""
    return [
        Step(f"map(+{k})", lambda f: f.map(lambda n: n + k), lambda ns: [n + k for n in ns]),
        Step(
            f"filter(%{k + 1})",
            lambda f: f.filter(lambda n: n % (k + 1) == 0),
            lambda ns: [n for n in ns if n % (k + 1) == 0],
        ),
        Step(f"take({k})", lambda f: f.take(k), lambda ns: ns[:k]),
        Step(f"skip({k})", lambda f: f.skip(k), lambda ns: ns[k:]),
        Step(f"buffer({k + 1}) flat", lambda f: f.buffer(k + 1).flat_map_iterable(list), lambda ns: ns),
        Step(f"publish_on({k + 1})", lambda f: f.publish_on(schedulers.current(), prefetch=k + 1), lambda ns: ns),
        Step("apart", Flow.from_publisher, lambda ns: ns),
    ]


def anew(k: int) -> list[Step]:
    """The operators that begin another flow behind the first, and those that may make many of few, with a number in each."""
    more = [n * 2 % 5 for n in range(k)]
    again: dict[str, Callable[[Flow[int]], Flow[int]]] = {
        "retry": lambda f: f.retry(1),
        "retry_if": lambda f: f.retry_if(lambda error, _: isinstance(error, OSError)),
        "retry_when": lambda f: f.retry_when(once_more),
    }
    return [
        Step(f"repeat({k})", lambda f: f.repeat(k), lambda ns: ns * k),
        Step("repeat_when", lambda f: f.repeat_when(twice), lambda ns: ns * 2),
        Step(
            f"flat_map_iterable(*{k})",
            lambda f: f.flat_map_iterable(lambda n: [n] * k),
            lambda ns: [n for n in ns for _ in range(k)],
        ),
        Step(f"concat({more})", lambda f: f.concat(Flow.from_iterable(more)), lambda ns: ns + more),
        *(
            Step(
                f"concat({more}).{name}", lambda f, once=each: f.concat(once(failing_once(more))), lambda ns: ns + more
            )
            for name, each in again.items()
        ),
        Step(
            "on_error_resume_next",
            lambda f: failing_at_last(f, OSError()).on_error_resume_next(Flow.of(7)),
            lambda ns: [*ns, 7],
        ),
    ]


def stages(k: int) -> list[Step]:
    """The operators that begin nothing anew, with a number in each."""
    return [
        Step(f"take_last({k})", lambda f: f.take_last(k), lambda ns: ns[-k:] if k else []),
        Step(f"skip_last({k})", lambda f: f.skip_last(k), lambda ns: ns[:-k] if k else ns),
        Step(
            f"take_while(<{k})", lambda f: f.take_while(lambda n: n < k), lambda ns: [*takewhile(lambda n: n < k, ns)]
        ),
        Step(f"take_until(>={k})", lambda f: f.take_until(lambda n: n >= k), lambda ns: until(ns, k)),
        Step(
            f"skip_while(<{k})", lambda f: f.skip_while(lambda n: n < k), lambda ns: [*dropwhile(lambda n: n < k, ns)]
        ),
        Step(f"[{k}::2]", lambda f: f[k::2], lambda ns: ns[k::2]),
        Step(f"[1:{k}:3]", lambda f: f[1:k:3], lambda ns: ns[1:k:3]),
        Step("distinct", lambda f: f.distinct(), lambda ns: [*dict.fromkeys(ns)]),
        Step("changed", lambda f: f.distinct_until_changed(), lambda ns: [n for n, _ in groupby(ns)]),
        Step("odd", lambda f: f.map_not_none(lambda n: n if n % 2 else None), lambda ns: [n for n in ns if n % 2]),
        Step("scan(max)", lambda f: f.scan(max), lambda ns: [*accumulate(ns, max)]),
        Step(f"scan(add, {k})", lambda f: f.scan(add, k), lambda ns: [*accumulate(ns, add, initial=k)]),
        Step("index", lambda f: f.index(k).map(sum), lambda ns: [n + at for at, n in enumerate(ns, k)]),
        Step(f"repartition({k + 1})", lambda f: f.repartition(k + 1), lambda ns: ns),
        Step("pairwise", lambda f: f.pairwise().map(sum), lambda ns: [a + b for a, b in pairwise(ns)]),
        Step(f"handle({k})", lambda f: f.handle(odd_below(k)), lambda ns: [n for n in until(ns, k) if n % 2]),
        Step("signals", lambda f: f.materialize().dematerialize(), lambda ns: ns),
        Step(
            f"sliding({k + 1}, 2)",
            lambda f: f.sliding(k + 1, step=2).map(sum),
            lambda ns: [sum(ns[at : at + k + 1]) for at in range(0, len(ns) - k, 2)],
        ),
        Step(
            f"group_by_key(% {k + 1}).scan",
            lambda f: f.group_by_key(lambda n: n % (k + 1)).scan(add).pairs().map(lambda pair: pair[1]),
            lambda ns: [sum(m for m in ns[: at + 1] if m % (k + 1) == n % (k + 1)) for at, n in enumerate(ns)],
        ),
        Step(
            f"group_by_key(% {k + 1}, order_by)",
            lambda f: f.group_by_key(lambda n: n % (k + 1), order_by=abs).pairs().map(lambda pair: pair[1]),
            lambda ns: [
                m
                for key in dict.fromkeys(n % (k + 1) for n in ns)
                for m in sorted((n for n in ns if n % (k + 1) == key), key=abs)
            ],
        ),
        Step(
            f"group_by_key(% {k + 1}).join",
            lambda f: (
                f.group_by_key(lambda n: n % (k + 1))
                .join(Flow.range(k + 2).group_by_key(lambda n: n % (k + 1)))
                .map(lambda pair: pair[1][0] * 10 + pair[1][1])
            ),
            lambda ns: [n * 10 + m for n in ns for m in range(k + 2) if m % (k + 1) == n % (k + 1)],
        ),
        Step(
            f"group_by_key(% {k + 1}).join(within)",
            lambda f: (
                f.take_last(1)
                .group_by_key(lambda n: n % (k + 1))
                .join(Flow.of(k).group_by_key(lambda n: n), how="left", within=1e6)
                .map(lambda pair: pair[1][0] * 10 + (pair[1][1] or 0))
            ),
            lambda ns: [n * 10 + (k if n % (k + 1) == k else 0) for n in ns[-1:]],
        ),
        Step("runs", lambda f: f.buffer_until_changed().map(len), lambda ns: [len([*run]) for _, run in groupby(ns)]),
        Step(f"start_with({k})", lambda f: f.start_with(k, k), lambda ns: [k, k, *ns]),
        Step(f"default_if_empty({k})", lambda f: f.default_if_empty(k), lambda ns: ns or [k]),
        Step(f"switch_if_empty({k})", lambda f: f.switch_if_empty(Flow.range(k)), lambda ns: ns or [*range(k)]),
        Step(
            f"map_batches({k + 1})",
            lambda f: f.map_batches(lambda batch: [n + k for n in batch if n % 2], size=k + 1),
            lambda ns: [n + k for n in ns if n % 2],
        ),
        Step("sort_by", lambda f: f.sort_by(lambda n: -n), lambda ns: sorted(ns, key=lambda n: -n)),
        Step(f"sample_fraction({k % 2})", lambda f: f.sample_fraction(k % 2), lambda ns: ns * (k % 2)),
        Step("of_type", lambda f: f.of_type(int), lambda ns: ns),
        Step("collect", lambda f: f.then(Collect(list[int], list[int].append)).flat_map_iterable(list), lambda ns: ns),
        Step("map_async", lambda f: f.map_async(later, max_concurrency=k + 1), lambda ns: ns),
        Step(
            "filter_when", lambda f: f.filter_when(is_odd, max_concurrency=k + 1), lambda ns: [n for n in ns if n % 2]
        ),
        Step("then", lambda f: f.then(Map(abs)), lambda ns: ns),
        Step("strict", lambda f: f.strict(), lambda ns: ns),
        Step("subscribe_on", lambda f: f.subscribe_on(schedulers.current()), lambda ns: ns),
        Step("kept", kept, lambda ns: ns),
        Step(
            "on_error_map",
            lambda f: (
                failing_at_last(f, OSError()).on_error_map(lambda _: KeyError()).on_error_complete(errors=KeyError)
            ),
            lambda ns: ns,
        ),
        Step("ignore_elements", lambda f: f.ignore_elements(), lambda _: []),
        Step(f"on_error_return({k})", lambda f: failing_at_last(f, OSError()).on_error_return(k), lambda ns: [*ns, k]),
        Step("on_error_complete", lambda f: failing_at_last(f, OSError()).on_error_complete(), lambda ns: ns),
        Step("seen", seen, lambda ns: ns),
        Step("in time", in_time, lambda ns: ns),
        Step(
            f"buffer_timeout({k + 1}) flat",
            lambda f: f.buffer_timeout(k + 1, 1e6).flat_map_iterable(list),
            lambda ns: ns,
        ),
    ]


def several(k: int) -> list[Step]:
    """The operators that read several flows, where the order of what comes is certain, with a number in each."""
    return [
        Step(f"merge(empty, {k + 1})", lambda f: Flow.empty().merge(f, prefetch=k + 1), lambda ns: ns),
        Step(
            f"zip({k})", lambda f: f.zip(Flow.range(k), prefetch=k + 1).map(sum), lambda ns: [*map(add, ns, range(k))]
        ),
        Step(
            f"with_latest_from({k})", lambda f: f.with_latest_from(Flow.of(k)).map(sum), lambda ns: [n + k for n in ns]
        ),
        Step(
            f"combine_latest({k})",
            lambda f: f.take_last(1).combine_latest(Flow.of(k)).map(sum),
            lambda ns: [n + k for n in ns[-1:]],
        ),
        Step("race", lambda f: f.race(Flow.never()), lambda ns: ns),
        Step("iterated", iterated, lambda ns: ns),
        Step(f"share({k + 1})", lambda f: f.share(lag=k + 1), lambda ns: ns),
        Step(f"share({k + 1}) iterated", lambda f: iterated(f.share(lag=k + 1)), lambda ns: ns),
        Step(
            f"multicast({k + 1})",
            lambda f: f.multicast(lambda each: each.zip(each), lag=k + 1).map(sum),
            lambda ns: [2 * n for n in ns],
        ),
        Step("take_until_other", lambda f: f.take_until_other(Flow.never()), lambda ns: ns),
        Step(f"window({k + 1}) flat", lambda f: f.window(k + 1).concat_map(lambda part: part), lambda ns: ns),
        Step("group_by flat", lambda f: f.group_by(lambda _: "all").concat_map(lambda part: part), lambda ns: ns),
        Step(
            f"switch_map(*{k})",
            lambda f: f.take(1).switch_map(lambda n: Flow.of(*[n] * k)),
            lambda ns: ns[:1] * k,
        ),
        Step(
            f"exhaust_map(*{k})",
            lambda f: f.take(1).exhaust_map(lambda n: Flow.of(*[n] * k)),
            lambda ns: ns[:1] * k,
        ),
        Step(f"concat_eager({k})", lambda f: f.concat_eager(Flow.range(k), prefetch=2), lambda ns: [*ns, *range(k)]),
        Step(
            f"flat_map(one, {k + 1})", lambda f: f.flat_map(Flow.of, max_concurrency=1, prefetch=k + 1), lambda ns: ns
        ),
        Step(
            f"concat_map(*{k})",
            lambda f: f.concat_map(lambda n: Flow.of(*[n] * k)),
            lambda ns: [n for n in ns for _ in range(k)],
        ),
        Step(
            f"concat_map_eager(*{k})",
            lambda f: f.concat_map_eager(lambda n: Flow.of(*[n] * k), max_concurrency=2, prefetch=k + 1),
            lambda ns: [n for n in ns for _ in range(k)],
        ),
    ]


small = st.integers(0, 5)
steps = st.one_of(
    st.integers(0, 3).flatmap(lambda k: st.sampled_from(anew(k))),
    st.integers(0, 3).flatmap(lambda k: st.sampled_from(several(k))),
    small.flatmap(lambda k: st.sampled_from(plain(k))),
    small.flatmap(lambda k: st.sampled_from(stages(k))),
)
