"""A flow as a frame of Spark's: what runs in its tasks gives what the event loop gives of the same elements."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, SynchronousSink
from reactive_aio.extend import Stage

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from tests.schedulers import work
from tests.spark.jobs import jobs_begun

pytestmark = pytest.mark.spark

NUMBERS = range(25_000)


@attrs.frozen
class Reading:
    id: int
    name: str
    value: float | None = None


def number(row: Any) -> int:
    n: int = row[0]
    return n


def numbers_below(row: Any) -> Iterable[int]:
    return range(row[0])


def numbers(spark: Any, partitions: int = 3) -> Flow[int]:
    return Flow.from_spark(spark.range(0, len(NUMBERS), 1, partitions), as_=tuple).map(number)


@attrs.frozen
class Twice(Stage[int, int]):
    """A stage of one's own, which gives something at its ends too."""

    def apply(self, items: Iterator[int]) -> Iterator[int]:
        for item in items:
            yield item
            yield -item


async def doubled(n: int) -> int:
    return 2 * n


async def is_odd(n: int) -> bool:
    return n % 2 == 1


def halves(n: int, sink: SynchronousSink[int]) -> None:
    if n % 2 == 0:
        sink.next(n // 2)


def counted(batch: list[int]) -> Iterable[int]:
    return [n + 1 for n in batch]


IN_THE_REGION: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "map and filter": lambda flow: flow.map(lambda n: n * 3).filter(lambda n: n % 2),
    "flat_map_iterable": lambda flow: flow.flat_map_iterable(lambda n: range(n % 4)),
    "map_batches": lambda flow: flow.map_batches(counted, size=100),
    "map_async in order": lambda flow: flow.map_async(doubled, max_concurrency=8).filter(lambda n: n % 3),
    "filter_when": lambda flow: flow.filter_when(is_odd),
    "handle": lambda flow: flow.handle(halves),
    "a stage of one's own": lambda flow: flow.then(Twice()),
    "do_on_next": lambda flow: flow.do_on_next(abs),
    "sample_fraction": lambda flow: flow.sample_fraction(0.25),
    "concat": lambda flow: flow.map(abs).concat(flow.map(lambda n: -n)).filter(lambda n: n % 7),
    "repeat": lambda flow: flow.filter(lambda n: n % 5 == 0).repeat(3),
    "nothing": lambda flow: flow,
}


@pytest.mark.parametrize("name", IN_THE_REGION)
def test_what_needs_one_element_after_another_runs_in_the_tasks(spark: Any, name: str) -> None:
    chain = IN_THE_REGION[name]

    expected = chain(Flow.from_iterable(NUMBERS)).run_sync()

    assert expected == [row.n for row in chain(numbers(spark)).to_frame("n long").collect()]
    assert expected == chain(numbers(spark)).to_rdd().collect()


@pytest.mark.parametrize("name", ["map and filter", "map_async in order", "concat"])
def test_the_elements_of_an_rdd_become_a_frame_as_well(sc: Any, name: str) -> None:
    chain = IN_THE_REGION[name]

    expected = chain(Flow.from_iterable(NUMBERS)).run_sync()
    flow = chain(Flow.from_spark(sc.parallelize(NUMBERS, 3)))

    assert expected == [row.n for row in flow.to_frame("n long").collect()]
    assert expected == flow.to_rdd().collect()


@pytest.mark.parametrize(
    "schema", ["n long, text string", StructType().add("n", "long").add("text", "string")], ids=["text", "StructType"]
)
@pytest.mark.parametrize("element", [lambda n: (n, str(n)), lambda n: {"text": str(n), "n": n}], ids=["tuple", "dict"])
def test_an_element_has_the_columns_of_the_schema(spark: Any, schema: Any, element: Callable[[int], Any]) -> None:
    frame = numbers(spark).filter(lambda n: n < 3).map(element).to_frame(schema)

    assert ["n", "text"] == frame.columns
    assert [(0, "0"), (1, "1"), (2, "2")] == [tuple(row) for row in frame.collect()]


def test_a_class_gives_the_columns_and_their_types(spark: Any) -> None:
    frame = numbers(spark).filter(lambda n: n < 2).map(lambda n: Reading(n, f"r{n}", n / 2 or None)).to_frame(Reading)

    assert "struct<id:bigint,name:string,value:double>" == frame.schema.simpleString()
    assert [False, False, True] == [field.nullable for field in frame.schema.fields]
    assert [(0, "r0", None), (1, "r1", 0.5)] == [tuple(row) for row in frame.collect()]


