"""A stage of somebody's own need not say whether more is to come of it: nothing is lost, however little is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import accumulate, count, cycle, islice
from typing import Any

import pytest
from attrs import define, frozen

from reactive_aio import UNBOUNDED, Flow, schedulers
from reactive_aio._core import budgets
from reactive_aio._fusion import ChunkWork, Origin, Placed, Stage, Template, Transform
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable
from reactive_aio.web import split_lines
from tests.subscribers import Recorder, idle


@frozen
class Twice(Stage[Any, Any]):
    """Two for each, by a generator."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            yield item


@frozen
class TwiceInTheLoop(Stage[Any, Any]):
    """The same, by lines of the fused loop."""

    template = Template("""
        for item in (item, item):
            $rest
    """)


@frozen
class Framed(Stage[Any, Any]):
    """Two before all, and two behind it."""

    def prelude(self) -> Iterable[Any]:
        yield from "<<"

    def finish(self) -> Iterable[Any]:
        yield from ">>"

    template = Template("$rest")


async def one_by_one(flow: Flow[Any]) -> list[Any]:
    return [item async for item in flow]


async def by_requests_of(n: int, flow: Flow[Any]) -> list[Any]:
    recorder = Recorder(0)
    flow.subscribe(recorder)
    for _ in range(20):
        recorder.request(n)
        await idle()
    await recorder.over.wait()
    if "error" in recorder.kinds:
        raise recorder.error
    return recorder.items


async def given(items: Iterable[Any], *, suspends: bool = False) -> AsyncIterator[Any]:
    for item in items:
        if suspends:
            await asyncio.sleep(0)
        yield item


ENDS = [
    pytest.param(one_by_one, id="async for"),
    pytest.param(lambda flow: by_requests_of(1, flow), id="requests of one"),
    pytest.param(lambda flow: by_requests_of(3, flow), id="requests of three"),
    pytest.param(lambda flow: by_requests_of(UNBOUNDED, flow), id="unbounded"),
    pytest.param(lambda flow: flow.publish_on(schedulers.current(), prefetch=1).to_list(), id="a boundary of one"),
    pytest.param(lambda flow: flow.publish_on(schedulers.current(), prefetch=3).to_list(), id="a boundary of three"),
    pytest.param(lambda flow: flow.to_list(), id="to_list, in the same region"),
]
SOURCES = [
    pytest.param(lambda *items: Flow.from_iterable(items), id="a tuple"),
    pytest.param(lambda *items: Flow.from_iterable(iter(items)), id="an iterator"),
    pytest.param(lambda *items: Flow.empty().concat(Flow.of(*items)), id="a combinator"),
    pytest.param(lambda *items: Flow.of(*items).publish_on(schedulers.current()), id="a boundary"),
    pytest.param(lambda *items: Flow.from_async_iterable(given(items)), id="an async iterator"),
    pytest.param(lambda *items: Flow.from_async_iterable(given(items, suspends=True)), id="one that suspends"),
]
Made = Callable[..., Flow[Any]]
End = Callable[[Flow[Any]], Any]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("source", SOURCES)
async def test_all_of_it_arrives(end: End, source: Made) -> None:
    rows: dict[str, list[Stage[Any, Any]]] = {
        "aabb": [Twice()],
        "aaaabbbb": [Twice(), TwiceInTheLoop()],
        "<<ab>>": [Framed()],
        "<<aabb>>": [Twice(), Framed()],
        "<<<<aabb>>>>": [Framed(), TwiceInTheLoop()],
        "<<<<ab>>>>": [Framed(), Framed()],
    }

    for expected, stages in rows.items():
        flow = source("a", "b")
        for stage in stages:
            flow = flow.then(stage)
        assert list(expected) == await end(flow)


def many(item: Any) -> list[Any]:
    """Return more results than are made between two looks at the clock."""
    return [item] * 70


PAUSES = [
    pytest.param(lambda flow: flow.flat_map_iterable(many), 70, id="flat_map_iterable"),
    pytest.param(lambda flow: flow.flat_map_iterable(many).flat_map_iterable(many), 4900, id="twice"),
    pytest.param(lambda flow: flow.then(Twice()).flat_map_iterable(many), 140, id="behind another stage"),
    pytest.param(lambda flow: flow.map_batches(lambda batch: many(batch[0]), size=1), 70, id="map_batches"),
    pytest.param(lambda flow: flow.take(6).then(Twice()).flat_map_iterable(many), 140, id="behind an end"),
    pytest.param(lambda flow: flow.flat_map_iterable(many).take(420), 70, id="before an end"),
    pytest.param(lambda flow: flow.buffer(1).flat_map_iterable(lambda batch: many(batch[0])), 70, id="buffer"),
]


@pytest.mark.parametrize(("pause", "times"), PAUSES)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("stage", [Twice(), TwiceInTheLoop()], ids=["apply", "template"])
async def test_nothing_is_lost_where_a_later_stage_ends_a_pass_because_its_time_is_up(
    stage: Stage[Any, Any], source: Made, end: End, pause: Made, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "clock", count(step=budgets.TURN).__next__)  # it is up at each look
    made = pause(source("a", "b", "c").then(stage))

    last = made.index().filter(lambda pair: not (pair[0] + 1) % times).map(lambda pair: pair[1])

    assert list("aabbcc") == await end(last)


