"""Workers are used again, and the garbage collector leaves the elements of a batch alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow
from reactive_aio.spark._task.sparing import YOUNG, rare_collections


def threshold(_: object) -> int:
    return gc.get_threshold()[0]


def threshold_of_a_row(_: object) -> tuple[int]:
    return (gc.get_threshold()[0],)


def thresholds(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    arrow: Any = pa
    for _ in batches:
        yield arrow.RecordBatch.from_arrays([arrow.array([gc.get_threshold()[0]], arrow.int64())], ["n"])


@pytest.mark.parametrize(("before", "meanwhile"), [(700, YOUNG), (YOUNG + 1, YOUNG + 1), (0, 0)])
def test_the_collector_runs_less_often_for_a_while(before: int, meanwhile: int) -> None:
    own = gc.get_threshold()
    try:
        gc.set_threshold(before, 10, 10)
        with suppress(ZeroDivisionError), rare_collections():
            assert (meanwhile, 10, 10) == gc.get_threshold()
            raise ZeroDivisionError
        assert (before, 10, 10) == gc.get_threshold()
    finally:
        gc.set_threshold(*own)


def test_the_collector_runs_less_often_in_the_tasks_of_flows_alone(spark: Any) -> None:
    flow = Flow.from_spark(spark.range(4), as_=tuple)

    assert [YOUNG] * 4 == flow.map(threshold).run_sync()
    assert [(YOUNG,)] * 4 == flow.map(threshold_of_a_row).to_frame("n long").collect()
    assert [(YOUNG, 4)] == flow.group_by_key(threshold).count().run_sync()
    assert YOUNG not in {row.n for row in spark.range(4).mapInArrow(thresholds, "n long").collect()}
