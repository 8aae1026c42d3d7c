"""How plans show a region on workers."""

from __future__ import annotations

from reactive_aio import Flow, schedulers
from tests.schedulers.by_hand import ByHand


async def test_operators_that_need_the_whole_stream_and_what_follows_run_on_the_loop() -> None:
    flow = Flow.range(9).publish_on(ByHand(2), prefetch=16).map(str).filter(len).take(3).map(len)

    assert flow.describe().splitlines() == [
        "R1  the subscriber's loop   range(0, 9)",
        " |  boundary, prefetch 16",
        "R2  by_hand(2)              map(str) -> filter(len)",
        " |  in order, as requested",
        "R3  the subscriber's loop   take(3) -> map(len)",
    ]


def test_the_boundary_by_which_elements_of_another_thread_come_to_the_loop_is_shown() -> None:
    flow = Flow.range(9).subscribe_on(schedulers.thread("reader")).publish_on(ByHand(2), prefetch=4).map(str)

    assert flow.describe().splitlines() == [
        "R1  thread('reader')        range(0, 9)",
        " |  boundary, as requested, then boundary, prefetch 4",
        "R2  by_hand(2)              map(str)",
        " |  in order, as requested",
        "R3  the subscriber's loop   (elements pass as they are)",
    ]


def test_a_boundary_of_an_operator_that_workers_cannot_run_is_shown_even_behind_combinators() -> None:
    flow = Flow.range(9).retry(2).publish_on(ByHand(2)).map(str).repeat(2)

    assert flow.describe().splitlines() == [
        "R1  the subscriber's loop   retry(2)",
        " |  boundary, prefetch 256 to 4096",
        "R2  by_hand(2)              map(str)",
        " |  in order, as requested",
        "R3  the subscriber's loop   (elements pass as they are)",
        "",
        "where retry reads:",
        "    R1  the subscriber's loop   range(0, 9)",
        "all of it under repeat(2)",
    ]
