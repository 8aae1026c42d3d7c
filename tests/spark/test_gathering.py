"""Small partitions that are read by fewer tasks: in their order, by exact demand, and each once."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from tests.spark.tally import Tally
from tests.spark.waiting import only_task, until
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio._remote.frames import LAST, Frame
from reactive_aio.spark._delivery import gathering
from reactive_aio.spark._delivery.at_end import DeliveryAtEnd
from reactive_aio.spark._delivery.delivery import Delivery
from reactive_aio.spark._delivery.gathering import LONG_ENOUGH, MOST, MOST_GROUPS, fitting, groups
from reactive_aio.spark._delivery.in_turn import DeliveryInTurn
from reactive_aio.spark._delivery.ordered import OrderedDelivery
from reactive_aio.spark._delivery.unordered import UnorderedDelivery
from tests.spark.jobs import jobs_begun
from tests.spark.test_delivery import Loop, Task

KINDS = [OrderedDelivery, UnorderedDelivery, DeliveryInTurn, DeliveryAtEnd]
MANY = 80
"""Partitions, each of three rows."""


# -- played by hand


class Gathering(Loop):
    """A loop whose job makes ready whatever groups it is asked for, when the test says so."""

    def __init__(self, kind: type[Delivery] = OrderedDelivery, *, partitions: int = 40, **options: Any) -> None:
        self.sizes: dict[int, int] = {}
        self.asked_for: list[range] | None = None
        super().__init__(kind, partitions=0, **options)
        self.ended = self.delivery.over = False
        self.delivery.begin(partitions, options.get("slots", 3), gathers=True)

    def gather(self, first: int, groups: Sequence[range]) -> None:
        assert self.asked_for is None
        assert first == self.delivery.asked
        self.asked_for = list(groups)
        self.sizes = {start: size for start, size in self.sizes.items() if start < first}

    def ready(self, *, possible: bool = True) -> list[range]:
        assert self.asked_for is not None
        made, self.asked_for = self.asked_for, None
        self.sizes |= {group.start: len(group) for group in made} if possible else {}
        self.delivery.gathered(made if possible else None)
        return made


def confirm(loop: Loop, task: Task, seconds: float = 0, passed: int = 0) -> None:
    loop.delivery.ended(task.link, Frame(LAST, task.partition, int(1e6 * seconds), passed))
    loop.delivery.confirmed(task.partition)


def test_next_tasks_read_several_partitions_where_one_took_next_to_no_time() -> None:
    loop = Gathering(slots=3)
    first, _ = Task(loop, 0), Task(loop, 1)
    confirm(loop, first)
    assert [0, 1] == loop.running  # the third waits until it is known what it reads

    assert [range(2, 11), range(11, 20), range(20, 29), range(29, 38), range(38, 40)] == loop.ready()

    assert [0, 1, 2] == loop.running
    Task(loop, 2)
    confirm(loop, Task(loop, 1), LONG_ENOUGH)
    loop.ready()  # a partition as slow as this has a task of its own
    assert [0, 1, 2, 11] == loop.running


def test_partitions_that_took_long_are_read_by_a_task_each() -> None:
    loop = Gathering()
    confirm(loop, Task(loop, 0), LONG_ENOUGH)

    assert loop.asked_for is None
    assert [0, 1] == loop.running


def test_partitions_are_read_by_a_task_each_where_no_others_can_be_made_ready() -> None:
    loop = Gathering()
    confirm(loop, Task(loop, 0))
    loop.ready(possible=False)
    confirm(loop, Task(loop, 1))

    assert loop.asked_for is None
    assert [0, 1, 2] == loop.running


def test_each_of_those_side_by_side_gets_several_tasks() -> None:
    assert 5 == fitting(0, 1, left=40, side_by_side=4)
    assert MOST == fitting(0, 1, left=100_000, side_by_side=4)
    assert 1 == fitting(0, 1, left=3, side_by_side=4)
    assert 50 == fitting(2 * LONG_ENOUGH, 100, left=100_000, side_by_side=1)


def test_no_more_groups_are_made_ready_than_the_jvm_is_asked_for_at_a_time() -> None:
    found = groups(3, 100_000, 5)

    assert MOST_GROUPS == len(found)
    assert [*range(3, 3 + 5 * MOST_GROUPS)] == [number for group in found for number in group]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_each_partition_is_read_once_whatever_is_gathered_when(kind: type[Delivery], seed: int) -> None:
    chance = random.Random(seed)
    partitions, slots = chance.randrange(1, 120), chance.randrange(1, 9)
    loop = Gathering(kind, partitions=partitions, slots=slots, prefetch=chance.choice([8, 64, 4096]))
    elements = {number: [f"{number}.{at}" for at in range(chance.randrange(3))] for number in range(partitions)}
    tasks: dict[int, Task] = {}
    left: dict[int, list[str]] = {}

    for _ in range(100_000):
        if loop.ended:
            break
        if loop.asked_for is not None and chance.random() < 0.4:
            loop.ready(possible=chance.random() < 0.95)
        for number in loop.running:
            if number not in tasks:
                size = loop.sizes.get(number, 1)
                left[number] = [each for at in range(number, number + size) for each in elements[at]]
                tasks[number] = Task(loop, number)
        number = chance.choice([number for number, task in tasks.items() if not task.stopped or left[number]] or [0])
        task, wanted = tasks[number], left[number]
        if task.skip is not None and task.granted and wanted:
            task.send(wanted.pop(0))
            loop.delivery.request(1)
        elif task.skip is not None and not wanted and not task.stopped:
            task.stopped = True
            confirm(loop, task, chance.choice([0, 0.01, 0.1, LONG_ENOUGH]))

    expected = [each for number in range(partitions) for each in elements[number]]
    assert loop.ended
    assert loop.error is None
    assert expected == (
        loop.items if loop.delivery.__class__ is not UnorderedDelivery else sorted(loop.items, key=_place)
    )
    assert all(partition.over for partition in loop.delivery.partitions)


def _place(element: str) -> tuple[int, ...]:
    return tuple(map(int, element.split(".")))


# -- on Spark


def plain(spark: Any) -> Any:
    return spark.range(0, 3 * MANY, 1, MANY)


def cached(spark: Any) -> Any:
    frame = plain(spark).cache()
    assert 3 * MANY == frame.count()
    return frame


def shuffled(spark: Any) -> Any:
    return spark.range(0, 3 * MANY, 1, 2).repartition(MANY)


def united(spark: Any) -> Any:
    """Of its partitions, Spark knows for some on which machine they lie."""
    return spark.range(0, 10, 1, 30).unionAll(cached(spark)).unionAll(spark.range(5))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks gathered whatever they take, on a busy machine too."""
    monkeypatch.setattr(gathering, "LONG_ENOUGH", 1_000)


