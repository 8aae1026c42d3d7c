"""Random chains give what plain lists give: fused, apart, over boundaries, under any pattern of demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Any

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, schedulers
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


small = st.integers(0, 5)
steps = st.one_of(
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
