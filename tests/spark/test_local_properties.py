"""The jobs of a flow have the local properties that the thread had on which the flow was made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

from reactive_aio import Flow, schedulers
from reactive_aio.spark.sink import Frames

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

POOL = "spark.scheduler.pool"


def local_property(name: str) -> str:
    """Return a property of the task that runs here."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    return str(task.getLocalProperty(name))


def pool(_: object = None) -> str:
    return local_property(POOL)


@contextmanager
def in_pool(sc: Any, name: str) -> Generator[None]:
    """Set the property on this thread."""
    sc.setLocalProperty(POOL, name)
    try:
        yield
    finally:
        sc.setLocalProperty(POOL, None)


FLOWS: dict[str, Callable[[Any], Flow[Any]]] = {
    "rows": lambda spark: Flow.from_spark(spark.range(2)).map(pool),
    "results": lambda spark: Flow.from_spark(spark.range(2), wire="results").map(pool),
    "elements of an RDD": lambda spark: Flow.from_spark(spark.sparkContext.parallelize(range(2), 2)).map(pool),
    "several sources": lambda spark: Flow.from_spark(spark.range(2)).concat(Flow.from_spark(spark.range(2))).map(pool),
    "by key": lambda spark: Flow.from_spark(spark.range(2)).group_by_key(lambda row: row.id).map(pool).pairs(),
    "sorted": lambda spark: Flow.from_spark(spark.range(2)).map(pool).sort_by(len),
}


@pytest.mark.parametrize("kind", FLOWS)
async def test_they_are_those_at_the_time_the_flow_was_made(kind: str, spark: Any) -> None:
    with in_pool(spark.sparkContext, "mine"):
        flow = FLOWS[kind](spark)
    other = FLOWS[kind](spark)

    found = [each[1] if kind == "by key" else each for each in await flow.to_list()]
    assert {"mine"} == set(found)
    assert "mine" not in str(await other.to_list())


async def test_the_tags_are_among_them(sc: Any) -> None:
    sc.addJobTag("nightly")
    try:
        flow = Flow.from_spark(sc.parallelize(range(2), 2))
    finally:
        sc.removeJobTag("nightly")
    tags = await flow.map(lambda _: local_property("spark.job.tags")).to_list()

    assert ["nightly", "nightly"] == tags


async def test_the_thread_that_makes_them_keeps_its_own(sc: Any) -> None:
    with in_pool(sc, "mine"):
        await Flow.from_spark(sc.parallelize(range(2), 1)).to_list()
        assert "mine" == sc.getLocalProperty(POOL)
        assert sc.getLocalProperty("spark.jobGroup.id") is None


async def test_the_number_of_a_query_that_is_being_run_is_not_among_them(sc: Any) -> None:
    sc.setLocalProperty("spark.sql.execution.id", "7")
    try:
        flow = Flow.from_spark(sc.parallelize(range(1), 1)).map(lambda _: local_property("spark.sql.execution.id"))
    finally:
        sc.setLocalProperty("spark.sql.execution.id", None)

    assert ["None"] == await flow.to_list()


async def test_a_writer_has_those_of_the_thread_that_makes_it(spark: Any) -> None:
    seen: list[Any] = []
    with in_pool(spark.sparkContext, "mine"):
        writer = Frames(spark, lambda *_: seen.append(spark.sparkContext.getLocalProperty(POOL)))
    await Flow.of((1,)).to_spark(writer, "n long", size=1)

    assert ["mine"] == seen


async def test_a_writer_of_ones_own_may_have_properties_of_another_kind(spark: Any) -> None:
    @frozen
    class Own(Frames):
        properties: dict[str, str] = field(factory=lambda: {"user": "me"}, kw_only=True)

    writer = Own(spark, lambda *_: None)
    done = await Flow.of((1,)).to_spark(writer, "n long", size=1)

    assert (1, {"user": "me"}) == (done.rows, writer.properties)


async def test_the_thread_that_starts_a_query_has_them(spark: Any, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    with in_pool(spark.sparkContext, "mine"):
        flow = Flow.from_spark(stream, checkpoint=str(tmp_path / "log"), trigger={"availableNow": True})
    source: Any = flow.__nodes__.source.operator

    def started() -> Any:
        source.start(lambda *_: None).stop()
        return spark.sparkContext.getLocalProperty(POOL)

    assert "mine" == await asyncio.to_thread(started)


async def test_resident_tasks_have_them(spark: Any) -> None:
    with in_pool(spark.sparkContext, "mine"):
        place = schedulers.spark(spark, 1)

    assert ["mine", "mine"] == await Flow.range(2).publish_on(place).map(pool).to_list()


async def test_the_rows_of_micro_batches_are_read_with_them(spark: Any, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    with in_pool(spark.sparkContext, "mine"):
        batches = Flow.from_spark(stream, checkpoint=str(tmp_path / "log"), trigger={"availableNow": True})

    found: set[str] = set()
    async with batches.open() as items:
        async for batch in items:
            async with batch as rows:
                found |= set(await rows.map(pool).to_list())
    assert {"mine"} == found
