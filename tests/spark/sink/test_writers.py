"""Writers refuse some calls, and two writers of one run do not disturb each other."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, SparkJobError

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Batch, Committed, Files, Frames, Table

pytestmark = pytest.mark.spark


async def test_a_function_that_nobody_would_await_is_refused(spark: Any) -> None:
    async def write(frame: Any, batch: int) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="fn must be an ordinary function"):
        Frames(spark, write)


@pytest.mark.parametrize("writer", [Files, Table, Frames])
async def test_a_writer_takes_nothing_for_a_session_that_is_none(writer: Any) -> None:
    for other in (None, "spark", Files):
        with pytest.raises(TypeError, match=rf"^{writer.__name__}\(\) takes a session of PySpark, not"):
            writer(other, "a place")


HALF = "\udcff"
"""Half a character, as in the name of a file that has no UTF-8."""


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("path", lambda spark: Files(spark, HALF)),
        ("format", lambda spark: Files(spark, "out", format=HALF)),
        ("options", lambda spark: Files(spark, "out", options={"lineSep": HALF})),
        ("options", lambda spark: Files(spark, "out", options={HALF: "1"})),
        ("table", lambda spark: Table(spark, HALF)),
        ("schema", lambda spark: Flow.range(3).run_sync(lambda flow: flow.to_spark(Frames(spark, print), HALF))),
        ("schema", lambda spark: Flow.from_spark(spark.range(3)).to_frame(HALF)),
    ],
)
def test_half_a_character_is_refused_before_it_breaks_the_connection_to_spark(spark: Any, name: str, use: Any) -> None:
    with pytest.raises(ValueError, match=rf"\({name}='.*\\udcff.*'\): {name} has no UTF-8: surrogates not allowed"):
        use(spark)


class InBytes:
    """A path object whose path is not text."""

    def __fspath__(self) -> bytes:
        return b"readings"

    def __repr__(self) -> str:
        return "InBytes()"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": None},
        {"path": b"readings"},
        {"path": InBytes()},
        {"format": None},
        {"options": "gzip"},
        {"options": {1: "gzip"}},
        {"partition_by": None},
        {"partition_by": 3},
        {"partition_by": [3]},
    ],
    ids=str,
)
async def test_files_refuse_an_argument_of_another_type_by_its_name(spark: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=rf"^Files\({next(iter(arguments))}="):
        Files(spark, **{"path": "readings", **arguments})


async def test_the_name_of_a_table_is_a_text(spark: Any) -> None:
    other: Any = None
    with pytest.raises(TypeError, match=r"^Table\(table=None\)"):
        Table(spark, other)
    with pytest.raises(ValueError, match=r"^Table\(table=' '\)"):
        Table(spark, " ")


async def test_folders_for_a_column_that_is_named_twice_are_refused(spark: Any) -> None:
    with pytest.raises(ValueError, match="a column is named twice"):
        Files(spark, "readings", partition_by=["a", "a"])


@pytest.mark.parametrize("size", [2, None])
async def test_folders_for_all_columns_are_refused_before_the_flow_begins(
    spark: Any, tmp_path: Path, size: int | None
) -> None:
    flow = Flow.error(AssertionError()) if size else Flow.from_spark(spark.range(1), as_=tuple)
    with pytest.raises(ValueError, match="these are all columns of the schema"):
        await flow.to_spark(Files(spark, tmp_path, partition_by=["b", "a"]), "a long, b long", size=size)


@pytest.mark.parametrize("run", ["1e", "2024E", "1.5e"])
async def test_a_run_whose_batches_spark_would_read_as_numbers_is_refused(spark: Any, run: str) -> None:
    with pytest.raises(ValueError, match="Begin the name with a letter"):
        Files(spark, "readings", run=run)


async def test_a_run_whose_name_is_too_long_for_a_folder_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"run='rrrrrrrrrrrrrrrrrrrr…'\): a run name has 200 characters at most, not 201"
    ):
        Files(spark, tmp_path, run="r" * 201)
    done = await Flow.range(3).to_spark(Files(spark, tmp_path, run="r" * 200), "id long")

    assert 3 == done.rows


@pytest.mark.parametrize("run", [".", "..", "..."])
async def test_a_run_named_like_a_folder_above_stays_in_its_own(spark: Any, tmp_path: Path, run: str) -> None:
    writer = Files(spark, tmp_path / "out", run=run)
    await Flow.range(3).to_spark(writer, "id long")

    assert [tmp_path / "out"] == [*tmp_path.iterdir()]
    assert {f"{run}-00000000"} == {row.batch for row in spark.read.parquet(writer.path).collect()}


@pytest.mark.parametrize("run", ["", "a/b", "a\0b", "a\n", " a", "-a"])
async def test_a_run_whose_name_is_no_name_of_a_folder_is_refused(spark: Any, run: str) -> None:
    with pytest.raises(ValueError, match="a run name has letters and digits"):
        Files(spark, "readings", run=run)


async def test_the_name_of_a_run_without_one_is_read_as_a_text(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda size: "1234567e")
    done = await Flow.range(3).to_spark(Files(spark, tmp_path), "id long")

    rows = spark.read.parquet(str(tmp_path)).collect()
    assert {f"{done.run}-00000000"} == {row.batch for row in rows}


async def test_two_writers_of_a_run_never_mix_their_rows(spark: Any, tmp_path: Path) -> None:
    """The writer that renames its batch first has written it. The other one finds the batch there, or fails."""

    def written() -> Any:
        return Flow.range(6).to_spark(Files(spark, tmp_path, run="a"), "id long", size=2)

    for ended in await asyncio.gather(written(), written(), written(), return_exceptions=True):
        assert ended == Committed("a", 3, 6) or isinstance(ended, SparkJobError), ended

    rows = sorted(row.id for row in spark.read.parquet(str(tmp_path)).collect())
    assert [*range(len(rows))] == rows
    assert await written() == Committed("a", 3, 6)
    assert 6 == spark.read.parquet(str(tmp_path)).count()
    assert {f"batch=a-0000000{n}" for n in range(3)} == {path.name for path in tmp_path.iterdir()}


async def test_a_batch_of_another_writer_is_not_taken_for_ones_own(spark: Any, tmp_path: Path) -> None:
    """It has another number of rows, so what comes behind it would be lost."""
    writer, three = Files(spark, tmp_path, run="a"), spark.range(3)

    class Late(Files):
        def write(self, frame: Any, batch: Batch) -> None:
            writer.write(three, Batch("a", 0, 3, 0))
            super().write(frame, batch)

    with pytest.raises(SparkJobError, match="batch #0 was not written"):
        await Flow.range(6).to_spark(Late(spark, tmp_path, run="a"), "id long", size=2)


@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize(
    ("format", "said"),
    [
        ("console", "Spark writes no files in this format"),
        ("jdbc", "Spark writes no files in this format"),
        ("parket", "Failed to find the data source: parket"),
    ],
)
async def test_a_format_without_files_is_refused_before_the_flow_is_read(
    spark: Any, tmp_path: Path, size: int | None, format: str, said: str
) -> None:
    read = list[int]()
    flow = Flow.range(3).do_on_next(read.append) if size else Flow.from_spark(spark.range(3), as_=tuple)

    with pytest.raises(ValueError, match=rf"Files\(format='{format}'\): .*{said}"):
        await flow.to_spark(Files(spark, tmp_path, format=format), "id long", size=size)
    assert not read
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("format", ["orc", "org.apache.spark.sql.json", "parquet"])
async def test_a_format_may_be_any_of_sparks(spark: Any, tmp_path: Path, format: str) -> None:
    assert 3 == (await Flow.range(3).to_spark(Files(spark, tmp_path, format=format), "id long", size=2)).rows


@pytest.mark.parametrize(
    ("entry", "is_data"),
    [("_day=3", True), ("day=3", True), ("_SUCCESS", False), (".hidden", False), ("part._COPYING_", False)],
)
async def test_a_folder_has_other_data_if_spark_shows_them_to_readers(
    spark: Any, tmp_path: Path, entry: str, is_data: bool
) -> None:
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / entry))
    assert (tmp_path / entry / "_SUCCESS").exists()
    flow = Flow.from_spark(spark.range(2), as_=tuple)
    if is_data:
        assert 3 == spark.read.parquet(str(tmp_path)).count()
        with pytest.raises(FileExistsError, match=f"there are other data already, such as {entry}"):
            await flow.to_spark(Files(spark, tmp_path, mode="error"), "id long", size=None)
    else:
        await flow.to_spark(Files(spark, tmp_path, run="a", mode="error"), "id long", size=None)
    await flow.to_spark(Files(spark, tmp_path, run="b", mode="overwrite"), "id long", size=None)

    assert 2 == spark.read.parquet(str(tmp_path)).count()
    assert (tmp_path / entry).exists() is not is_data


async def test_what_a_writer_that_was_killed_has_left_goes_with_the_commit_of_its_batch(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "_writing-a-00000000-dead").mkdir()

    await Flow.range(1).to_spark(Files(spark, tmp_path, run="a"), "id long")

    assert ["batch=a-00000000"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"id": 0, "before": 0, "rows": null}'])
async def test_a_damaged_manifest_is_named(spark: Any, tmp_path: Path, text: str) -> None:
    writer = Files(spark, tmp_path, run="a")
    await Flow.range(3).to_spark(writer, "n long")
    (tmp_path / "batch=a-00000000" / "_batch.json").write_text(text)

    with pytest.raises(SparkJobError, match=r"batch=a-00000000/_batch\.json is damaged"):
        await asyncio.to_thread(writer.committed)


def test_there_is_a_file_in_each_batch(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Files\(parts=0\): parts must be at least 1"):
        Files(spark, tmp_path, parts=0)
