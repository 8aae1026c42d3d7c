"""Spark as a source, on a cluster: the elements come in order and early, also if a process of the cluster is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, SparkJobError
from tests.spark.jobs import active_jobs
from tests.spark.waiting import until
from tests.spark_cluster.killing import deadly
from tests.spark_cluster.profile import CLUSTER, MARKS

pytest.importorskip("pyspark")

pytestmark = [*MARKS, pytest.mark.usefixtures("nothing_left")]

N = 20_000


def source(spark: Any, kind: str, *, partitions: int = 4, **options: Any) -> Flow[int]:
    """The numbers up to N, of an RDD or of the rows of a frame."""
    if kind == "rdd":
        numbers: Flow[int] = Flow.from_spark(spark.sparkContext.range(0, N, 1, partitions), **options)
        return numbers
    frame = spark.range(0, N, 1, partitions)
    return Flow.from_spark(frame, as_=tuple, **options).map(lambda row: row[0])


async def test_the_executors_are_processes_of_their_own_and_several(sc: Any) -> None:
    def where(_: Any) -> Any:
        import os

        with open(f"/proc/{os.getppid()}/stat") as file:
            yield int(file.read().rpartition(")")[2].split()[1])

    def jvms() -> set[int]:
        return set(sc.parallelize(range(16), 16).mapPartitions(where).collect())

    await until(lambda: 1 < len(jvms()))  # one that an earlier test has cost takes a while to be replaced
    assert int(sc._jvm.ProcessHandle.current().pid()) not in jvms()


async def test_the_workers_run_the_package_that_was_shipped(sc: Any) -> None:
    def where(_: Any) -> str:
        import reactive_aio

        return str(reactive_aio.__file__)

    found = await Flow.from_spark(sc.range(0, 4, 1, 4)).map(where).to_set()

    assert all("reactive_aio.zip" in path for path in found)


@pytest.mark.parametrize("kind", ["rdd", "frame"])
async def test_in_order(spark: Any, kind: str) -> None:
    assert [*range(N)] == await source(spark, kind, prefetch=512).to_list()


@pytest.mark.parametrize("kind", ["rdd", "frame"])
async def test_as_they_come(spark: Any, kind: str) -> None:
    assert [*range(N)] == sorted(await source(spark, kind, prefetch=512, ordered=False).to_list())


async def test_in_parts(spark: Any) -> None:
    assert (N, sum(range(N))) == (await source(spark, "rdd").count(), await source(spark, "frame").sum())
    assert [*range(N - 1, N - 4, -1)] == await source(spark, "rdd").top_k(3)


async def test_rows_of_a_class_after_a_shuffle(spark: Any) -> None:
    @attrs.frozen
    class Group:
        key: int
        count: int

    frame = spark.range(N).selectExpr("id % 7 as key").groupBy("key").count().orderBy("key")

    assert [(key, len(range(key, N, 7))) for key in range(7)] == [
        (each.key, each.count) for each in await Flow.from_spark(frame, as_=Group).to_list()
    ]


async def test_leaving_early_stops_the_jobs(spark: Any, sc: Any) -> None:
    async with source(spark, "rdd", prefetch=64).map(lambda n: n).open() as items:
        assert [0, 1, 2] == [await anext(items) for _ in range(3)]
        assert active_jobs(sc)
    assert not active_jobs(sc)


def test_the_plan_names_the_cluster(spark: Any) -> None:
    assert f"Spark {CLUSTER}" in source(spark, "rdd").describe()


# -- who is killed


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("kind", ["rdd", "frame"])
@pytest.mark.parametrize("executor", [False, True], ids=["worker", "executor"])
async def test_whoever_is_killed_every_element_comes_once(
    spark: Any, tmp_path: Path, kind: str, executor: bool, ordered: bool
) -> None:
    dying = deadly(tmp_path / "killed", lambda n: n == 7_777, executor=executor)

    found = await source(spark, kind, prefetch=256, ordered=ordered).map(dying).to_list()

    assert (tmp_path / "killed").exists()
    assert [*range(N)] == (found if ordered else sorted(found))


@pytest.mark.parametrize("kind", ["rdd", "frame"])
@pytest.mark.parametrize("executor", [False, True], ids=["worker", "executor"])
async def test_whoever_is_killed_results_of_jobs_come_once(
    spark: Any, tmp_path: Path, kind: str, executor: bool
) -> None:
    dying = deadly(tmp_path / "killed", lambda n: n == 7_777, executor=executor)

    assert [*range(N)] == await source(spark, kind, wire="results").map(dying).to_list()
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize("executor", [False, True], ids=["worker", "executor"])
async def test_whoever_is_killed_a_sum_in_parts_is_right(spark: Any, tmp_path: Path, executor: bool) -> None:
    dying = deadly(tmp_path / "killed", lambda n: n == 12_345, executor=executor)

    assert sum(range(N)) == await source(spark, "rdd").map(dying).sum()
    assert (tmp_path / "killed").exists()


async def test_the_files_of_a_shuffle_that_are_lost_with_their_executor_are_made_again(
    spark: Any, tmp_path: Path
) -> None:
    frame = spark.range(0, N, 1, 4).repartition(3).orderBy("id")
    dying = deadly(tmp_path / "killed", lambda row: row[0] == 5_000, executor=True)

    found = await Flow.from_spark(frame, as_=tuple, prefetch=256).map(dying).to_list()

    assert (tmp_path / "killed").exists()
    assert [*range(N)] == [row[0] for row in found]


async def test_a_job_that_fails_for_good_signals_once(spark: Any) -> None:
    def dying(_: Any) -> None:
        import os

        os._exit(1)

    with pytest.raises(SparkJobError, match="from_spark"):
        await source(spark, "rdd").map(dying).drain()
