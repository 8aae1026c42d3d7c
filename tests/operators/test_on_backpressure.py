"""on_backpressure_*: elements without demand are kept, dropped, or fail the flow."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import UNBOUNDED, BackpressureOverflowError, Flow, OverflowSnapshot, hooks, schedulers
from reactive_aio.operators.overflow.backlog import Backlog
from reactive_aio.operators.overflow.intake import Intake
from reactive_aio.testing import TestPublisher, probe, run_virtual
from tests.registry import AnyFlow
from tests.subscribers import ByHand, Recorder, idle

KEEPING = {
    "buffer": lambda flow: flow.on_backpressure_buffer(3),
    "latest": lambda flow: flow.on_backpressure_latest(),
}
KEEPING_NONE = {
    "drop": lambda flow: flow.on_backpressure_drop(),
    "error": lambda flow: flow.on_backpressure_error(),
}
ALL = KEEPING | KEEPING_NONE
all_of_them = pytest.mark.parametrize("relieved", ALL.values(), ids=ALL.keys())


@define
class Case:
    """A publisher driven by hand, an operator behind it, and a subscriber that requests when the test says so."""

    relieved: Any
    source: ByHand = field(init=False, factory=ByHand)
    recorder: Recorder = field(init=False, factory=Recorder)
    discarded: list[Any] = field(init=False, factory=list)

    async def subscribe(self) -> None:
        with hooks.using(on_discard=self.discarded.append):
            self.relieved(Flow.from_publisher(self.source)).subscribe(self.recorder)
        await idle()

    async def request(self, n: int) -> None:
        self.recorder.request(n)
        await idle()

    async def next(self, *items: Any) -> None:
        self.source.next(*items)
        await idle()


async def case(relieved: Any) -> Case:
    made = Case(relieved)
    await made.subscribe()
    return made


# -- what is asked of upstream


@pytest.mark.parametrize("relieved", KEEPING.values(), ids=KEEPING.keys())
async def test_where_elements_can_wait_upstream_is_asked_for_everything_at_once(relieved: Any) -> None:
    c = await case(relieved)

    assert [UNBOUNDED] == c.source.requests

    await c.request(1)
    await c.request(1)
    assert [UNBOUNDED] == c.source.requests


@pytest.mark.parametrize("relieved", KEEPING_NONE.values(), ids=KEEPING_NONE.keys())
async def test_where_none_can_wait_upstream_is_asked_for_everything_with_the_first_demand(relieved: Any) -> None:
    c = await case(relieved)
    assert [] == c.source.requests

    await c.request(1)
    await c.request(1)
    assert [UNBOUNDED] == c.source.requests


@all_of_them
async def test_a_flow_that_is_wanted_from_the_start_loses_nothing(relieved: Any) -> None:
    assert list(range(5000)) == await relieved(Flow.range(5000)).to_list()


@all_of_them
async def test_an_empty_flow_completes_without_demand(relieved: Any) -> None:
    recorder = Recorder()
    relieved(Flow.empty()).subscribe(recorder)
    await idle()

    assert ["subscribe", "complete"] == recorder.kinds


# -- buffer


async def test_buffer_keeps_elements_until_they_are_wanted() -> None:
    c = await case(lambda flow: flow.on_backpressure_buffer(3))

    await c.next("a", "b", "c")
    assert [] == c.recorder.items

    await c.request(2)
    assert ["a", "b"] == c.recorder.items
    await c.next("d")
    await c.request(5)
    assert ["a", "b", "c", "d"] == c.recorder.items

    await c.next("e")
    assert ["a", "b", "c", "d", "e"] == c.recorder.items
    assert [] == c.discarded


async def test_buffer_fails_behind_what_waits_when_one_more_comes() -> None:
    c = await case(lambda flow: flow.on_backpressure_buffer(2))

    await c.next("a", "b", "c", "d")
    assert (1, ["c", "d"]) == (c.source.cancels, c.discarded)
    assert ["subscribe"] == c.recorder.kinds

    await c.request(1)
    assert ["a"] == c.recorder.items
    await c.request(1)
    assert ["a", "b"] == c.recorder.items
    assert isinstance(c.recorder.error, BackpressureOverflowError)


async def test_an_overflow_says_where_and_what_to_do() -> None:
    c = await case(lambda flow: flow.on_backpressure_buffer(2).map(str))
    await c.next(1, 2, 3)
    await c.request(9)

    text = str(c.recorder.error)
    assert "came when 2 were waiting" in text
    assert "Raise max_size" in text
    assert "on_backpressure_buffer(2, 'error'), chained at" in text
    assert "test_on_backpressure.py" in text


async def test_buffer_drops_the_latest() -> None:
    c = await case(lambda flow: flow.on_backpressure_buffer(2, overflow="drop_latest"))

    await c.next(1, 2, 3)
    await c.next(4)
    assert [3, 4] == c.discarded

    await c.request(9)
    assert [1, 2] == c.recorder.items


async def test_buffer_drops_the_oldest() -> None:
    c = await case(lambda flow: flow.on_backpressure_buffer(2, overflow="drop_oldest"))

    await c.next(1, 2, 3)
    await c.next(4)
    assert [1, 2] == c.discarded

    await c.request(9)
    assert [3, 4] == c.recorder.items


# -- drop, latest, error


async def test_drop_gives_what_is_wanted_and_drops_the_rest() -> None:
    told: list[Any] = []
    c = await case(lambda flow: flow.on_backpressure_drop(told.append))

    await c.request(2)
    await c.next(1, 2, 3)
    await c.request(1)
    await c.next(4, 5)

    assert [1, 2, 4] == c.recorder.items
    assert [3, 5] == c.discarded == told


async def test_latest_keeps_the_latest() -> None:
    c = await case(lambda flow: flow.on_backpressure_latest())

    await c.next(1, 2, 3)
    await c.request(1)
    assert [3] == c.recorder.items
    await c.next(4, 5)
    await c.request(2)
    await c.next(6)

    assert [3, 5, 6] == c.recorder.items
    assert [1, 2, 4] == c.discarded


async def test_error_fails_when_there_is_no_demand() -> None:
    c = await case(lambda flow: flow.on_backpressure_error())

    await c.request(2)
    await c.next(1, 2)
    assert [1, 2] == c.recorder.items
    await c.next(3)

    assert isinstance(c.recorder.error, BackpressureOverflowError)
    assert "came without demand" in str(c.recorder.error)
    assert (1, [3]) == (c.source.cancels, c.discarded)


@pytest.mark.usefixtures("still")
async def test_what_is_asked_for_while_a_chunk_is_given_is_met_from_the_same_chunk() -> None:
    discarded: list[int] = []
    recorder = Recorder(1)
    with hooks.using(on_discard=discarded.append):
        Flow.range(6).flat_map_iterable(lambda n: [n]).on_backpressure_drop().filter(lambda n: n == 3).subscribe(
            recorder
        )
    await idle()

    assert [3] == recorder.items
    assert [4, 5] == discarded


@define
class LateInlet:
    """An inlet whose events come when the test says so."""

    chunks: list[list[Any]] = field(factory=list)
    events: list[Any] = field(factory=list)

    def on_chunk(self, items: list[Any]) -> None:
        self.chunks.append(items)

    def post(self, handle: Any, value: Any) -> None:
        self.events.append(lambda: handle(value))


def test_a_chunk_does_not_overtake_what_waits_for_an_event() -> None:
    inlet = LateInlet()
    intake = Intake(inlet, Backlog[str](9, "error"))
    intake.on_chunk(["a"])
    intake.request(2)
    intake.on_chunk(["b"])
    assert [] == inlet.chunks

    (drain,) = inlet.events
    drain()
    assert [["a", "b"]] == inlet.chunks


# -- the end


@pytest.mark.parametrize("relieved", KEEPING.values(), ids=KEEPING.keys())
async def test_the_end_stays_behind_what_waits(relieved: Any) -> None:
    for end in ("complete", "error"):
        c = await case(relieved)
        await c.next("a")
        if end == "complete":
            c.source.complete()
        else:
            c.source.error(OSError("down"))
        await idle()
        assert ["subscribe"] == c.recorder.kinds

        await c.request(1)
        assert ["subscribe", "next", end] == c.recorder.kinds


@all_of_them
async def test_a_failure_comes_through_where_nothing_waits(relieved: Any) -> None:
    c = await case(relieved)
    c.source.error(OSError("down"))
    await idle()

    assert "down" == str(c.recorder.error)


@pytest.mark.parametrize("relieved", KEEPING.values(), ids=KEEPING.keys())
async def test_cancel_reaches_upstream_and_discards_what_waits(relieved: Any) -> None:
    c = await case(relieved)
    await c.next("a")

    c.recorder.cancel()
    await idle()
    c.source.next("late")
    await idle()

    assert 1 == c.source.cancels
    assert ["a", "late"] == c.discarded
    assert ["subscribe"] == c.recorder.kinds


async def test_a_failure_that_waits_when_the_flow_is_cancelled_does_not_vanish() -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        c = await case(lambda flow: flow.on_backpressure_buffer(3))
    await c.next("a")
    failure = OSError("down")
    c.source.error(failure)
    await idle()
    assert [] == dropped

    c.recorder.cancel()
    await idle()

    assert [failure] == dropped


@all_of_them
@pytest.mark.usefixtures("still")
async def test_what_an_element_that_cancels_leaves_of_its_chunk_goes_to_the_hook(relieved: Any) -> None:
    made: list[int] = []
    discarded: list[int] = []
    with hooks.using(on_discard=discarded.append):
        flow = relieved(Flow.range(1000).map(lambda n: made.append(n) or n)).skip(2).take(1)
        assert [2] == await flow.to_list()

    assert made[3:] == discarded


# -- on_drop


@pytest.mark.parametrize(
    ("dropping", "dropped"),
    [
        (lambda flow, f: flow.on_backpressure_drop(f), [1, 2, 3]),
        (lambda flow, f: flow.on_backpressure_latest(f), [1, 2]),
        (lambda flow, f: flow.on_backpressure_buffer(1, overflow="drop_latest", on_drop=f), [2, 3]),
        (lambda flow, f: flow.on_backpressure_buffer(1, overflow="drop_oldest", on_drop=f), [1, 2]),
    ],
    ids=["drop", "latest", "buffer-drop_latest", "buffer-drop_oldest"],
)
async def test_on_drop_is_called_with_each_in_the_context_of_the_subscriber(dropping: Any, dropped: Any) -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")
    told: list[Any] = []
    user.set("subscriber")
    c = await case(lambda flow: dropping(flow, lambda item: told.append((item, user.get()))))
    user.set("somebody else")

    await c.request(1)
    await c.next("wanted")
    await c.next(1, 2, 3)

    assert [(item, "subscriber") for item in dropped] == told


async def test_an_exception_of_on_drop_fails_the_flow() -> None:
    def refuse(item: Any) -> None:
        raise ValueError(f"{item} must not be lost")

    c = await case(lambda flow: flow.on_backpressure_drop(refuse))
    await c.request(1)
    await c.next("a", "b", "c")

    assert "b must not be lost" == str(c.recorder.error)
    (note,) = c.recorder.error.__notes__
    assert "raised by the on_drop of on_backpressure_drop(refuse), chained at" in note
    assert 1 == c.source.cancels


async def test_a_cancellation_that_on_drop_raises_is_a_failure_of_the_flow() -> None:
    def refuse(_: Any) -> None:
        raise asyncio.CancelledError

    with pytest.raises(Exception, match="raised CancelledError"):
        await Flow.range(100).on_backpressure_drop(refuse).publish_on(schedulers.current(), prefetch=2).to_list()


# -- what can be read of it


async def test_a_snapshot_shows_what_waits_and_counts_what_was_dropped_also_behind_the_end() -> None:
    source = TestPublisher[int]()
    flow = Flow.from_publisher(source).on_backpressure_buffer(2, overflow="drop_oldest")
    async with flow.map(str).open() as items:
        await idle()
        source.next(*range(7))
        await idle()
        assert OverflowSnapshot(size=2, buffered=2, dropped=5) == items.snapshot().regions[-1].overflow

        assert "5" == await anext(items)
        source.complete()
        assert ["6"] == [item async for item in items]
        assert OverflowSnapshot(size=2, buffered=0, dropped=5) == items.snapshot().regions[-1].overflow
        assert 5 == items.snapshot().dropped


async def test_a_snapshot_shows_the_operator_also_where_its_region_does_nothing_else() -> None:
    async with Flow.range(9).map(str).on_backpressure_drop().open() as items:
        await anext(items)
        await idle()
        first, second = items.snapshot().regions

    assert (9, None) == (first.delivered, first.overflow)
    assert (1, OverflowSnapshot(size=0, buffered=0, dropped=8)) == (second.delivered, second.overflow)


# -- against a model


POLICIES: dict[str, tuple[Any, int, str]] = {
    "drop": (lambda flow: flow.on_backpressure_drop(), 0, "drop_latest"),
    "latest": (lambda flow: flow.on_backpressure_latest(), 1, "drop_oldest"),
    "drop_latest": (lambda flow: flow.on_backpressure_buffer(3, overflow="drop_latest"), 3, "drop_latest"),
    "drop_oldest": (lambda flow: flow.on_backpressure_buffer(3, overflow="drop_oldest"), 3, "drop_oldest"),
}


@define
class Model:
    size: int
    policy: str
    demand: int = 0
    waiting: deque[int] = field(factory=deque)
    delivered: list[int] = field(factory=list)
    dropped: list[int] = field(factory=list)

    def request(self, n: int) -> None:
        self.demand += n
        self.give()

    def next(self, item: int) -> None:
        self.waiting.append(item)
        self.give()
        if len(self.waiting) > self.size:
            self.dropped.append(self.waiting.pop() if self.policy == "drop_latest" else self.waiting.popleft())

    def give(self) -> None:
        while self.demand and self.waiting:
            self.demand -= 1
            self.delivered.append(self.waiting.popleft())


moves = st.lists(st.tuples(st.sampled_from(["next", "request"]), st.integers(1, 5)), max_size=20)


@pytest.mark.costly
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=100, deadline=None)
@given(moves)
def test_it_does_what_the_model_does_whatever_comes_and_is_wanted(policy: str, moves: list[tuple[str, int]]) -> None:
    relieved, size, what = POLICIES[policy]

    async def main() -> None:
        c, model, sent = await case(relieved), Model(size, what), 0
        # Where nothing can wait, a source is asked by the first demand.
        model.request(1)
        await c.request(1)
        for move, n in moves:
            if move == "request":
                model.request(n)
                await c.request(n)
            else:
                for item in range(sent, sent + n):
                    model.next(item)
                c.source.next(*range(sent, sent + n))
                await idle()
                sent += n
            assert model.delivered == c.recorder.items
            assert model.dropped == c.discarded
        c.source.complete()
        await c.request(100)
        assert "complete" == c.recorder.kinds[-1]
        assert sorted([*c.recorder.items, *c.discarded]) == list(range(sent))

    asyncio.run(main())


# -- over boundaries


async def test_every_element_is_given_or_discarded_across_threads() -> None:
    discarded: list[int] = []

    def flow() -> AnyFlow:
        return (
            Flow.range(50_000)
            .on_backpressure_buffer(100, overflow="drop_oldest")
            .subscribe_on(schedulers.thread("fast"))
        )

    with hooks.using(on_discard=discarded.append):
        given = await flow().publish_on(schedulers.thread("slow"), prefetch=8).map(lambda n: n).to_list()

    assert given == sorted(given)
    assert list(range(50_000)) == sorted([*given, *discarded])


async def test_the_operators_follow_each_other() -> None:
    flow = Flow.range(20).on_backpressure_drop().on_backpressure_buffer(30).on_backpressure_latest()

    async with flow.open() as items:
        await idle()
        assert 19 == await anext(items)


def test_it_takes_no_time_that_is_not_asked_for() -> None:
    async def main() -> None:
        async with probe(Flow.interval(1.0).on_backpressure_buffer(3, overflow="drop_oldest")) as p:
            await p.expect_no_event(for_=10.5)
            await p.request(4)
            await p.expect_next(7, 8, 9)
            await p.expect_no_event(for_=0.4)
            await p.expect_next(10)
            assert 11.0 == asyncio.get_running_loop().time()
            p.cancel()

    run_virtual(main())


# -- bad input


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: f.on_backpressure_buffer(0), ValueError, "size must be at least 1"),
        (lambda f: f.on_backpressure_buffer("many"), TypeError, "size is a whole number"),
        (
            lambda f: f.on_backpressure_buffer(1, overflow="block"),
            ValueError,
            "choose one of 'error', 'drop_latest', 'drop_ol",
        ),
        (lambda f: f.on_backpressure_buffer(1, on_drop=print), ValueError, "'error' drops nothing"),
        (lambda f: f.on_backpressure_drop(3), TypeError, "takes a function, not int"),
        (lambda f: f.on_backpressure_drop(asyncio.sleep), TypeError, "async def"),
        (lambda f: f.on_backpressure_latest(asyncio.sleep), TypeError, "async def"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(Flow.range(3))
