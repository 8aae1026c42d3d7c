"""Rows that are made on the loop, of slices of Arrow batches: which, where, and how many at a time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow
from reactive_aio._remote.columns import stream_of
from reactive_aio._remote.frames import Decoder
from reactive_aio.spark._results.task import Kept
from reactive_aio.spark._task import slices
from reactive_aio.spark._task.rows import Reading
from reactive_aio.spark._task.slices import FEW, MOST_BYTES, MOST_VALUES, RowSlice, Slices

pytestmark = pytest.mark.spark
pa: Any = pytest.importorskip("pyarrow")
sql: Any = pytest.importorskip("pyspark.sql")
Row = sql.Row


def batch(rows: int, columns: int = 1) -> Any:
    return pa.record_batch({str(n): range(rows) for n in range(columns)})


# -- the cut


def taken(batch: Any, wanted: int = 10**6) -> list[int]:
    cut = Slices(iter([RowSlice(Reading(tuple), batch)]))
    return [len(chunk) for chunk in iter(lambda: cut.take(wanted), [])]


def test_a_slice_keeps_the_loop_for_so_many_values_at_a_time() -> None:
    assert [MOST_VALUES // 8] * 3 == taken(batch(3 * MOST_VALUES // 8, columns=8))


def test_a_slice_has_no_more_than_so_many_bytes() -> None:
    large = pa.record_batch({"b": [bytes(MOST_BYTES // 4)] * 8})

    assert [3, 3, 2] == taken(large)


def test_a_row_that_is_larger_is_a_slice_by_itself() -> None:
    assert [1, 1] == taken(pa.record_batch({"b": [bytes(2 * MOST_BYTES)] * 2}))


def test_a_slice_has_no_more_rows_than_are_wanted() -> None:
    assert [700, 700, 600] == taken(batch(2_000), wanted=700)


def test_a_few_rows_at_a_time_are_made_where_they_are() -> None:
    cut = Slices(iter([RowSlice(Reading(tuple), batch(FEW + 9))]))

    assert [(0,), (1,)] == cut.take(2)
    assert [(n,) for n in range(2, FEW)] == cut.take(10**6)
    rest = cut.take(10**6)
    assert isinstance(rest, RowSlice)
    assert [(n,) for n in range(FEW, FEW + 9)] == list(rest)
    assert [] == cut.take(10**6)


def sent(slice_: RowSlice) -> Any:
    """Return the frame with a slice, as it arrives."""
    outlet = Kept(0)
    outlet.hear()
    assert outlet.send(slice_) is None
    (data,) = outlet.taken()
    (frame,) = Decoder().feed(data)
    return frame


def test_a_slice_is_a_list_on_the_other_side() -> None:
    frame = sent(RowSlice(Reading(tuple), batch(10_000).slice(7, 3)))

    assert (3, [(7,), (8,), (9,)]) == (frame.count, frame.loads())
    assert frame.size < 1_000  # of the batch it has the slice alone


def test_a_whole_batch_travels_as_the_stream_that_it_came_as() -> None:
    stream = bytes(stream_of(batch(4_000)))
    whole = Slices(iter([RowSlice.whole(Reading(tuple), stream)])).take(4_000)
    assert isinstance(whole, RowSlice)
    frame = sent(whole)

    assert [stream] == list(map(bytes, frame.buffers))
    assert (4_000, [(n,) for n in range(4_000)]) == (frame.count, frame.loads())


def test_a_part_of_a_batch_does_not_take_along_the_stream_of_the_whole() -> None:
    stream = bytes(stream_of(batch(7_000)))
    cut = Slices(iter([RowSlice.whole(Reading(tuple), stream)]))
    first, second = cut.take(4_000), cut.take(4_000)
    assert isinstance(first, RowSlice)
    assert isinstance(second, RowSlice)

    assert [(n,) for n in range(4_000)] == sent(first).loads()
    assert [(n,) for n in range(4_000, 7_000)] == sent(second).loads()
    assert all(sent(each).size < len(stream) for each in (first, second))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_rows_that_spark_has_compressed_travel_as_large_as_they_are(codec: str) -> None:
    """The loop bounds the bytes that arrive. A session may set `spark.sql.execution.arrow.compression.codec`."""
    texts = pa.record_batch({"text": ["x" * 1_000] * 300})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, texts.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as stream:
        stream.write(texts)
    compressed = sink.getvalue().to_pybytes()
    whole = Slices(iter([RowSlice.whole(Reading(tuple), compressed)])).take(300)
    assert isinstance(whole, RowSlice)
    frame = sent(whole)

    assert len(compressed) < 10_000 < texts.nbytes <= frame.size
    assert [("x" * 1_000,)] * 300 == frame.loads()


@pytest.mark.parametrize("kind", [tuple, dict, Row])
@pytest.mark.parametrize("rows", [9, 4_000])  # whose stream is in the pickle, or beside it
def test_slices_of_each_kind_of_row_have_a_pickle_of_their_own(kind: type[Any], rows: int) -> None:
    makes: dict[Any, Any] = {tuple: lambda n: (n,), dict: lambda n: {"0": n}, Row: lambda n: Row(**{"0": n})}
    frame = sent(RowSlice(Reading(kind), batch(rows)))
    found = frame.loads()

    assert [makes[kind](n) for n in range(rows)] == found
    assert (kind, rows > 9) == (type(found[0]), len(frame.buffers) == 1)


# -- who makes the rows


@attrs.frozen
class Number:
    id: int


@pytest.fixture
def made_here(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All rows that are made in this process."""
    rows: list[Any] = []
    make = slices.made

    def noting(reading: Reading, stream: Any) -> list[Any]:
        made = make(reading, stream)
        rows.extend(made)
        return made

    monkeypatch.setattr(slices, "made", noting)
    return rows