@pytest.mark.parametrize("stage", [Twice(), TwiceInTheLoop()], ids=["apply", "template"])
def test_nothing_is_lost_of_that_on_a_worker(stage: Stage[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", count(step=budgets.TURN).__next__)
    origin = Origin("here.py", 1)
    stages: list[Stage[Any, Any]] = [stage, FlatMapIterable(many), FlatMapIterable(many)]
    run = ChunkWork("test", tuple(Placed(each, origin) for each in stages)).begin(list("ab"), 0)
    made: list[Any] = []
    while not run.over:
        made += run.part(1_000)

    assert list("aabb") == made[:: 70 * 70]
    assert len(made) == 4 * 70 * 70


async def test_no_line_is_lost_that_a_chunk_has_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    # Lists of lines grow while all are quick. Then the time is up.
    monkeypatch.setattr(budgets, "clock", accumulate(cycle([0.0] * 9 + [budgets.TURN])).__next__)
    text = b"".join(b"%d\n" % n for n in range(300))
    chunks = Flow.of(*(text[at : at + 100] for at in range(0, len(text), 100)))

    made = await split_lines(chunks).flat_map_iterable(many).to_list()

    assert [b"%d" % n for n in range(300)] == made[::70]
    assert len(made) == 300 * 70


@pytest.mark.parametrize("end", [each for each in ENDS if each.id != "to_list, in the same region"])
@pytest.mark.parametrize("stage", [Twice(), TwiceInTheLoop()], ids=["apply", "template"])
async def test_a_failure_waits_for_what_was_made_before_it(end: End, stage: Stage[Any, Any]) -> None:
    seen: list[Any] = []
    flow = Flow.of("a").concat(Flow.error(OSError("down"))).then(stage).do_on_next(seen.append)

    with pytest.raises(OSError, match="down"):
        await end(flow)

    assert ["a", "a"] == seen


@pytest.mark.parametrize("stage", [Twice(), TwiceInTheLoop(), Framed()], ids=["apply", "template", "prelude"])
async def test_the_end_of_a_later_operator_waits_for_nothing(stage: Stage[Any, Any]) -> None:
    recorder = Recorder(2)
    Flow.of("a", "b").then(stage).take(2).subscribe(recorder)
    await idle()

    assert "complete" == recorder.kinds[-1]


@define
class Saying(Transform[Any, Any]):
    """Says what is pending until the last of its finish, or only until the first."""

    honest: bool
    left: int = 2

    template = Template("$rest")

    def finish(self) -> Iterable[Any]:
        while self.left:
            self.left -= 1
            yield ">"

    @property
    def pending(self) -> bool:
        return self.left > (0 if self.honest else 1)


@frozen
class Says(Stage[Any, Any]):
    honest: bool

    def transform(self) -> Transform[Any, Any]:
        return Saying(self.honest)


async def test_a_stage_that_says_what_is_pending_ends_with_its_last_element() -> None:
    recorder = Recorder(3)
    Flow.of("a").then(Says(honest=True)).subscribe(recorder)
    await idle()

    assert ["a", ">", ">"] == recorder.items
    assert "complete" == recorder.kinds[-1]


async def test_a_stage_that_says_so_too_early_fails_by_its_name_rather_than_lose_elements() -> None:
    with pytest.raises(
        RuntimeError, match=r"says\(False\), chained at .* has more elements, but its `pending` is false"
    ):
        await one_by_one(Flow.of("a").then(Says(honest=False)))


@frozen
class Leaving(Stage[Any, Any]):
    """Reads no more than some elements of its input, and does not say that it is done."""

    most: int

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return islice(items, self.most)


@frozen
class LeavingDone(Stage[Any, Any]):
    """The same, and it says so."""

    most: int

    def transform(self) -> Transform[Any, Any]:
        return Left(self.most)


@define
class Left(Transform[Any, Any]):
    left: int

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.left -= 1
            yield item
            if not self.left:
                return

    @property
    def done(self) -> bool:
        return not self.left


BEFORE = [
    pytest.param(lambda flow: flow, id="of the source"),
    pytest.param(lambda flow: flow.then(Twice()), id="of another stage"),
    pytest.param(lambda flow: flow.sort_by(lambda item: item), id="that a stage emits at its end"),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("before", BEFORE)
async def test_a_stage_that_leaves_input_without_being_done_fails_by_its_name(
    end: End, source: Made, before: Made
) -> None:
    message = r"leaving\(0\), chained at .*: apply\(\) of Leaving has returned before the end of its input"
    with pytest.raises(RuntimeError, match=message):
        await end(before(source("a", "b")).then(Leaving(0)).map(str))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", BEFORE)
async def test_a_stage_that_leaves_a_part_of_a_list_fails_too(
    end: End, before: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "clock", lambda: 1.0)  # when its time is up, a stage may return, to be called again
    with pytest.raises(RuntimeError, match=r"leaving\(1\), chained at .*: apply\(\) of Leaving has returned"):
        await end(before(Flow.of("a", "b")).then(Leaving(1)))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("before", BEFORE)
async def test_a_stage_that_is_done_may_leave_input(end: End, source: Made, before: Made) -> None:
    assert 1 == len(await end(before(source("a", "b")).then(LeavingDone(1)).map(str)))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("source", SOURCES)
async def test_a_stage_that_has_all_of_its_input_need_not_look_for_more(end: End, source: Made) -> None:
    assert ["a", "b"] == await end(source("a", "b").then(Leaving(2)))
