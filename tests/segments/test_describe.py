"""The plan in words, where combinators take part in it."""

from __future__ import annotations

from reactive_aio import Flow, schedulers


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
