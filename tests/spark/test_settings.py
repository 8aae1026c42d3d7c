"""Tasks have the settings that the session of their frame has, as those of a query do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow

pytestmark = pytest.mark.spark
pa: Any = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

LEGACY = "to_timestamp(concat('2020-1-', id + 1, ' and more'), 'yyyy-MM-dd')"
"""With the policy LEGACY that is a time, and without it null."""

FLOWS: dict[str, Callable[[Any], Flow[Any]]] = {
    "rows": lambda frame: Flow.from_spark(frame, as_=tuple),
    "rows in any order": lambda frame: Flow.from_spark(frame, as_=tuple, ordered=False),
    "results": lambda frame: Flow.from_spark(frame, as_=tuple, wire="results"),
    "batches": lambda frame: Flow.from_spark(frame, as_=pa.RecordBatch).flat_map_iterable(
        lambda batch: [(each,) for each in batch.column(0).to_pylist()]
    ),
    "several sources": lambda frame: Flow.from_spark(frame, as_=tuple).concat(
        Flow.from_spark(frame.limit(0), as_=tuple)
    ),
    "sorted": lambda frame: Flow.from_spark(frame, as_=tuple).sort_by(lambda row: row[0] or "", max_size=10**9),
    "spread": lambda frame: Flow.from_spark(frame, as_=tuple).repartition(2),
}


@pytest.fixture(params=["true", "false"], ids=["compiled", "interpreted"])
def session(spark: Any, request: pytest.FixtureRequest) -> Any:
    """Make a session that is the active one of no thread. Tasks look settings up earlier where their code is compiled."""
    made = spark.newSession()
    made.conf.set("spark.sql.ansi.enabled", "false")
    made.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    made.conf.set("spark.sql.codegen.wholeStage", request.param)
    if request.param == "false":
        made.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return made


@pytest.mark.parametrize(
    ("adaptive", "shuffled"), [("true", False), ("false", True)], ids=["adaptive", "planned-and-shuffled"]
)
@pytest.mark.parametrize("kind", FLOWS)
async def test_tasks_have_the_settings_of_the_session(session: Any, kind: str, adaptive: str, shuffled: bool) -> None:
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    frame = session.range(0, 2, 1, 2).selectExpr(f"cast({LEGACY} AS string) AS at")
    flow = FLOWS[kind](frame.repartition(2) if shuffled else frame)

    assert [("2020-01-01 00:00:00",), ("2020-01-02 00:00:00",)] == sorted(await flow.to_list(), key=repr)


async def test_rows_of_columns_of_a_fixed_size_have_them(session: Any) -> None:
    flow = Flow.from_spark(session.range(0, 2, 1, 2).selectExpr(f"day({LEGACY}) AS day"), as_=tuple)

    assert [(1,), (2,)] == await flow.to_list()


async def test_a_flow_has_those_of_the_time_when_it_is_subscribed_to(session: Any) -> None:
    frame = session.range(0, 1, 1, 1).selectExpr(f"cast({LEGACY} AS string) AS at")
    session.conf.unset("spark.sql.legacy.timeParserPolicy")
    flow = Flow.from_spark(frame, as_=tuple)
    session.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")

    assert [("2020-01-01 00:00:00",)] == await flow.to_list()


@pytest.mark.parametrize("rdd", [False, True])
async def test_each_of_several_sources_has_those_of_its_own_session(session: Any, spark: Any, rdd: bool) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "false")
    other.conf.set("spark.sql.legacy.timeParserPolicy", "CORRECTED")
    flows = [
        Flow.from_spark(each.range(0, 1, 1, 1).selectExpr(f"cast({LEGACY} AS string) AS at"), as_=tuple)
        for each in (session, other)
    ]
    first: list[Flow[Any]] = [Flow.from_spark(spark.sparkContext.parallelize(["-"], 1))] if rdd else []

    every = first + flows

    found = await every[0].concat(*every[1:]).to_list()

    assert found[len(first) :] == [("2020-01-01 00:00:00",), (None,)]
