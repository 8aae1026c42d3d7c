"""The plan in words, where combinators take part in it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen

from reactive_aio import Flow, schedulers
from reactive_aio._plan import Elsewhere, Inlet, Pushed
from reactive_aio._plan.layout import HOMEWARD
from reactive_aio._runtime.places import PREFETCH
from reactive_aio.extend import flow_of
from reactive_aio.spec import Subscription
from tests.registry import AnyFlow


def test_combinators_around_a_whole_flow_stand_below_its_plan() -> None:
    flow = Flow.range(3).map(str).publish_on(schedulers.current()).take(2).retry(2).repeat(3)

    assert flow.describe().splitlines() == [
        "R1  the subscriber's loop   range(0, 3) -> map(str)",
        " |  boundary, prefetch 256",
        "R2  current()               take(2)",
        "all of it under retry(2)",
        "all of it under repeat(3)",
    ]


def test_a_flow_that_a_combinator_reads_stands_apart_where_more_is_done() -> None:
    flow = Flow.range(3).retry(2).map(str)

    assert flow.describe().splitlines() == [
        "R1  the subscriber's loop   retry(2) -> map(str)",
        "",
        "where retry reads:",
        "    R1  the subscriber's loop   range(0, 3)",
    ]


# The example of the specification, in its chapter on asynchronous and synchronous processing.


def f(item: int) -> int:
    return item


def p(item: int) -> bool:
    return item > 0


def origin() -> AnyFlow:
    return Flow.of("origin")


def drawn(flow: AnyFlow) -> list[str]:
    """The two lines of the specification, without the legend."""
    return flow.describe("line", end="consume_to(output)").splitlines()[:2]


def test_four_regions_are_drawn_as_the_specification_draws_them() -> None:
    hop, out = schedulers.current(), schedulers.current()

    assert drawn(origin().publish_on(hop).map(f).publish_on(hop).filter(p).publish_on(out)) == [
        "of('origin') | map(f)   | filter(p) | consume_to(output)",
        "---- R1 ---- | -- R2 -- | -- R3 --- | ------- R4 -------",
    ]


def test_a_boundary_only_before_the_last_is_drawn_as_the_specification_draws_it() -> None:
    assert drawn(origin().map(f).filter(p).publish_on(schedulers.current())) == [
        "of('origin') map(f) filter(p) | consume_to(output)",
        "------------ R1 ------------- | ------- R2 -------",
    ]


def test_a_boundary_only_after_the_first_is_drawn_as_the_specification_draws_it() -> None:
    assert drawn(origin().publish_on(schedulers.current()).map(f).filter(p)) == [
        "of('origin') | map(f) filter(p) consume_to(output)",
        "---- R1 ---- | --------------- R2 ----------------",
    ]


def test_the_line_says_below_what_the_resources_are() -> None:
    flow = origin().publish_on(schedulers.thread("far"), prefetch=1).map(f).publish_on(schedulers.current(), prefetch=9)

    assert flow.describe("line").splitlines() == [
        "of('origin') | map(f)   | ...",
        "---- R1 ---- | -- R2 -- | -- R3 --",
        "R1 the subscriber's loop",
        "R2 thread('far'), boundary, prefetch 1",
        "R3 current(), boundary, prefetch 9",
    ]


def test_an_end_comes_home_over_one_more_boundary() -> None:
    flow = origin().publish_on(schedulers.thread("far")).map(f)

    assert flow.describe(end="to_list()").splitlines()[-2:] == [
        " |  boundary, prefetch 256",
        "R3  the subscriber's loop   to_list()",
    ]
    assert HOMEWARD == PREFETCH


def test_an_end_joins_the_last_region_where_that_is_at_home() -> None:
    assert (
        origin().map(f).describe(end="to_list()") == "R1  the subscriber's loop   of('origin') -> map(f) -> to_list()"
    )


def test_an_end_stands_outside_of_what_is_subscribed_to_again() -> None:
    assert origin().retry(2).describe(end="to_list()").splitlines()[1:] == [
        "all of it under retry(2)",
        "consumed by to_list()",
    ]


def test_what_was_left_at_its_default_is_not_shown() -> None:
    assert Flow.range(3).retry().describe().splitlines()[-1] == "all of it under retry()"
    assert Flow.range(3).on_backpressure_drop().describe().splitlines()[-1] == "all of it under on_backpressure_drop()"


def test_the_line_draws_what_a_combinator_reads_below() -> None:
    assert Flow.range(3).retry(2).map(str).describe("line").splitlines() == [
        "retry(2) map(str)",
        "------ R1 -------",
        "R1 the subscriber's loop",
        "",
        "where retry reads:",
        "    range(0, 3)",
        "    --- R1 ----",
        "    R1 the subscriber's loop",
    ]


def test_another_style_is_refused() -> None:
    with pytest.raises(ValueError, match="choose one of 'table', 'line'"):
        Flow.range(3).describe("circle")


@frozen
class Far(Pushed[int]):
    """A source whose elements are made elsewhere, of a flow perhaps."""

    work: str
    front: str = ""
    read: tuple[AnyFlow, ...] = ()

    @property
    def inner(self) -> tuple[AnyFlow, ...]:
        return self.read

    @property
    def elsewhere(self) -> Elsewhere:
        return Elsewhere("far away", self.work, "credit boundary", self.front)

    @property
    def details(self) -> tuple[str, ...]:
        return ("by four tasks",)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        raise NotImplementedError


def test_a_region_that_is_run_elsewhere_is_the_first() -> None:
    assert flow_of(Far("far() -> map(f)")).map(p).describe().splitlines() == [
        "R1  far away                far() -> map(f)",
        " |  credit boundary",
        "R2  the subscriber's loop   map(p)",
        "R1  by four tasks",
    ]


def test_a_region_elsewhere_in_which_nothing_is_done_says_so() -> None:
    assert flow_of(Far("(reads)")).describe().splitlines()[:2] == [
        "R1  far away                (elements pass as they are)",
        " |  credit boundary",
    ]


def test_boundaries_with_nothing_to_do_between_them_become_one() -> None:
    flow = flow_of(Far("far()")).publish_on(schedulers.current(), prefetch=4).map(p)

    assert flow.describe().splitlines()[1:3] == [
        " |  credit boundary, then boundary, prefetch 4",
        "R2  current()   map(p)",
    ]


def test_a_region_elsewhere_stands_behind_the_flow_that_it_reads() -> None:
    read = origin().map(f)

    assert flow_of(Far("far()", "chunks of 8", (read,))).describe().splitlines() == [
        "R1  the subscriber's loop   of('origin') -> map(f)",
        " |  chunks of 8",
        "R2  far away                far()",
        " |  credit boundary",
        "R3  the subscriber's loop   (elements pass as they are)",
        "R2  by four tasks",
    ]


def test_a_flow_shows_itself_as_it_was_written() -> None:
    worker = schedulers.thread("worker")
    flow = Flow.range(9)[2:5].publish_on(worker, prefetch=4).map(str)

    assert "Flow.range(0, 9)[2:5].publish_on(thread('worker'), prefetch=4).map(str)" == repr(flow)
    assert "thread('worker')" == repr(worker)