FRAMES = [plain, cached, shuffled, united]


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("make", FRAMES)
async def test_small_partitions_come_in_order_by_a_few_jobs(spark: Any, sc: Any, make: Callable[[Any], Any]) -> None:
    frame = make(spark).selectExpr("id", "spark_partition_id()", "monotonically_increasing_id()", "rand(3)")
    expected = [tuple(row) for row in frame.collect()]
    before = jobs_begun(sc)

    found = await Flow.from_spark(frame, as_=tuple).to_list()

    begun = jobs_begun(sc) - before
    spark.catalog.clearCache()
    assert expected == found
    assert begun < MANY // 2


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
async def test_small_partitions_of_a_plan_that_spark_may_not_adapt_come_in_order(spark: Any, sc: Any) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        frame = shuffled(spark)
        expected = [row.id for row in frame.collect()]
        before = jobs_begun(sc)

        assert expected == [n for (n,) in await Flow.from_spark(frame, as_=tuple).to_list()]
        assert jobs_begun(sc) - before < MANY // 2
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
async def test_partitions_with_tables_that_a_task_keeps_are_read_by_a_task_each(spark: Any, sc: Any) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", str(MANY))
    ids = spark.range(3 * MANY).selectExpr("id", "cast(id AS string) AS name")
    joined = ids.join(ids.select("id").hint("shuffle_hash"), "id")
    before = jobs_begun(sc)
    try:
        rows = await Flow.from_spark(joined, as_=tuple, ordered=False).to_list()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.unset("spark.sql.shuffle.partitions")

    assert {(n, str(n)) for n in range(3 * MANY)} == set(rows)
    assert len(rows) == 3 * MANY
    assert jobs_begun(sc) - before >= MANY


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("ordered", [True, False])
async def test_stages_of_all_kinds_run_over_small_partitions(spark: Any, ordered: bool) -> None:
    flow = Flow.from_spark(plain(spark), as_=tuple, ordered=ordered).map(lambda row: row[0]).filter(lambda n: n % 2)

    expected = range(1, 3 * MANY, 2)
    assert [*expected] == sorted(await flow.to_list())
    assert sum(expected) == await flow.sum()
    if ordered:
        assert [*enumerate(expected)] == await flow.index().map(lambda pair: (pair[0], pair[1])).to_list()
        assert [*expected][:50] == await flow.take(50).to_list()


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
async def test_no_more_rows_of_small_partitions_are_read_than_requested_and_prefetched(
    spark: Any, sc: Any, tally: Tally
) -> None:
    recorder = Recorder(request=3 * MANY // 2)
    count = tally.counting(lambda row: row[0])
    Flow.from_spark(plain(spark), as_=tuple, prefetch=16).map(count).subscribe(recorder)
    await until(lambda: len(recorder.items) == 3 * MANY // 2)

    assert [*range(3 * MANY // 2)] == recorder.items
    assert 0 <= tally.count - len(recorder.items) <= 16

    recorder.cancel()
    await until(only_task)
    assert tally.count - len(recorder.items) <= 16


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
async def test_a_killed_worker_loses_no_row_of_its_partitions(spark: Any, tmp_path: Path) -> None:
    path, last = str(tmp_path / "killed"), 3 * MANY - 10

    def kill_once(row: Any) -> int:
        number: int = row[0]
        if number == last and not os.path.exists(path):
            with open(path, "w"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    found = await Flow.from_spark(plain(spark), as_=tuple, prefetch=16).map(kill_once).to_list()

    assert os.path.exists(path)
    assert [*range(3 * MANY)] == found


def by_key(flow: Flow[Any]) -> Flow[Any]:
    return flow.group_by_key(lambda row: row[0] // 2).map(lambda row: row[0]).top_k(2).pairs()


def kept_apart(flow: Flow[Any]) -> Flow[Any]:
    return flow.repartition(MANY).map(lambda row: (row[0], [row[0]]))


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("work", [by_key, kept_apart])
async def test_small_partitions_of_a_shuffle_of_elements_are_read_by_a_few_jobs(
    spark: Any, sc: Any, work: Callable[[Flow[Any]], Flow[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", str(MANY))
    try:
        flow = work(Flow.from_spark(plain(spark), as_=tuple))
        before = jobs_begun(sc)
        found = await flow.to_list()
        begun = jobs_begun(sc) - before
        monkeypatch.setattr(gathering, "LONG_ENOUGH", 0)
        by_one_each = await flow.to_list()
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
        spark.conf.set("spark.sql.adaptive.enabled", "true")

    assert by_one_each == found
    assert [*range(3 * MANY)] == sorted(n for _, some in found for n in some)
    assert begun < MANY // 2


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
async def test_a_sum_is_that_of_the_partitions_and_a_count_of_what_was_gathered(spark: Any, sc: Any) -> None:
    """How floats are added up must not depend on how long a task took."""
    flow = Flow.from_spark(plain(spark), as_=tuple).map(lambda row: row[0] / 7)
    sums = [sum(n / 7 for n in range(at, at + 3)) for at in range(0, 3 * MANY, 3)]
    before = jobs_begun(sc)
    assert sum(sums) == await flow.sum()
    assert MANY == jobs_begun(sc) - before

    before = jobs_begun(sc)
    assert 3 * MANY == await flow.count()
    assert jobs_begun(sc) - before < MANY // 2


@pytest.mark.spark
@pytest.mark.usefixtures("patient")
async def test_a_failure_says_which_partitions_its_task_read(spark: Any) -> None:
    last = 3 * MANY - 10

    def fail(row: Any) -> Any:
        if row[0] == last:
            raise ValueError("the row of a test")
        return row[0]

    found: list[int] = []
    with pytest.raises(ValueError, match="the row of a test") as raised:
        await Flow.from_spark(plain(spark), as_=tuple).map(fail).for_each(found.append)

    assert [*range(last)] == found
    assert any("partitions" in note and " to " in note for note in raised.value.__notes__)
