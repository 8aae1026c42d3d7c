"""A flow on Spark that is written by its tasks, as one job that is committed by one rename."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from reactive_aio import Flow, SparkJobError, UnsupportedOnSparkError

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Committed, Files, Frames, Table
from tests.spark.jobs import active_jobs
from tests.spark.stuck import Stuck
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, until

pytestmark = pytest.mark.spark

SCHEMA = "n long, part long"


def pairs(spark: Any, count: int = 6) -> Flow[tuple[int, int]]:
    return Flow.from_spark(spark.range(0, count, 1, 2), as_=tuple).map(lambda row: (row[0], row[0] % 2))


def whole(run: str, rows: int) -> Committed:
    return Committed(run, 1, rows, whole=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".crc")


def busy_tasks(sc: Any) -> int:
    """Count the tasks that run, of jobs that are over too."""
    count: int = sc._jsc.sc().statusStore().executorSummary("driver").activeTasks()
    return count


def numbers(frame: Any) -> list[int]:
    return sorted(int(row.n) for row in frame.collect())


@pytest.mark.parametrize("form", ["parquet", "orc", "json", "csv"])
async def test_the_tasks_write_any_format_of_files(spark: Any, tmp_path: Path, form: str) -> None:
    done = await pairs(spark).to_spark(Files(spark, tmp_path, format=form, run="a"), SCHEMA, size=None)

    assert whole("a", 6) == done
    assert done.written
    assert ["batch=a-all"] == names(tmp_path)
    assert [*range(6)] == numbers(spark.read.format(form).schema(f"{SCHEMA}, batch string").load(str(tmp_path)))


async def test_no_element_passes_through_this_process(spark: Any, tmp_path: Path) -> None:
    import os

    here = os.getpid()

    def elsewhere(n: tuple[int, int]) -> tuple[int, int]:
        assert here != os.getpid()
        return n

    written = pairs(spark).map(elsewhere).to_spark(Files(spark, tmp_path), SCHEMA, size=None)

    assert 6 == (await written).rows


async def test_each_task_writes_files_of_its_own(spark: Any, tmp_path: Path) -> None:
    await pairs(spark).to_spark(Files(spark, tmp_path, run="a"), SCHEMA, size=None)

    assert 2 == len(list(tmp_path.glob("*/part-*")))


async def test_columns_are_folders_by_partition_by(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, tmp_path, partition_by="part", run="a")

    assert whole("a", 6) == await pairs(spark).to_spark(files, SCHEMA, size=None)
    assert ["part=0", "part=1"] == [name for name in names(tmp_path / "batch=a-all") if name[0] != "_"]
    assert [1, 3, 5] == numbers(spark.read.parquet(str(tmp_path)).where("part = 1"))


async def test_options_go_to_the_format(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, tmp_path, format="csv", options={"header": "true", "sep": ";"})
    await pairs(spark).to_spark(files, SCHEMA, size=None)

    assert {"n;part"} == {path.read_text().splitlines()[0] for path in tmp_path.glob("*/part-*.csv")}


async def test_a_run_without_rows_is_committed_too(spark: Any, tmp_path: Path) -> None:
    def written() -> Any:
        files = Files(spark, tmp_path, partition_by=("part",), run="a")
        return pairs(spark).filter(lambda pair: False).to_spark(files, SCHEMA, size=None)

    assert whole("a", 0) == await written()
    assert not (await written()).written


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
async def test_a_run_that_is_repeated_writes_nothing_and_says_so(
    spark: Any, tmp_path: Path, tally: Tally, mode: str
) -> None:
    def written() -> Any:
        files = Files(spark, tmp_path / "out", run="a", mode=mode)
        return pairs(spark).map(tally.counting(tuple[int, ...])).to_spark(files, SCHEMA, size=None)

    first, again = await written(), await written()

    assert whole("a", 6) == first == again
    assert (True, False) == (first.written, again.written)
    assert 6 == tally.count
    assert [*range(6)] == numbers(spark.read.parquet(str(tmp_path / "out")))


async def other(spark: Any, folder: Path, run: str = "other") -> None:
    await pairs(spark, 2).to_spark(Files(spark, folder, run=run), SCHEMA, size=None)


async def test_append_adds_to_other_runs(spark: Any, tmp_path: Path) -> None:
    await other(spark, tmp_path)
    await pairs(spark).to_spark(Files(spark, tmp_path, run="a"), SCHEMA, size=None)

    assert [0, 0, 1, 1, 2, 3, 4, 5] == numbers(spark.read.parquet(str(tmp_path)))


async def test_overwrite_replaces_all_others_and_a_repeat_does_not_replace_later_ones(
    spark: Any, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path, run="a", mode="overwrite")
    await other(spark, tmp_path)
    await pairs(spark).to_spark(files, SCHEMA, size=None)
    assert ["batch=a-all"] == names(tmp_path)

    await other(spark, tmp_path)
    assert not (await pairs(spark).to_spark(files, SCHEMA, size=None)).written
    assert ["batch=a-all", "batch=other-all"] == names(tmp_path)


async def test_a_crash_behind_the_commit_leaves_what_is_replaced_to_the_repeat(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(spark, tmp_path, run="a", mode="overwrite")
    await other(spark, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Files, "finish", lambda self: (_ for _ in ()).throw(EOFError("crash")))
        with pytest.raises(EOFError, match="crash"):
            await pairs(spark).to_spark(files, SCHEMA, size=None)
    await other(spark, tmp_path, run="later")
    assert ["batch=a-all", "batch=later-all", "batch=other-all"] == names(tmp_path)

    assert not (await pairs(spark).to_spark(files, SCHEMA, size=None)).written
    assert ["batch=a-all", "batch=later-all"] == names(tmp_path)


async def test_error_and_ignore_leave_other_data_as_they_are(spark: Any, tmp_path: Path) -> None:
    await other(spark, tmp_path)
    with pytest.raises(FileExistsError, match="there are other data already, such as batch=other-all"):
        await pairs(spark).to_spark(Files(spark, tmp_path, mode="error"), SCHEMA, size=None)
    ignored = await pairs(spark).to_spark(Files(spark, tmp_path, run="a", mode="ignore"), SCHEMA, size=None)

    assert Committed("a", 0, 0, whole=True) == ignored
    assert not ignored.written
    assert ["batch=other-all"] == names(tmp_path)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
async def test_a_run_that_fails_leaves_the_folder_as_it_was(spark: Any, tmp_path: Path, mode: str) -> None:
    def fail(pair: tuple[int, int]) -> tuple[int, int]:
        if pair[0] == 4:
            raise ValueError("no four")
        return pair

    await other(spark, tmp_path)
    line = sys._getframe().f_lineno + 1
    failing = pairs(spark).map(fail)
    with pytest.raises(SparkJobError, match=r"run 'a' was not written to its end.*ValueError: no four") as raised:
        await failing.to_spark(Files(spark, tmp_path, run="a", mode=mode), SCHEMA, size=None)

    assert f"in map(fail), chained at {__file__}:{line}, on element #1 of partition 1" in raised.value.__notes__[0]
    assert "to_spark: the same run again writes all of it, or finds it written" == raised.value.__notes__[-1]
    assert ["batch=other-all"] == names(tmp_path)
    assert (await pairs(spark).to_spark(Files(spark, tmp_path, run="a", mode=mode), SCHEMA, size=None)).written


def group(_: object) -> None:
    raise ExceptionGroup("several", [ValueError("no four"), ExceptionGroup("more", [KeyError("four")])])


def group_that_is_large(_: object) -> None:
    raise ExceptionGroup("several", [ValueError(token_hex(10_000)), KeyError("four")])


def in_lines(_: object) -> None:
    raise ValueError("no four\n  of these\n\nand no five")


@pytest.mark.parametrize(
    ("fail", "told"),
    [
        (group, "ExceptionGroup: several (2 sub-exceptions)"),
        (group_that_is_large, "ExceptionGroup: several (2 sub-exceptions)"),
        (in_lines, "ValueError: no four\n  of these\n\nand no five"),
    ],
)
async def test_an_exception_of_any_form_is_told_with_its_place(
    spark: Any, tmp_path: Path, fail: Callable[[object], None], told: str
) -> None:
    with pytest.raises(SparkJobError) as raised:
        await pairs(spark).map(fail).to_spark(Files(spark, tmp_path), SCHEMA, size=None)

    assert f"An exception was thrown from the Python worker: {told}" in str(raised.value)
    assert raised.value.__notes__[0].startswith(f"in map({fail.__name__}), chained at {__file__}")


async def test_a_task_that_outlives_the_failure_of_another_leaves_no_folder(spark: Any, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def write_late(pair: tuple[int, int]) -> tuple[int, int]:
        if pair[0]:
            begun.touch()
            while [*tmp_path.glob("_writing-*/_temporary")]:  # until Spark has cleaned up behind the failure
                pass
            end = time.monotonic() + 1
            while [*tmp_path.glob("_writing-*")] and time.monotonic() < end:
                pass
            return pair
        while not begun.exists():
            pass
        raise ValueError("first")

    late = pairs(spark, 2).map(write_late)
    with pytest.raises(SparkJobError, match="first"):
        await late.to_spark(Files(spark, tmp_path), SCHEMA, size=None)
    await until(lambda: not busy_tasks(spark.sparkContext))

    assert ["begun"] == names(tmp_path)


async def test_cancelled_in_the_middle_it_stops_the_job_and_readers_have_seen_nothing(
    spark: Any, tmp_path: Path
) -> None:
    stuck, folder = Stuck(tmp_path / "stuck"), tmp_path / "out"
    flow = pairs(spark).map(stuck.function())
    end = asyncio.create_task(flow.to_spark(Files(spark, folder), SCHEMA, size=None))
    await stuck.begun()
    begun = names(folder)
    end.cancel()
    async with asyncio.timeout(LIMIT):
        with pytest.raises(asyncio.CancelledError):
            await end

    assert ["_writing-"] == [name[:9] for name in begun]
    assert [] == names(folder)
    assert not active_jobs(spark.sparkContext)


async def test_an_element_that_does_not_fit_is_told_by_place_and_column(spark: Any, tmp_path: Path) -> None:
    misfits = pairs(spark).map(lambda pair: (pair[0], "one"))
    with pytest.raises(SparkJobError, match="SchemaMismatchError: element #0, field part: 'one' is not bigint"):
        await misfits.to_spark(Files(spark, tmp_path), SCHEMA, size=None)

    assert [] == names(tmp_path)


async def test_the_leftover_of_a_crash_goes_with_the_commit_of_its_run(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "_writing-a-all-dead").mkdir()
    others = [f"_writing-{run}-alive" for run in ("a-all-00000000", "a-all-all", "b-all")]
    for name in others:  # of the runs a-all, in batches and whole, and b
        (tmp_path / name).mkdir()
    await pairs(spark).to_spark(Files(spark, tmp_path, run="a", mode="error"), SCHEMA, size=None)

    assert [*others, "batch=a-all"] == names(tmp_path)


@pytest.mark.parametrize("schema", ["n lnog", "n long, n long", "long"])
async def test_a_wrong_schema_is_refused_by_the_method_that_was_called(spark: Any, tmp_path: Path, schema: str) -> None:
    with pytest.raises(ValueError, match=r"^to_spark\(schema="):
        await pairs(spark).to_spark(Files(spark, tmp_path), schema, size=None)


async def test_of_two_that_overwrite_a_folder_at_once_one_replaces_the_other(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, others = Barrier(2), Files._others

    def others_at_once(writer: Files) -> list[str]:
        found = others(writer)
        with suppress(BrokenBarrierError):  # as the other one waits for its turn
            looked.wait(0.5)
        return found

    monkeypatch.setattr(Files, "_others", others_at_once)
    await pairs(spark).to_spark(Files(spark, tmp_path, run="old"), SCHEMA, size=None)
    runs = [Files(spark, tmp_path, run=run, mode="overwrite") for run in ("a", "b")]
    done = await asyncio.gather(*[pairs(spark, 4).to_spark(run, SCHEMA, size=None) for run in runs])

    assert [whole("a", 4), whole("b", 4)] == done
    assert names(tmp_path) in (["batch=a-all"], ["batch=b-all"])


async def test_two_at_the_same_run_write_it_once(spark: Any, tmp_path: Path) -> None:
    def written() -> Any:
        return pairs(spark).to_spark(Files(spark, tmp_path, run="a"), SCHEMA, size=None)

    for ended in await asyncio.gather(written(), written(), return_exceptions=True):
        assert ended == whole("a", 6) or isinstance(ended, SparkJobError), ended
    assert [*range(6)] == numbers(spark.read.parquet(str(tmp_path)))
    assert ["batch=a-all"] == names(tmp_path)


async def test_keyed_work_is_written_by_its_tasks(spark: Any, tmp_path: Path) -> None:
    counts = pairs(spark).group_by_key(lambda pair: pair[1]).count()
    done = await counts.to_spark(Files(spark, tmp_path), "part long, n long", size=None)

    assert 2 == done.rows
    assert [3, 3] == numbers(spark.read.parquet(str(tmp_path)))


async def test_any_n_elements_are_as_many_rows(spark: Any, tmp_path: Path) -> None:
    some = Flow.from_spark(spark.range(9), as_=tuple, ordered=False).map(lambda row: row[0]).take(4)

    assert 4 == (await some.to_spark(Files(spark, tmp_path), "n long", size=None)).rows


async def test_what_a_frame_cannot_run_is_refused_before_any_job(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "new")
    for flow in (pairs(spark).index(), Flow.range(3), pairs(spark).delay(1)):
        with pytest.raises(UnsupportedOnSparkError) as raised:
            await flow.to_spark(files, SCHEMA, size=None)
        assert "to_spark(size=None) writes what to_frame() gives" in raised.value.__notes__[-1]
    assert not (tmp_path / "new").exists()


async def test_a_table_has_the_run_as_a_partition(spark: Any) -> None:
    def written() -> Any:
        return pairs(spark).to_spark(Table(spark, "written_whole", run="a"), SCHEMA, size=None)

    try:
        first, again = await written(), await written()
        assert whole("a", 6) == first == again
        assert (True, False) == (first.written, again.written)
        assert {"a-all"} == {row.batch for row in spark.table("written_whole").collect()}
    finally:
        spark.sql("DROP TABLE IF EXISTS written_whole")


async def test_several_at_the_same_run_of_a_table_write_it_once_and_all_tell_its_rows(spark: Any) -> None:
    def written() -> Any:
        return pairs(spark).to_spark(Table(spark, "written_at_once", run="a"), SCHEMA, size=None)

    try:
        done = await asyncio.gather(written(), written(), written())
        assert [whole("a", 6)] * 3 == list(done)
        assert 1 == sum(each.written for each in done)
        assert 6 == spark.table("written_at_once").count()
    finally:
        spark.sql("DROP TABLE IF EXISTS written_at_once")


async def test_a_function_of_frames_is_given_the_whole_frame(spark: Any, tmp_path: Path) -> None:
    def write(frame: Any, number: int) -> None:
        frame.write.json(str(tmp_path / str(number)))

    assert whole("a", 6) == await pairs(spark).to_spark(Frames(spark, write, run="a"), SCHEMA, size=None)
    assert [*range(6)] == numbers(spark.read.json(str(tmp_path / "0")))


async def test_frames_write_to_a_database(spark: Any) -> None:
    """Derby comes with Spark. A task has a transaction of its own, so a run that fails may have written a part."""
    url, driver = "jdbc:derby:memory:whole;create=true", {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}

    def writing(mode: str) -> Frames:
        return Frames(
            spark, lambda frame, number: frame.write.jdbc(url, "pairs", mode=mode, properties=driver), run="a"
        )

    def found() -> list[int]:
        return sorted(row.n for row in spark.read.jdbc(url, "pairs", properties=driver).collect())

    for mode in ("append", "overwrite"):
        assert whole("a", 6) == await pairs(spark).to_spark(writing(mode), SCHEMA, size=None)
        assert [*range(6)] == found()
    assert (await pairs(spark).to_spark(writing("append"), SCHEMA, size=None)).written
    assert 12 == len(found())
    with pytest.raises(SparkJobError, match="already exists") as raised:
        await pairs(spark).to_spark(writing("error"), SCHEMA, size=None)
    assert ["to_spark: this writer can't tell how much of the run it has written"] == raised.value.__notes__


def unless_empty(frame: Any) -> None:
    if not frame.isEmpty():
        noop(frame)


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def twice(frame: Any) -> None:
    frame.limit(3).collect()
    noop(frame)
    assert [0, 1] == numbers(frame.limit(2))


def cached(frame: Any) -> None:
    noop(frame.persist())
    frame.count()
    frame.unpersist()


@pytest.mark.parametrize(
    "evaluate",
    [
        noop,
        unless_empty,
        twice,
        cached,
        lambda frame: frame.foreachPartition(list),
        lambda frame: frame.rdd.count(),
        lambda frame: noop(frame.coalesce(1)),
        lambda frame: noop(frame.repartition(5)),
        lambda frame: noop(frame.where("n > 4")),
        lambda frame: frame.groupBy("part").count().collect(),
        lambda frame: [*frame.toLocalIterator()],
    ],
    ids=[
        "write",
        "empty",
        "twice",
        "cached",
        "foreach",
        "rdd",
        "coalesce",
        "repartition",
        "where",
        "group",
        "iterator",
    ],
)
async def test_rows_are_those_of_the_frame_by_whatever_action(spark: Any, evaluate: Callable[[Any], object]) -> None:
    done = await pairs(spark).to_spark(Frames(spark, lambda frame, _: evaluate(frame), run="a"), SCHEMA, size=None)

    assert (whole("a", 6), True) == (done, done.written)


async def test_rows_of_a_repeated_task_count_once(spark: Any, tmp_path: Path) -> None:
    failed = tmp_path / "failed"

    def fail_once(pair: tuple[int, int]) -> tuple[int, int]:
        if pair[0] == 5 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return pair

    flow = pairs(spark).map(fail_once)
    assert 6 == (await flow.to_spark(Frames(spark, lambda frame, _: noop(frame)), SCHEMA, size=None)).rows
    assert failed.exists()


@pytest.mark.parametrize(("count", "rows"), [(0, 0), (1, 0), (6, 6)])
async def test_a_partition_counts_if_it_is_read_to_its_end(spark: Any, count: int, rows: int) -> None:
    done = await pairs(spark).to_spark(Frames(spark, lambda frame, _: frame.take(count)), SCHEMA, size=None)

    assert (rows, count > 0) == (done.rows, done.written)


async def test_a_frame_that_a_function_leaves_alone_is_not_written(spark: Any) -> None:
    done = await pairs(spark).to_spark(Frames(spark, lambda frame, number: None, run="a"), SCHEMA, size=None)

    assert (Committed("a", 0, 0, whole=True), False) == (done, done.written)


@pytest.mark.parametrize("kind", [LookupError, OSError, TimeoutError])
async def test_what_a_function_of_frames_raises_comes_as_it_is(spark: Any, kind: type[Exception]) -> None:
    def fail(frame: Any, number: int) -> None:
        raise kind("no place")

    with pytest.raises(kind, match="no place"):
        await pairs(spark).to_spark(Frames(spark, fail), SCHEMA, size=None)


async def test_a_run_is_repeated_as_it_was_written(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, tmp_path, run="a")
    await pairs(spark).to_spark(files, SCHEMA, size=None)
    with pytest.raises(ValueError, match="run 'a' was written in one job, with size=None"):
        await pairs(spark).to_spark(files, SCHEMA)
    batches = Files(spark, tmp_path, run="b")
    await pairs(spark).to_spark(batches, SCHEMA)
    with pytest.raises(ValueError, match="run 'b' was written in batches, with a size") as refused:
        await pairs(spark).to_spark(batches, SCHEMA, size=None)
    assert "the same run again" not in "".join(getattr(refused.value, "__notes__", []))


async def test_what_makes_no_sense_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Files\(mode='replace'\): mode is one of append, overwrite, error, ignore"):
        Files(spark, tmp_path, mode="replace")
    with pytest.raises(ValueError, match="the schema has no column day") as refused:
        await pairs(spark).to_spark(Files(spark, tmp_path, partition_by=["day"]), SCHEMA, size=None)
    assert "the same run again" not in "".join(getattr(refused.value, "__notes__", []))
    with pytest.raises(ValueError, match="seconds, offset and max_retries need a size"):
        await pairs(spark).to_spark(Files(spark, tmp_path), SCHEMA, size=None, offset=1)
    with pytest.raises(ValueError, match=r"its mode is 'append'\. Set size=None for others"):
        await pairs(spark).to_spark(Files(spark, tmp_path, mode="overwrite"), SCHEMA)


def test_frames_of_spark_connect_are_refused_where_rows_are_counted(spark: Any) -> None:
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(UnsupportedOnSparkError, match="counts rows by a classic session when size=None"):
        Frames(spark, print).write_whole(remote)


async def test_progress_is_told_once(spark: Any, tmp_path: Path) -> None:
    told: list[Committed] = []
    await pairs(spark).to_spark(Files(spark, tmp_path, run="a"), SCHEMA, size=None, progress=told.append)

    assert [whole("a", 6)] == told
