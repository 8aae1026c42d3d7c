"""A stage of somebody's own need not say whether more is to come of it: nothing is lost, however little is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from attrs import define, frozen

from reactive_aio import UNBOUNDED, Flow, schedulers
from reactive_aio._fusion import Stage, Template, Transform
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
        for _ in (1, 2):
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

    for given, stages in rows.items():
        flow = source("a", "b")
        for stage in stages:
            flow = flow.then(stage)
        assert list(given) == await end(flow)


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