def test_values_of_all_types_are_there_again_when_the_frame_is_read(spark: Any) -> None:
    frame = spark.sql(
        "select 1Y a, 2S b, 3 c, 4L d, 1.5F e, 2.5D f, 1.23BD g, true h, 'x' i, X'0102' j, date'2020-02-29' k, "
        "timestamp'2020-02-29 12:00:00.000001' l, timestamp_ntz'2020-02-29 12:00:00' m, array(1, null) n, "
        "map('a', 1) o, named_struct('p', 1, 'q', array('z')) p, interval '1' day q, cast(null as string) r"
    )
    again = Flow.from_spark(frame, as_=dict).map(dict).to_frame(frame.schema)

    assert frame.schema.simpleString() == again.schema.simpleString()
    assert frame.collect() == again.collect()
    (element,) = Flow.from_spark(again, as_=dict).run_sync()
    assert (Decimal("1.23"), dt.date(2020, 2, 29)) == (element["g"], element["k"])


def test_the_frame_is_part_of_what_spark_plans_with_it(spark: Any) -> None:
    names = spark.createDataFrame([(n, f"name {n}") for n in range(3)], "n long, name string")
    frame = numbers(spark).map(lambda n: (n % 3, n)).to_frame("n long, value long")

    joined = frame.join(names, "n").groupBy("name").count().orderBy("name")

    expected = [("name 0", 8334), ("name 1", 8333), ("name 2", 8333)]
    assert expected == [tuple(row) for row in joined.collect()]
    assert expected == Flow.from_spark(joined, as_=tuple).run_sync()


def test_nothing_runs_before_the_frame_is_used(sc: Any, spark: Any, tally: Any) -> None:
    before = jobs_begun(sc)
    frame = numbers(spark).map(tally.counting(abs)).to_frame("n long")
    rdd = numbers(spark).map(tally.counting(abs)).to_rdd()
    of_rdd = Flow.from_spark(sc.parallelize(NUMBERS)).map(tally.counting(abs)).to_frame("n long")

    assert (before, 0) == (jobs_begun(sc), tally.count)
    assert [25_000] * 3 == [frame.count(), rdd.count(), of_rdd.count()]


def test_each_evaluation_runs_the_functions_anew_unless_the_frame_is_persisted(spark: Any, tally: Any) -> None:
    frame = numbers(spark).filter(lambda n: n < 10).map(tally.counting(abs)).to_frame("n long")
    frame.collect()
    frame.collect()
    assert 20 == tally.count

    kept = frame.persist()
    kept.count()
    assert 10 == kept.count()
    kept.unpersist()
    assert 30 == tally.count


def test_a_limit_behind_the_frame_ends_the_tasks_early(spark: Any, tally: Any) -> None:
    frame = numbers(spark, partitions=1).map(tally.counting(abs)).to_frame("n long")

    assert [0, 1] == [row.n for row in frame.limit(2).collect()]


def test_context_variables_have_the_values_of_when_the_frame_is_made(spark: Any) -> None:
    work.trace.set("mine")
    data = spark.range(0, 2, 1, 1)
    frame = Flow.from_spark(data, as_=tuple, context=[work.trace]).map(work.seen).to_frame("trace string, other string")
    work.trace.set("changed")

    assert [("mine", "none")] * 2 == [tuple(row) for row in frame.collect()]
    plain = Flow.from_spark(data, as_=tuple).map(work.seen).to_frame("trace string, other string")
    assert [("none", "none")] * 2 == [tuple(row) for row in plain.collect()]


def test_rows_without_columns_and_columns_of_one_name_are_read(spark: Any) -> None:
    empty = spark.range(3).select()
    twice = spark.sql("select 1 a, 2 a")

    assert [0, 0, 0] == [row.n for row in Flow.from_spark(empty, as_=tuple).map(len).to_frame("n long").collect()]
    assert [3] == [row.n for row in Flow.from_spark(twice, as_=tuple).map(sum).to_frame("n long").collect()]


def test_frames_of_very_many_columns_are_read(spark: Any) -> None:
    wide = spark.range(3).selectExpr(*(f"id + {n} AS c{n}" for n in range(150)))
    totals = Flow.from_spark(wide, as_=tuple).map(sum)

    assert [sum(row) for row in wide.collect()] == [row.n for row in totals.to_frame("n long").collect()]
    assert [sum(row) for row in wide.collect()] == totals.to_rdd().collect()


