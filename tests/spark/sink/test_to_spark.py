"""A flow written by Spark: batches all or nothing, and none twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, SchemaMismatchError, SparkJobError
from tests.spark.tally import Tally

pytest.importorskip("pyspark")

from py4j.protocol import Py4JError

from reactive_aio.spark.sink import Batch, Committed, Files, Frames, Table
from tests.spark.jobs import active_jobs
from tests.spark.waiting import LIMIT, until

pytestmark = pytest.mark.spark


@attrs.frozen
class Reading:
    id: int
    name: str | None = None


def readings(n: int) -> Flow[Reading]:
    return Flow.range(n).map(lambda n: Reading(n, f"r{n}"))


def ids(spark: Any, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(path)).collect())


def nothing_left() -> bool:
    return not [thread for thread in threading.enumerate() if "reactive_aio-spark" in thread.name]


# -- the written batches, and the reports


@pytest.mark.parametrize("records", ["0", "-1", "2"])
async def test_batches_are_written_whatever_the_limit_of_records_of_the_session(
    spark: Any, tmp_path: Path, records: str
) -> None:
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    row = (1, "a", datetime(2024, 7, 1, 12), date(2024, 7, 1), Decimal("1.50"), [1, None], {"a": 1.5}, b"\x00")
    schema = "id int, name string, at timestamp, day date, price decimal(9,2), many array<int>, named map<string,double>, raw binary"
    before = spark.conf.get(setting)
    spark.conf.set(setting, records)
    try:
        await Flow.of(row, (None,) * len(row)).repeat(2).to_spark(Files(spark, tmp_path), schema, size=3)
    finally:
        spark.conf.set(setting, before)

    written = spark.read.parquet(str(tmp_path)).drop("batch").collect()
    assert sorted([row, (None,) * len(row)] * 2, key=str) == sorted(
        [tuple(each)[: len(row)] for each in written], key=str
    )


async def test_files_hold_the_elements_and_their_batches(spark: Any, tmp_path: Path) -> None:
    told: list[Committed] = []

    done = await readings(5).to_spark(Files(spark, tmp_path, run="a"), Reading, size=2, progress=told.append)

    assert Committed("a", batches=3, rows=5) == done
    assert [Committed("a", 1, 2), Committed("a", 2, 4), Committed("a", 3, 5)] == told
    rows = spark.read.parquet(str(tmp_path)).orderBy("id").collect()
    assert [(n, f"r{n}", f"a-0000000{n // 2}") for n in range(5)] == [tuple(row) for row in rows]
    assert nothing_left()


@pytest.mark.parametrize("parts", [1, 3, None])
async def test_a_flow_without_elements_writes_files_with_its_schema_once(
    spark: Any, tmp_path: Path, parts: int | None
) -> None:
    told: list[Committed] = []
    writer = Files(spark, tmp_path / "out", run="a", parts=parts)
    for _ in range(2):
        done = await readings(0).to_spark(writer, Reading, progress=told.append)
        assert Committed("a", 1, 0) == done

    assert [Committed("a", 1, 0)] == told
    read = spark.read.parquet(writer.path)
    assert ["id", "name", "batch"] == read.columns
    assert [] == read.collect()


async def test_a_run_without_elements_goes_on_when_it_has_some(spark: Any, tmp_path: Path) -> None:
    writer = Files(spark, tmp_path, run="a")
    await readings(0).to_spark(writer, Reading)
    done = await readings(3).to_spark(writer, Reading)

    assert Committed("a", 2, 3) == done
    assert [0, 1, 2] == sorted(row.id for row in spark.read.parquet(writer.path).collect())


async def test_a_flow_that_fails_before_its_first_element_writes_nothing(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none"):
        await Flow.error(ValueError("none")).to_spark(Files(spark, tmp_path / "out", run="a"), Reading)

    assert not (tmp_path / "out").exists()


async def test_a_text_for_a_schema_and_csv_for_a_format(spark: Any, tmp_path: Path) -> None:
    writer = Files(spark, tmp_path, run="a", format="csv", options={"header": "true"})
    await Flow.range(3).map(lambda n: {"n": n, "square": n * n}).to_spark(writer, "n int, square double")

    (part,) = tmp_path.glob("batch=*/*.csv")
    assert "n,square\n0,0.0\n1,1.0\n2,4.0\n" == part.read_text()


async def test_a_table_of_the_catalog(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE sink LOCATION '{tmp_path}/db'")
    try:
        writer = Table(spark, "sink.readings", run="a")
        assert Committed("a", 3, 5) == await readings(5).to_spark(writer, Reading, size=2)
        assert Committed("a", 4, 8) == await readings(8).to_spark(writer, Reading, size=3)  # goes on behind
        assert Committed("b", 1, 2) == await readings(2).to_spark(attrs.evolve(writer, run="b"), Reading)
        rows = spark.table("sink.readings").orderBy("batch", "id").collect()
        assert [*range(8), 0, 1] == [row.id for row in rows]

        batch = Batch("a", 3, 3, 5)  # a batch that is written again replaces itself
        writer.write(spark.createDataFrame([(9, "x")], "id long, name string"), batch)
        assert [0, 1, 2, 3, 4, 9] == [
            row.id for row in spark.table("sink.readings").where("batch < 'b'").orderBy("id").collect()
        ]

        with pytest.raises(
            ValueError, match=r"the table has columns id, name, batch, partitioned by batch\. It needs n"
        ):
            await Flow.range(1).to_spark(writer, "n long")
        begun = Flow.error(AssertionError("it is read already"))
        with pytest.raises(
            ValueError, match=r"types of the schema in those of the table: id is array<int> and not bigint$"
        ):
            await begun.to_spark(writer, "id array<int>, name string")
    finally:
        spark.sql("DROP DATABASE sink CASCADE")


async def test_several_runs_write_to_one_new_table_at_once(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE sink LOCATION '{tmp_path}/db'")
    try:
        writers = [Table(spark, "sink.readings", run=f"r{n}") for n in range(4)]
        writes = [readings(6).to_spark(writer, Reading, size=2) for writer in writers]
        assert [Committed(writer.run, 3, 6) for writer in writers] == await asyncio.gather(*writes)
        assert sorted([*range(6)] * 4) == sorted(row.id for row in spark.table("sink.readings").collect())
    finally:
        spark.sql("DROP DATABASE sink CASCADE")


async def test_a_function_is_given_frames_and_numbers(spark: Any) -> None:
    seen: list[tuple[int, list[int]]] = []

    def write(frame: Any, batch: int) -> None:
        seen.append((batch, [row.id for row in frame.collect()]))

    done = await readings(5).to_spark(Frames(spark, write), Reading, size=2)

    assert [(0, [0, 1]), (1, [2, 3]), (2, [4])] == seen
    assert (3, 5) == (done.batches, done.rows)


# -- demand


async def test_no_more_is_asked_for_than_the_batch_that_is_written(spark: Any) -> None:
    made = 0
    ahead: list[int] = []

    def numbers() -> Iterator[int]:
        nonlocal made
        for n in range(1, 11):
            made = n
            yield n

    await Flow.from_iterable(numbers()).to_spark(Frames(spark, lambda *_: ahead.append(made)), "n long", size=4)

    assert [4, 8, 10] == ahead


async def test_the_event_loop_goes_on_while_spark_writes(spark: Any) -> None:
    loop, writing, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    waited: list[bool] = []

    def write(*_: object) -> None:
        loop.call_soon_threadsafe(writing.set)
        waited.append(go_on.wait(LIMIT))

    end = asyncio.create_task(Flow.range(1).to_spark(Frames(spark, write), "n long"))
    await writing.wait()
    go_on.set()
    await end

    assert [True] == waited


# -- what does not fit


async def test_an_element_that_does_not_fit_is_named_before_anything_of_its_batch_is_written(
    spark: Any, tmp_path: Path
) -> None:
    wrong: Any = 5
    flow = Flow.range(9).map(lambda n: Reading(n, wrong if n == 7 else None))

    with pytest.raises(SchemaMismatchError, match="element #7, field name: 5 is not string") as caught:
        await flow.to_spark(Files(spark, tmp_path, run="a"), Reading, size=3)

    assert ["to_spark: 2 batches of run 'a' are committed, 6 rows"] == caught.value.__notes__
    assert [*range(6)] == ids(spark, tmp_path)
    assert {"batch=a-00000000", "batch=a-00000001"} == {path.name for path in tmp_path.iterdir()}


async def test_a_column_that_would_hide_the_batch_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Rename this column in the schema"):
        await Flow.range(1).to_spark(Files(spark, tmp_path), "Batch long")


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"writer": "out"}, TypeError, r"a writer of reactive_aio.spark.sink"),
        ({"schema": 5}, TypeError, "a schema is a text"),
        ({"schema": "n lng"}, ValueError, "schema='n lng'"),
        ({"size": 0}, ValueError, "size must be at least 1"),
        ({"offset": -1}, ValueError, "offset must be at least 0"),
        ({"max_retries": 1}, ValueError, "can't tell how much of a failed batch"),
        ({"progress": 5}, TypeError, "takes a function"),
    ],
)
async def test_bad_arguments_are_refused_before_the_flow_begins(
    spark: Any, arguments: dict[str, Any], error: type[Exception], told: str
) -> None:
    begun: list[int] = []
    flow = Flow.range(1).do_on_next(begun.append)

    with pytest.raises(error, match=told):
        await flow.to_spark(**{"writer": Frames(spark, print), "schema": "n long", **arguments})

    assert not begun


@pytest.mark.parametrize("run", ["", "a/b", "a=b", "a-", "a b"])
def test_a_run_is_named_by_what_a_path_may_hold(spark: Any, run: str) -> None:
    with pytest.raises(ValueError, match="a run name has letters"):
        Files(spark, "out", run=run)


@pytest.mark.parametrize("writer", [Files, Table])
def test_a_run_that_is_no_text_is_refused_by_its_name(spark: Any, writer: Any) -> None:
    with pytest.raises(TypeError, match=rf"{writer.__name__}\(run=7\): a run name is a text, not int"):
        writer(spark, "out", run=7)


# -- failures, and doing it again


@attrs.frozen
class Faulty(Files):
    """Files whose writing fails, once, ``when`` the second batch is written or has just been."""

    when: str = attrs.field(kw_only=True)
    left: list[int] = attrs.field(factory=lambda: [1], kw_only=True)

    def write(self, frame: Any, batch: Batch) -> None:
        fails = batch.id == 1 and self.left
        if fails and self.when == "before":
            self.left.pop()
            raise Py4JError("the disk is gone")
        if fails and self.when == "in the middle":
            self.left.pop()
            frame.write.parquet(f"{self.path}/_writing-{batch.name}")
            raise Py4JError("the disk is gone")
        super().write(frame, batch)
        if fails:
            self.left.pop()
            raise Py4JError("the answer was lost")


every_moment = pytest.mark.parametrize("when", ["before", "in the middle", "after"])


@every_moment
async def test_a_batch_that_fails_is_tried_again_and_doubles_nothing(spark: Any, tmp_path: Path, when: str) -> None:
    writer = Faulty(spark, tmp_path, run="a", when=when)

    assert Committed("a", 3, 5) == await readings(5).to_spark(writer, Reading, size=2, max_retries=1)

    assert not writer.left
    assert [*range(5)] == ids(spark, tmp_path)


async def test_a_run_that_failed_is_repeated_and_goes_on_behind_what_is_there(spark: Any, tmp_path: Path) -> None:
    writer = Faulty(spark, tmp_path, run="a", when="in the middle")
    with pytest.raises(SparkJobError, match=r"batch #1 was not written: the disk is gone") as caught:
        await readings(5).to_spark(writer, Reading, size=2)
    assert ["to_spark: 1 batches of run 'a' are committed, 2 rows"] == caught.value.__notes__
    assert [0, 1] == ids(spark, tmp_path)

    # In batches of another size, too: what counts is how many rows are there.
    assert Committed("a", 2, 5) == await readings(5).to_spark(Files(spark, tmp_path, run="a"), Reading, size=9)
    assert [*range(5)] == ids(spark, tmp_path)


async def test_a_source_that_can_seek_says_where_it_begins(spark: Any, tmp_path: Path) -> None:
    writer = Files(spark, tmp_path, run="a")
    done = await readings(4).to_spark(writer, Reading)

    rest = Flow.range(3, 9).map(Reading)  # begins at the third, which is there already
    assert Committed("a", 2, 9) == await rest.to_spark(writer, Reading, offset=3)
    assert [*range(9)] == ids(spark, tmp_path)

    with pytest.raises(ValueError, match="run 'a' has only 9 rows, so the rows between would be lost"):
        await rest.to_spark(writer, Reading, offset=done.rows + 6)


async def test_another_run_adds_to_the_same_folder(spark: Any, tmp_path: Path) -> None:
    for _ in range(2):
        await readings(2).to_spark(Files(spark, tmp_path), Reading)

    assert [0, 0, 1, 1] == ids(spark, tmp_path)


@pytest.mark.parametrize("kind", [KeyError, ConnectionError, FileNotFoundError])
async def test_what_a_function_raises_comes_as_it_is(spark: Any, kind: type[Exception]) -> None:
    def write(_: object, batch: int) -> None:
        if batch == 1:
            raise kind("no such customer")

    with pytest.raises(kind, match="no such customer") as caught:
        await readings(5).to_spark(Frames(spark, write, run="a"), Reading, size=2)

    assert ["to_spark: 1 batches of run 'a' are committed, 2 rows"] == caught.value.__notes__
    assert nothing_left()


async def test_the_failure_of_the_source_leaves_whole_batches(spark: Any, tmp_path: Path) -> None:
    flow = readings(5).map(lambda each: Reading(10 // (3 - each.id)))

    with pytest.raises(ZeroDivisionError) as caught:
        await flow.to_spark(Files(spark, tmp_path, run="a"), Reading, size=2)

    assert "to_spark: 1 batches of run 'a' are committed, 2 rows" in caught.value.__notes__
    assert [3, 5] == ids(spark, tmp_path)
    assert ["batch=a-00000000"] == [path.name for path in tmp_path.iterdir()]


async def test_cancelled_in_the_middle_of_a_batch_stops_its_job_and_commits_nothing_of_it(
    spark: Any, tmp_path: Path, tally: Tally
) -> None:
    count = tally.counting(lambda n: n)

    def slow(batches: Any) -> Iterator[Any]:
        for batch in batches:
            count(1)
            threading.Event().wait()
            yield batch

    class Slow(Files):
        def write(self, frame: Any, batch: Batch) -> None:
            super().write(frame.mapInArrow(slow, frame.schema) if batch.id else frame, batch)

    end = asyncio.create_task(readings(5).to_spark(Slow(spark, tmp_path, run="a"), Reading, size=2))
    await until(lambda: tally.count)
    assert ["batch=a-00000000"] == [path.name for path in tmp_path.glob("batch=*")]  # none that is only begun
    end.cancel()
    async with asyncio.timeout(LIMIT):
        with pytest.raises(asyncio.CancelledError) as caught:
            await end

    assert ["to_spark: 1 batches of run 'a' are committed, 2 rows"] == caught.value.__notes__
    assert [0, 1] == ids(spark, tmp_path)
    assert ["batch=a-00000000"] == [path.name for path in tmp_path.iterdir() if path.name != "tally"]
    assert not active_jobs(spark.sparkContext)
    assert nothing_left()


async def test_a_stop_iteration_of_a_function_is_a_failure_like_others(spark: Any) -> None:
    def stop(*_: object) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="progress raised StopIteration") as of_progress:
        await Flow.range(3).to_spark(Frames(spark, lambda *_: None, run="a"), "n long", progress=stop)
    with pytest.raises(RuntimeError, match="a function on Spark's thread raised StopIteration") as of_writing:
        await Flow.range(3).to_spark(Frames(spark, stop, run="b"), "n long")

    assert ["to_spark: 1 batches of run 'a' are committed, 3 rows"] == of_progress.value.__notes__
    assert ["to_spark: 0 batches of run 'b' are committed, 0 rows"] == of_writing.value.__notes__