@pytest.mark.parametrize("as_", [Row, tuple, dict])
@pytest.mark.parametrize("how", [{}, {"ordered": False}, {"wire": "results"}])
async def test_the_loop_where_the_workers_have_nothing_to_do_with_them(
    spark: Any, made_here: list[Any], as_: type[Any], how: dict[str, Any]
) -> None:
    frame = spark.range(0, 3000, 1, 2).selectExpr("id", "concat('r', id) AS name")
    found = await Flow.from_spark(frame, as_=as_, **how).to_list()

    assert found == made_here
    assert sorted(found, key=lambda row: list(dict(row).values()) if as_ is dict else row) == [
        row if as_ is Row else tuple(row) if as_ is tuple else row.asDict() for row in frame.collect()
    ]


async def test_the_loop_for_those_of_a_union(spark: Any, made_here: list[Any]) -> None:
    flow = Flow.from_spark(spark.range(300), as_=tuple).concat(Flow.from_spark(spark.range(2000), as_=dict))
    found = await flow.to_list()

    assert [*((n,) for n in range(300)), *({"id": n} for n in range(2000))] == found == made_here
    assert "Arrow into the workers and in slices, to be made rows here, over TCP" in flow.describe()
    assert "Arrow into the workers, pickled chunks over TCP" in flow.map(str).describe()
    assert 2300 == len(await flow.map(str).to_list())
    assert 2300 == len(made_here)


def whole(flow: Flow[Any]) -> Flow[Any]:
    return flow


@pytest.mark.parametrize(
    ("column", "as_", "chain"),
    [
        ("id", tuple, lambda flow: flow.map(lambda row: row)),
        ("id", Number, whole),
        ("array(id) AS id", tuple, whole),
        ("struct(id) AS id", Row, whole),
        ("map(id, id) AS id", dict, whole),
    ],
    ids=["a function", "a class", "an array", "a struct", "a map"],
)
async def test_the_workers_where_they_have_a_function_to_call_or_values_to_reshape(
    spark: Any, made_here: list[Any], column: str, as_: type[Any], chain: Any
) -> None:
    flow = chain(Flow.from_spark(spark.range(2000).selectExpr(column), as_=as_))

    assert 2000 == len(await flow.to_list())
    assert not made_here
    assert "Arrow into the workers, pickled chunks over TCP" in flow.describe()


async def test_the_workers_where_few_are_wanted_at_a_time(spark: Any, made_here: list[Any]) -> None:
    flow = Flow.from_spark(spark.range(2000), as_=tuple, prefetch=FEW - 1)

    assert [(n,) for n in range(2000)] == await flow.to_list()
    assert not made_here


# -- failures


@pytest.fixture
def small_batches(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_a_row_that_cannot_be_made_fails_behind_those_before_it(spark: Any, wire: Any) -> None:
    frame = spark.range(0, 20, 1, 1).selectExpr("if(id = 11, cast(x'ff' as string), concat('r', id)) AS name")
    found: list[Any] = []
    with pytest.raises(pa.ArrowException) as failed:
        await Flow.from_spark(frame, as_=tuple, wire=wire).for_each(found.append)

    assert [(f"r{n}",) for n in range(11)] == found
    assert "while rows were made of the columns that Spark has sent" in failed.value.__notes__


@pytest.mark.usefixtures("small_batches")
async def test_a_task_that_is_done_again_goes_on_behind_the_rows_that_have_come(
    spark: Any, made_here: list[Any], tmp_path: Path
) -> None:
    here, killed = tmp_path / "here", tmp_path / "killed"

    def deadly(batches: Any, here: str = str(here), killed: str = str(killed)) -> Iterator[Any]:
        import time

        for each in batches:
            if each.column(0)[0].as_py() == 6_000 and not os.path.exists(killed):
                while not os.path.exists(here):
                    time.sleep(0.01)
                open(killed, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield each

    found: list[Any] = []

    def note(row: Any) -> None:
        found.append(row)
        if len(found) == 1_000:
            here.touch()

    await Flow.from_spark(spark.range(0, 8_000, 1, 1).mapInArrow(deadly, "id long"), as_=tuple).for_each(note)

    assert [(n,) for n in range(8_000)] == found
    # All but a few, which the workers make where the demand has no room for a slice: once before the kill, and once behind it.
    left = iter(found)
    assert all(row in left for row in made_here)
    assert len(found) - len(made_here) < 2 * FEW
    assert killed.exists()
