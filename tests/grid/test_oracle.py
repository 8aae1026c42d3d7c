"""Random chains give what plain lists give: fused, apart, over boundaries, under any pattern of demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate, chain, dropwhile, groupby, pairwise, takewhile
from operator import add
from typing import Any

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, SynchronousSink, schedulers
from tests.subscribers import Recorder, idle

Numbers = list[int]


@frozen
class Step:
    """One operator, on a flow and on a list."""

    name: str
    on_flow: Callable[[Flow[int]], Flow[int]]
    on_list: Callable[[Numbers], Numbers]

    def __repr__(self) -> str:
        return self.name


def fail_once(numbers: Numbers) -> Flow[int]:
    """A flow that fails at its first subscription only, before its first element."""
    attempts: list[int] = []

    def attempt() -> Flow[int]:
        attempts.append(1)
        return Flow.error(OSError("first")) if len(attempts) == 1 else Flow.from_iterable(numbers)

    return Flow.defer(attempt).retry(1)


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
    return flow.do_on_error(str).do_on_complete(list[int]).do_finally(list[int]).checkpoint("here").log(level=1)


def in_time(flow: Flow[int]) -> Flow[int]:
    """A flow kept to times that are none."""
    flow = flow.timeout(1e6).retry_backoff(1, 1.0).rate_limit(1_000_000, 1e-6).delay(1e-9, size=2)
    return flow.delay_subscription(1e-9).elapsed().map(lambda pair: pair[1])


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
        Step("pairwise", lambda f: f.pairwise().map(sum), lambda ns: [a + b for a, b in pairwise(ns)]),
        Step(f"handle({k})", lambda f: f.handle(odd_below(k)), lambda ns: [n for n in until(ns, k) if n % 2]),
        Step("signals", lambda f: f.materialize().dematerialize(), lambda ns: ns),
        Step(
            f"sliding({k + 1}, 2)",
            lambda f: f.sliding(k + 1, 2).map(sum),
            lambda ns: [sum(ns[at : at + k + 1]) for at in range(0, len(ns) - k, 2)],
        ),
        Step("runs", lambda f: f.buffer_until_changed().map(len), lambda ns: [len([*run]) for _, run in groupby(ns)]),
        Step(f"start_with({k})", lambda f: f.start_with(k, k), lambda ns: [k, k, *ns]),
        Step(f"default_if_empty({k})", lambda f: f.default_if_empty(k), lambda ns: ns or [k]),
        Step(f"switch_if_empty({k})", lambda f: f.switch_if_empty(Flow.range(k)), lambda ns: ns or [*range(k)]),
        Step("ignore_elements", lambda f: f.ignore_elements(), lambda _: []),
        Step(
            f"on_error_return({k})", lambda f: f.concat(Flow.error(OSError())).on_error_return(k), lambda ns: [*ns, k]
        ),
        Step("on_error_complete", lambda f: f.concat(Flow.error(OSError())).on_error_complete(), lambda ns: ns),
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
        Step(f"concat_eager({k})", lambda f: f.concat_eager(Flow.range(k), prefetch=2), lambda ns: [*ns, *range(k)]),
        Step(f"flat_map(one, {k + 1})", lambda f: f.flat_map(Flow.of, concurrency=1, prefetch=k + 1), lambda ns: ns),
        Step(
            f"concat_map(*{k})",
            lambda f: f.concat_map(lambda n: Flow.of(*[n] * k)),
            lambda ns: [n for n in ns for _ in range(k)],
        ),
        Step(
            f"concat_map_eager(*{k})",
            lambda f: f.concat_map_eager(lambda n: Flow.of(*[n] * k), concurrency=2, prefetch=k + 1),
            lambda ns: [n for n in ns for _ in range(k)],
        ),
    ]


small = st.integers(0, 5)
steps = st.one_of(
    st.integers(0, 3).flatmap(lambda k: st.sampled_from(several(k))),
    small.map(lambda k: Step(f"map(+{k})", lambda f: f.map(lambda n: n + k), lambda ns: [n + k for n in ns])),
    st.integers(1, 4).map(
        lambda k: Step(
            f"filter(%{k})", lambda f: f.filter(lambda n: n % k == 0), lambda ns: [n for n in ns if n % k == 0]
        )
    ),
    small.map(lambda k: Step(f"take({k})", lambda f: f.take(k), lambda ns: ns[:k])),
    small.map(lambda k: Step(f"skip({k})", lambda f: f.skip(k), lambda ns: ns[k:])),
    st.integers(0, 3).map(lambda k: Step(f"repeat({k})", lambda f: f.repeat(k), lambda ns: ns * k)),
    st.integers(0, 3).map(
        lambda k: Step(
            f"flat_map_iterable(*{k})",
            lambda f: f.flat_map_iterable(lambda n: [n] * k),
            lambda ns: list(chain.from_iterable([n] * k for n in ns)),
        )
    ),
    st.lists(small, max_size=3).map(
        lambda more: Step(f"concat({more})", lambda f: f.concat(Flow.from_iterable(more)), lambda ns: ns + more)
    ),
    st.lists(small, max_size=3).map(
        lambda more: Step(f"concat(retried {more})", lambda f: f.concat(fail_once(more)), lambda ns: ns + more)
    ),
    st.just(
        Step(
            "on_error_resume_next",
            lambda f: f.concat(Flow.error(OSError())).on_error_resume_next(Flow.of(7)),
            lambda ns: [*ns, 7],
        )
    ),
    st.integers(1, 5).map(
        lambda k: Step(f"buffer({k}) flat", lambda f: f.buffer(k).flat_map_iterable(list), lambda ns: ns)
    ),
    st.integers(1, 5).map(
        lambda k: Step(f"publish_on({k})", lambda f: f.publish_on(schedulers.current(), k), lambda ns: ns)
    ),
    st.just(Step("apart", Flow.from_publisher, lambda ns: ns)),
    small.flatmap(lambda k: st.sampled_from(stages(k))),
    small.flatmap(lambda k: st.sampled_from(stages(k))),
)
chains = st.tuples(st.lists(small, max_size=12), st.lists(steps, max_size=6))


def built(numbers: Numbers, row: list[Step]) -> tuple[Flow[int], Numbers]:
    flow: Flow[int] = Flow.from_iterable(numbers)
    for step in row:
        flow, numbers = step.on_flow(flow), step.on_list(numbers)
    return flow, numbers


@settings(max_examples=300, deadline=None)
@given(chains)
def test_a_chain_gives_what_lists_give(chain_of: tuple[Numbers, list[Step]]) -> None:
    flow, expected = built(*chain_of)

    async def ends() -> tuple[Any, ...]:
        iterated = [n async for n in flow]
        return await flow.to_list(), iterated, await flow.count(), await flow.first(default=None)

    # A retried part has used up its failure when the first end has run; what it gives stays the same.
    listed, iterated, count, first = asyncio.run(ends())

    assert listed == expected
    assert iterated == expected
    assert count == len(expected)
    assert first == (expected[0] if expected else None)


@settings(max_examples=200, deadline=None)
@given(chains, st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_demand_is_never_exceeded_and_nothing_is_lost(
    chain_of: tuple[Numbers, list[Step]], requests: list[int]
) -> None:
    flow, expected = built(*chain_of)

    async def main() -> None:
        recorder = Recorder()
        flow.subscribe(recorder)
        asked = 0
        for n in requests:
            recorder.request(n)
            asked += n
            await idle(200)
            assert recorder.items == expected[:asked]
        recorder.request(1_000_000)
        await asyncio.wait_for(recorder.over.wait(), 10)
        assert recorder.items == expected
        assert recorder.kinds[-1] == "complete"

    asyncio.run(main())