def test_large_rows_go_out_before_there_are_many(spark: Any) -> None:
    import pyarrow as pa

    from reactive_aio.spark._frame.task import Weighed

    batch = pa.RecordBatch.from_pydict({"data": [b"x" * (1 << 20)] * 9})
    weighed = Weighed(iter([batch] * 4))

    assert [False, True, False, True] == [weighed.taken() for _ in weighed]


def mebibytes(row: Any) -> Iterator[tuple[bytes]]:
    for _ in range(row[0]):
        yield (bytes(1 << 20),)


def by_hand(flow: Flow[Any], schema: StructType, rows: int) -> Iterator[Any]:
    """Run the task of a frame over one partition, whose only row is a number."""
    import pyarrow as pa

    from reactive_aio.spark._frame.framing import task_of
    from reactive_aio.spark._frame.parts import parts_of
    from reactive_aio.spark._frame.task import columns_of
    from reactive_aio.spark.sink._columns import Columns

    (source,) = parts_of("to_frame", flow).sources
    assert source.reading is not None
    batches = iter([pa.RecordBatch.from_pydict({"id": [rows]})])
    return columns_of(task_of(source), source.reading, Columns(schema, None, dt.UTC), batches)


def test_large_elements_that_are_made_of_small_rows_go_out_before_there_are_many(spark: Any) -> None:
    large = Flow.from_spark(spark.range(1), as_=tuple).flat_map_iterable(mebibytes)

    sizes = [batch.num_rows for batch in by_hand(large, StructType([StructField("data", BinaryType())]), 120)]

    assert [64, 15, 15, 15, 11] == sizes  # each batch but the first is below 16 MiB


def test_batches_of_small_elements_grow_up_to_ten_thousand(spark: Any) -> None:
    small = Flow.from_spark(spark.range(1), as_=tuple).flat_map_iterable(numbers_below)

    sizes = [batch.num_rows for batch in by_hand(small, StructType([StructField("n", LongType())]), 30_000)]

    assert [64, 256, 1024, 4096, 10_000, 10_000, 4560] == sizes


@pytest.mark.parametrize("schema", [StructType([StructField("n", LongType(), False)]), "n long not null"])
def test_a_column_that_must_not_be_missing_is_declared_so(spark: Any, schema: Any) -> None:
    frame = numbers(spark).filter(lambda n: n < 1).to_frame(schema)

    assert not frame.schema["n"].nullable
    assert [0] == [row.n for row in frame.collect()]


# -- what is left to Spark, where nobody relies on an order


def in_no_order(spark: Any, partitions: int = 3, wire: Any = None) -> Flow[tuple[Any, ...]]:
    return Flow.from_spark(spark.range(0, len(NUMBERS), 1, partitions), as_=tuple, ordered=False, wire=wire)


@pytest.mark.parametrize("wire", [None, "results"])
def test_any_n_elements_are_a_limit_in_front_of_the_functions_or_behind_them(spark: Any, tally: Any, wire: Any) -> None:
    first = in_no_order(spark, wire=wire).take(5).map(number).map(tally.counting(abs)).to_frame("n long")
    last = in_no_order(spark).map(number).filter(lambda n: n % 2).take(5).to_frame("n long")

    found = [row.n for row in first.collect()]
    assert (5, 5) == (len(set(found)), tally.count)
    assert set(found) <= set(NUMBERS)
    odd = [row.n for row in last.collect()]
    assert (5, 5) == (len(set(odd)), sum(n % 2 for n in odd))
    assert 5 == in_no_order(spark).take(5).map(number).to_rdd().count()


def test_all_but_any_n_elements_are_an_offset(spark: Any) -> None:
    first = in_no_order(spark).skip(24_990).map(number).to_frame("n long")
    last = in_no_order(spark).map(number).skip(24_990).take(7).to_frame("n long")

    assert (10, 7) == (len({row.n for row in first.collect()}), len({row.n for row in last.collect()}))


@pytest.mark.parametrize("as_", [tuple, None])
def test_different_rows_are_told_apart_by_spark(spark: Any, as_: Any) -> None:
    data = spark.range(30).selectExpr(
        "id % 3 as n", "case when id % 2 = 0 then 'even' end as text", "id % 2 = 1 as odd"
    )
    flow = Flow.from_spark(data, as_=as_, ordered=False).distinct().map(tuple)

    expected = set(flow.run_sync())
    assert 6 == len(expected)

    frame = flow.to_frame("n long, text string, odd boolean")
    assert expected == {tuple(row) for row in frame.collect()}
    assert 6 == frame.count()
    assert "HashAggregate" in frame._jdf.queryExecution().executedPlan().toString()
