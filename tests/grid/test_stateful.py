"""One running subscription over a random chain, driven from both ends step by step, against plain lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pytest
from attrs import frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio.spec import RULES
from reactive_aio.spec.predicates import violations
from reactive_aio.spec.recorder import Recorder as Trace
from reactive_aio.spec.trace import Facts
from reactive_aio.testing import AdversarialLoop, TestPublisher, settle
from tests.subscribers import Recorder

Numbers = list[int]

JUDGED = [rule for rule in RULES if rule not in {"1.4", "2.1", "2.4"}]
"""Left out: whether a failure arrives, which the model judges by the demand, and whether a subscriber requests at all.
Also left out: whether it requests before it notices an end that has just come."""


@frozen
class Stream:
    """The elements so far, and the end of the stream: "complete", "error", or not yet."""

    items: Numbers
    end: str = ""


@frozen
class Step:
    """One operator, on a flow and on what it makes of a stream so far."""

    name: str
    on_flow: Callable[[Flow[int]], Flow[int]]
    on_stream: Callable[[Stream], Stream]

    def __repr__(self) -> str:
        return self.name


def each(name: str, on_flow: Callable[[Flow[int]], Flow[int]], on_items: Callable[[Numbers], Numbers]) -> Step:
    """An operator that does not care for the end."""
    return Step(name, on_flow, lambda stream: Stream(on_items(stream.items), stream.end))


def taken(stream: Stream, k: int) -> Stream:
    return Stream(stream.items[:k], "complete") if len(stream.items) >= k else stream


def followed(stream: Stream, more: Numbers) -> Stream:
    return Stream(stream.items + more, stream.end) if stream.end == "complete" else stream


def resumed(stream: Stream, more: Numbers) -> Stream:
    return Stream(stream.items + more, "complete") if stream.end == "error" else stream


def in_whole_lists(stream: Stream, k: int) -> Stream:
    whole = len(stream.items) if stream.end == "complete" else len(stream.items) // k * k
    return Stream(stream.items[:whole], stream.end)


small = st.integers(0, 4)
sizes = st.integers(1, 4)
numbers = st.lists(small, max_size=3)
steps = st.one_of(
    small.map(lambda k: each(f"map(+{k})", lambda f: f.map(lambda n: n + k), lambda ns: [n + k for n in ns])),
    sizes.map(
        lambda k: each(
            f"filter(%{k})", lambda f: f.filter(lambda n: n % k == 0), lambda ns: [n for n in ns if n % k == 0]
        )
    ),
    small.map(lambda k: each(f"skip({k})", lambda f: f.skip(k), lambda ns: ns[k:])),
    small.map(lambda k: Step(f"take({k})", lambda f: f.take(k), lambda s: taken(s, k))),
    st.integers(0, 3).map(
        lambda k: each(
            f"flat_map_iterable(*{k})",
            lambda f: f.flat_map_iterable(lambda n: [n] * k),
            lambda ns: list(chain.from_iterable([n] * k for n in ns)),
        )
    ),
    numbers.map(
        lambda more: Step(f"concat({more})", lambda f: f.concat(Flow.from_iterable(more)), lambda s: followed(s, more))
    ),
    numbers.map(
        lambda more: Step(
            f"resume({more})", lambda f: f.on_error_resume_next(Flow.from_iterable(more)), lambda s: resumed(s, more)
        )
    ),
    sizes.map(
        lambda k: Step(f"buffer({k})", lambda f: f.buffer(k).flat_map_iterable(list), lambda s: in_whole_lists(s, k))
    ),
    sizes.map(lambda k: each(f"publish_on({k})", lambda f: f.publish_on(schedulers.current(), prefetch=k), list)),
    st.just(each("apart", Flow.from_publisher, list)),
)


class Subscription(RuleBasedStateMachine):
    """The two ends of a chain: what may happen at each, and what has to follow."""

    def __init__(self) -> None:
        super().__init__()
        self.source: TestPublisher[int] = TestPublisher()
        self.trace = Trace()
        self.subscriber = Recorder()
        self.sent = Stream([])
        self.row: list[Step] = []
        self.requested = 0
        self.cancelled = False
        self.loop: asyncio.AbstractEventLoop | None = None

    @initialize(row=st.lists(steps, max_size=5), seed=st.none() | st.integers(0, 1000))
    def subscribe(self, row: list[Step], seed: int | None) -> None:
        self.loop = asyncio.new_event_loop() if seed is None else AdversarialLoop(seed)
        self.row = row
        flow: Flow[int] = Flow.from_publisher(self.trace.publisher(self.source))
        for step in row:
            flow = step.on_flow(flow)
        with self.on_the_loop(), hooks.using(on_error_dropped=lambda error: None):
            flow.subscribe(self.trace.subscriber(self.subscriber))
        self.rest()

    @contextmanager
    def on_the_loop(self) -> Generator[None]:
        """Act as a callback would, without a turn for anybody else."""
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    # -- downstream

    @property
    def over(self) -> bool:
        return self.subscriber.kinds[-1:] in (["complete"], ["error"])

    @property
    def listening(self) -> bool:
        return not self.over and not self.cancelled

    @precondition(lambda self: self.listening)
    @rule(n=st.integers(1, 4) | st.just(UNBOUNDED))
    def request(self, n: int) -> None:
        self.requested += n
        with self.on_the_loop():
            self.subscriber.request(n)

    @precondition(lambda self: self.listening and self.requested > 2)
    @rule()
    def cancel(self) -> None:
        self.cancelled = True
        with self.on_the_loop():
            self.subscriber.cancel()

    # -- upstream

    @property
    def link(self) -> Any:
        links = self.source._links
        return links[0] if links else None

    @property
    def open(self) -> bool:
        return self.link is not None and self.link.open

    @precondition(lambda self: self.open and self.link.demand)
    @rule(items=st.lists(small, min_size=1, max_size=3))
    def emit(self, items: Numbers) -> None:
        for item in items[: self.link.demand]:
            if self.open:
                self.sent = Stream([*self.sent.items, item])
                with self.on_the_loop():
                    self.source.next(item)

    @precondition(lambda self: self.open)
    @rule(end=st.sampled_from(["complete", "error"]))
    def end(self, end: str) -> None:
        self.sent = Stream(self.sent.items, end)
        with self.on_the_loop():
            if end == "complete":
                self.source.complete()
            else:
                self.source.error(OSError("down"))

    # -- the loop

    @rule()
    def turn(self) -> None:
        assert self.loop is not None
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    @rule()
    def rest(self) -> None:
        assert self.loop is not None
        self.loop.run_until_complete(settle())
        expected = self.expected
        if self.cancelled:
            assert not self.open, "the source is left uncancelled"
            return
        assert self.subscriber.items == expected.items[: self.requested]
        if len(expected.items) < self.requested:
            assert self.over == (expected.end != ""), "the end does not come"
            assert self.over or self.link.demand, "the demand is lost"
        elif self.over:
            assert expected.end

    # -- what holds at any time

    @property
    def expected(self) -> Stream:
        stream = self.sent
        for step in self.row:
            stream = step.on_stream(stream)
        return stream

    @invariant()
    def elements_come_in_order_and_no_more_than_requested(self) -> None:
        items = self.subscriber.items
        assert items == self.expected.items[: len(items)]
        assert len(items) <= self.requested

    @invariant()
    def the_end_comes_behind_the_elements(self) -> None:
        if self.over:
            assert self.subscriber.items == self.expected.items
            assert self.subscriber.kinds[-1] == self.expected.end

    def teardown(self) -> None:
        if self.loop is None:
            return
        self.rest()
        self.trace.rest()
        self.loop.close()
        # A failure is correct at either end, if the source fails or if the failure is passed on.
        facts = Facts(at_rest=True, fails="error" in (self.sent.end, self.expected.end))
        assert violations(self.trace.trace(facts), JUDGED) == []


@pytest.mark.usefixtures(
    "still"
)  # else a turn on a busy machine may end early, and a repeated example goes another way
def test_subscription() -> None:
    run_state_machine_as_test(Subscription, settings=settings(max_examples=150, stateful_step_count=30, deadline=None))
