"""Elements spread over other partitions in Spark's workers: the same ones, in as many tasks as are said."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError

pytest.importorskip("pyspark")

pytestmark = pytest.mark.spark

N = 1000


def number(row: tuple[int]) -> int:
    return row[0]


def with_partition(n: int) -> tuple[int, int]:
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    return task.partitionId(), n


def numbers(spark: Any, partitions: int, **settings: Any) -> Flow[int]:
    return Flow.from_spark(spark.range(0, N, 1, partitions), as_=tuple, **settings).map(number)


@pytest.mark.parametrize("partitions", [1, 100])
async def test_each_partition_gets_about_as_many_elements_however_few_a_task_has(spark: Any, partitions: int) -> None:
    flow = numbers(spark, partitions).repartition(4).map(with_partition)

    found = await flow.to_list()

    assert list(range(N)) == sorted(n for _, n in found)
    sizes = Counter(partition for partition, _ in found)
    assert {0, 1, 2, 3} == set(sizes)
    assert max(sizes.values()) < 1.2 * N / 4
    assert "shuffled into 4" in flow.describe()


async def test_elements_of_equal_keys_are_in_one_partition(spark: Any) -> None:
    flow = numbers(spark, 2).repartition(3, key=lambda n: 1.0 * (n % 5) if n % 2 else n % 5).map(with_partition)

    found = await flow.to_list()

    assert N == len(found)
    assert 5 == len({(partition, n % 5) for partition, n in found})


async def test_a_frame_has_so_many_partitions(spark: Any) -> None:
    frame = numbers(spark, 1).filter(lambda n: n % 2 == 0).repartition(7).map(lambda n: (n,)).to_frame("n long")

    assert 7 == frame.rdd.getNumPartitions()
    assert list(range(0, N, 2)) == sorted(row.n for row in frame.collect())


async def test_what_follows_is_what_comes_on_the_event_loop(spark: Any) -> None:
    def steps(flow: Flow[int]) -> Flow[Any]:
        first = flow.repartition(3).filter(lambda n: n % 3 > 0)
        return first.repartition(2, key=lambda n: n % 7).group_by_key(lambda n: n % 7).count()

    assert sorted(await steps(Flow.range(N)).to_list()) == sorted(await steps(numbers(spark, 4)).to_list())
    assert await Flow.range(N).sum() == await numbers(spark, 3, ordered=False).repartition(2).sum()


async def test_flows_that_follow_each_other_are_spread_together(spark: Any) -> None:
    both = numbers(spark, 2).concat(numbers(spark, 1).map(lambda n: n + N)).repartition(3).map(with_partition)

    found = await both.to_list()

    assert list(range(2 * N)) == sorted(n for _, n in found)
    assert {0, 1, 2} == {partition for partition, _ in found}


@pytest.mark.parametrize("before", [True, False])
async def test_a_failure_arrives_as_itself_from_either_side(spark: Any, before: bool) -> None:
    def fail(n: int) -> float:
        return 1 / (n - 500)

    flow = numbers(spark, 2)
    with pytest.raises(ZeroDivisionError) as failed:
        await (flow.map(fail).repartition(2) if before else flow.repartition(2).map(fail)).count()

    assert any(note.startswith("in map(fail), chained at ") for note in failed.value.__notes__)


async def test_a_key_that_raises_is_named(spark: Any) -> None:
    with pytest.raises(ZeroDivisionError) as failed:
        await numbers(spark, 2).repartition(2, key=lambda n: 1 / n).to_list()

    assert any(note.startswith("in repartition(2, key=<lambda>), chained at ") for note in failed.value.__notes__)


def test_results_of_jobs_can_t_be_shuffled_and_the_frame_can(spark: Any) -> None:
    with pytest.raises(UnsupportedOnSparkError, match=r"repartition\(2\), chained at .*of the frame before from_spark"):
        numbers(spark, 2, wire="results").repartition(2)


async def test_behind_a_number_along_the_whole_stream_elements_stay_in_order(spark: Any) -> None:
    assert [(n, n) for n in range(N)] == await numbers(spark, 3).index().repartition(2).to_list()
