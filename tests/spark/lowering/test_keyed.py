"""Operators on the elements of each key, in Spark's workers: each key has what it has on the event loop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import pytest

from reactive_aio import Flow, KeyedFlow, UnsupportedOnSparkError
from reactive_aio._core.guard import brief
from reactive_aio._remote.failures import pack, unpack
from reactive_aio.errors import RemoteError

pytest.importorskip("pyspark")

from reactive_aio.spark._task.shuffled import looked_at, told
from reactive_aio.spark._task.worker import InputFailed

pytestmark = pytest.mark.spark

Element = tuple[int, int]
BERLIN = ZoneInfo("Europe/Berlin")
KEYS: list[Any] = [
    0,
    1,
    True,
    1.0,
    -0.0,
    None,
    "a",
    "",
    Decimal("1.0"),
    Decimal("0.1"),
    float("nan"),
    (1, "a"),
    (True, "a"),
    (("a", None), ()),
    (float("nan"), Decimal("nan")),
    b"a",
    float("inf"),
    Decimal("-Infinity"),
    2**53,
    float(2**53),
    2**53 + 1,
    -5e-324,
    date(2024, 10, 27),
    datetime(2024, 10, 27),
    datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
    datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    time(1, 30),
    timedelta(1),
    timedelta(hours=24),
    UUID(int=1),
]


def key_of(element: Element) -> Any:
    return KEYS[element[0] % len(KEYS)]


def place_of(element: Element) -> tuple[int, int]:
    return -element[1], element[0]


def value_of(element: Element) -> int:
    return element[1]


def elements() -> list[Element]:
    draw = Random(18)
    return [(number, draw.randint(-9, 9)) for number in range(300)]


def in_text(key: Any) -> str:
    """Return a text that is the same for equal keys, of those above."""
    if key != key:
        return "nan"
    if isinstance(key, datetime) and key.tzinfo is not None:
        return repr(key.astimezone(UTC))
    if isinstance(key, float) and key.is_integer() and key > 1:
        return repr(int(key))
    return (
        repr(tuple(map(in_text, key)))
        if isinstance(key, tuple)
        else str(float(key) + 0.0)
        if key in {0, 1}
        else repr(key)
    )


def by_key(pairs: list[tuple[Any, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(in_text(key), []).append(value)
    return found


Keyed = Callable[[KeyedFlow[Any, Element]], Flow[tuple[Any, Any]]]
ORDERED: dict[str, Keyed] = {
    "map": lambda k: k.map(value_of).pairs(),
    "filter": lambda k: k.filter(lambda element: element[1] % 2).pairs(),
    "scan": lambda k: k.map(value_of).scan(lambda total, n: total * 2 + n, 1).pairs(),
    "pairwise": lambda k: k.pairwise().pairs(),
    "buffer": lambda k: k.buffer(3).pairs(),
    "buffer_until_changed": lambda k: k.map(value_of).buffer_until_changed(abs).pairs(),
    "take": lambda k: k.take(2).pairs(),
    "top_k": lambda k: k.top_k(2, key=value_of).pairs(),
    "count": lambda k: k.filter(value_of).count(),
    "fold": lambda k: k.fold(lambda text, element: f"{text} {element}", ""),
    "reduce": lambda k: k.map(value_of).reduce(lambda a, b: a - 2 * b),
    "several": lambda k: k.map(value_of).pairwise().filter(lambda pair: pair[0] != pair[1]).take(3).buffer(2).pairs(),
}


def on_spark(spark: Any, **settings: Any) -> Flow[Element]:
    return Flow.from_spark(
        spark.createDataFrame(elements(), "number int, value int").repartition(3), as_=tuple, **settings
    )


@pytest.mark.parametrize("name", ORDERED)
async def test_each_key_has_in_order_what_it_has_on_the_event_loop(spark: Any, name: str) -> None:
    work = ORDERED[name]
    expected = by_key(await work(Flow.from_iterable(elements()).group_by_key(key_of, order_by=place_of)).to_list())
    flow = work(on_spark(spark).group_by_key(key_of, order_by=place_of))

    assert expected == by_key(await flow.to_list())
    assert "shuffled by key" in flow.describe()


async def test_what_needs_no_order_has_the_same_values_without_one(spark: Any) -> None:
    def total(keyed: KeyedFlow[Any, Element]) -> Flow[tuple[Any, int]]:
        return keyed.map(value_of).fold(lambda total, n: total + n, 0, any_order=True)

    local, keyed = (
        flow.group_by_key(key_of) for flow in (Flow.from_iterable(elements()), on_spark(spark, ordered=False))
    )

    assert by_key(await total(local).to_list()) == by_key(await total(keyed).to_list())
    assert by_key(await local.count().to_list()) == by_key(await keyed.count().to_list())
    assert sorted(await local.map(value_of).pairs().map(lambda pair: pair[1]).to_list()) == sorted(
        await keyed.map(value_of).pairs().map(lambda pair: pair[1]).to_list()
    )


async def test_what_follows_runs_in_the_workers_and_may_shuffle_again(spark: Any) -> None:
    def sizes(flow: Flow[Element]) -> Flow[tuple[int, int]]:
        counts = flow.group_by_key(lambda element: element[0] % 7).count()
        return counts.map(lambda pair: pair[1]).group_by_key(abs).count()

    assert sorted(await sizes(Flow.from_iterable(elements())).to_list()) == sorted(
        await sizes(on_spark(spark)).to_list()
    )
    assert "loop" not in sizes(on_spark(spark)).describe().splitlines()[0]


async def test_an_rdd_a_union_and_what_was_sorted_are_shuffled_as_frames_are(spark: Any) -> None:
    rdd = Flow.from_spark(spark.sparkContext.parallelize(elements(), 2))
    expected = by_key(await Flow.from_iterable(elements()).group_by_key(key_of).count().to_list())
    twice = {key: [2 * count] for key, [count] in expected.items()}

    assert expected == by_key(await rdd.group_by_key(key_of).count().to_list())
    assert expected == by_key(await rdd.sort_by(max_size=10**9).group_by_key(key_of).count().to_list())
    assert twice == by_key(await on_spark(spark).concat(on_spark(spark)).group_by_key(key_of).count().to_list())


@attrs.frozen
class Total:
    key: int
    total: int


def test_a_frame_has_the_shuffle_in_its_plan(spark: Any) -> None:
    keyed = on_spark(spark).group_by_key(lambda element: element[1]).count()
    frame = keyed.map(lambda pair: Total(*pair)).to_frame(Total)
    numbers = [value for _, value in elements()]

    assert {(n, numbers.count(n)) for n in numbers} == {tuple(row) for row in frame.collect()}


@pytest.mark.parametrize(
    ("name", "work"),
    [(name, work) for name, work in ORDERED.items() if name not in {"map", "filter", "top_k", "count"}],
)
def test_without_an_order_what_depends_on_it_is_refused_by_name_and_line(spark: Any, name: str, work: Keyed) -> None:
    refused = "pairwise" if name == "several" else name
    with pytest.raises(UnsupportedOnSparkError, match=rf"^{refused}\(.*chained at .*test_keyed.py:\d+, can't"):
        work(on_spark(spark).group_by_key(key_of))


class OddError(Exception):
    pass


def odd(element: Element) -> Any:
    if element[0] == 99:
        raise OddError("ninety-nine")
    return element[0] % 5


@pytest.mark.parametrize(
    ("note", "build"),
    [
        ("in group_by_key(odd -> count())", lambda flow: flow.group_by_key(odd).count()),
        ("in group_by_key(value_of, order_by=odd", lambda flow: flow.group_by_key(value_of, order_by=odd).pairs()),
        ("in map(odd)", lambda flow: flow.map(odd).group_by_key(abs).count()),
        ("in map(odd)", lambda flow: flow.group_by_key(value_of).map(odd).pairs()),
    ],
)
async def test_a_failure_on_either_side_of_the_shuffle_arrives_as_itself(
    spark: Any, note: str, build: Callable[[Flow[Element]], Flow[Any]]
) -> None:
    with pytest.raises(OddError, match="ninety-nine") as failed:
        await build(on_spark(spark)).to_list()
    assert any(each.startswith(note) for each in failed.value.__notes__)


class LargeError(Exception):
    pass


@pytest.mark.parametrize(("size", "parts", "kind"), [(1 << 18, 2, LargeError), (1 << 18, 1600, RemoteError)])
def test_the_copies_of_a_large_failure_are_bounded(size: int, parts: int, kind: type[Exception]) -> None:
    error = LargeError("it " + Random(1).randbytes(size).hex())
    error.add_note("in map(large)")
    rows = told(pack(error, "a task"), parts)

    with pytest.raises(InputFailed) as failed:
        looked_at(rows[-1])
    arrived = unpack(failed.value.packed)
    assert len(rows) == parts
    assert sum(len(row[3]) for row in rows) <= 1 << 24
    assert type(arrived) is kind
    assert "LargeError: it " in repr(brief(arrived))
    assert arrived.__notes__[0] == "in map(large)"


async def test_a_large_failure_before_the_shuffle_arrives_by_its_text(spark: Any) -> None:
    def large(element: Element) -> int:
        raise LargeError("it " + Random(element[0]).randbytes(1 << 18).hex())

    flow = on_spark(spark).map(large).group_by_key(abs, partitions=400).count()
    with pytest.raises(RemoteError, match="LargeError: it ") as failed:
        await flow.to_list()
    assert failed.value.__notes__[0].startswith("in map(large)")
    assert any("too large to be sent to 400 parts of a shuffle" in each for each in failed.value.__notes__)


async def test_no_key_comes_when_elements_were_lost_before_the_shuffle(spark: Any) -> None:
    got: list[Any] = []
    with pytest.raises(OddError):
        await on_spark(spark).group_by_key(odd).count().for_each(got.append)

    assert [] == got


async def test_a_key_that_is_no_scalar_is_refused_by_its_type(spark: Any) -> None:
    with pytest.raises(TypeError, match="not frozenset"):
        await on_spark(spark).group_by_key(frozenset).count().to_list()


def prices() -> list[Element]:
    draw = Random(19)
    return [(number, draw.randint(-9, 9)) for number in range(0, 200, 7)]


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
async def test_flows_are_joined_as_on_the_event_loop_behind_one_shuffle(spark: Any, how: Any) -> None:
    def joined(left: Flow[Element], right: Flow[Element]) -> Flow[Any]:
        ranked = right.group_by_key(key_of, order_by=place_of).map(value_of).take(2)
        return left.group_by_key(key_of).filter(value_of).join(ranked, how=how)

    flow = joined(on_spark(spark), Flow.from_spark(spark.sparkContext.parallelize(prices(), 2)))
    expected = await joined(Flow.from_iterable(elements()), Flow.from_iterable(prices())).to_list()

    assert {key: sorted(values, key=repr) for key, values in by_key(expected).items()} == {
        key: sorted(values, key=repr) for key, values in by_key(await flow.to_list()).items()
    }
    assert "loop" not in flow.describe().splitlines()[0]
    assert "partitions of 2 flows, shuffled by key" in flow.describe()


async def test_a_flow_on_spark_is_joined_with_one_of_the_event_loop_on_the_loop(spark: Any) -> None:
    flow = on_spark(spark).group_by_key(value_of).count().group_by_key(lambda pair: pair[0])
    names = Flow.of(*range(-9, 10)).group_by_key(abs).map(str)
    expected = Flow.from_iterable(elements()).group_by_key(value_of).count().group_by_key(lambda pair: pair[0])

    assert sorted(await expected.join(names).to_list()) == sorted(await flow.join(names).to_list())


def test_a_join_has_one_shuffle_in_the_plan_of_a_frame(spark: Any) -> None:
    left, right = on_spark(spark).group_by_key(value_of), on_spark(spark).group_by_key(abs_of)
    frame = left.join(right).map(lambda pair: (pair[0],)).to_frame("key int")
    numbers = [value for _, value in elements()]

    assert sum(numbers.count(n) for n in map(abs, numbers)) == frame.count()
    java: Any = frame._jdf
    plan = java.queryExecution().executedPlan().toString()
    assert 1 == plan.count("REPARTITION_BY_COL")  # the frames themselves are repartitioned as well


def abs_of(element: Element) -> int:
    return abs(element[1])


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_side_without_an_order_may_not_depend_on_one(spark: Any, side: str) -> None:
    unordered, ordered = on_spark(spark).group_by_key(key_of).pairwise(), on_spark(spark).group_by_key(key_of)
    with pytest.raises(UnsupportedOnSparkError, match=r"^pairwise\(\), chained at .*test_keyed.py:\d+, can't"):
        unordered.join(ordered) if side == "left" else ordered.join(unordered)


@pytest.mark.parametrize("side", ["left", "right"])
async def test_a_failure_of_a_side_arrives_as_itself(spark: Any, side: str) -> None:
    broken, whole = on_spark(spark).map(odd).group_by_key(abs), on_spark(spark).group_by_key(value_of)
    joined: Flow[Any] = broken.join(whole) if side == "left" else whole.join(broken)
    with pytest.raises(OddError, match="ninety-nine") as failed:
        await joined.to_list()
    assert any(each.startswith("in map(odd)") for each in failed.value.__notes__)


def partitions_of(flow: Flow[tuple[int, Any]]) -> int:
    found: int = flow.map(lambda pair: (pair[0],)).to_frame("key long").rdd.getNumPartitions()
    return found


@pytest.mark.parametrize(("left", "right", "found"), [(3, None, 3), (None, 6, 6), (3, 6, 6), (7, 2, 7)])
def test_elements_are_shuffled_into_so_many_partitions(
    spark: Any, left: int | None, right: int | None, found: int
) -> None:
    keyed = on_spark(spark).group_by_key(value_of, partitions=left)
    other = on_spark(spark).group_by_key(value_of, partitions=right)

    assert found == partitions_of(keyed.join(other))
    assert left is None or left == partitions_of(keyed.count())


@pytest.mark.parametrize(("adaptive", "most"), [("true", 1), ("false", 30)])
def test_small_partitions_are_put_together_where_spark_adapts_its_plans(spark: Any, adaptive: str, most: int) -> None:
    settings = {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.shuffle.partitions": "30",
    }
    for name, value in settings.items():
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        settings[name] = before
    try:
        flow = on_spark(spark).group_by_key(value_of).count()
        counts = {row.key: row.n for row in flow.to_frame("key long, n long").collect()}

        assert dict(Flow.from_iterable(elements()).group_by_key(value_of).count().run_sync()) == counts
        assert most == partitions_of(flow)
    finally:
        for name, value in settings.items():
            spark.conf.set(name, value)


def test_it_is_shown_and_below_one_refused() -> None:
    flow = Flow.of("a").group_by_key(str, partitions=3).count()

    assert "group_by_key(str, partitions=3 -> count())" in flow.describe()
    with pytest.raises(ValueError, match="partitions must be at least 1"):
        Flow.of("a").group_by_key(str, partitions=0)


@pytest.mark.parametrize("method", ["group_by_key", "repartition"])
def test_more_partitions_than_spark_can_count_are_refused_at_once(method: str) -> None:
    spread = getattr(Flow.of("a"), method)

    spread(partitions=2**31 - 1, key=str)
    with pytest.raises(
        ValueError, match=rf"^{method}\(partitions=2147483648\): partitions must be at most 2147483647$"
    ):
        spread(partitions=2**31, key=str)


async def test_a_key_that_is_finer_than_its_bytes_fails_the_flow(spark: Any) -> None:
    pandas: Any = pytest.importorskip("pandas")
    flow = Flow.from_spark(spark.range(2), as_=tuple).group_by_key(lambda row: pandas.Timedelta(row[0])).count()

    with pytest.raises(TypeError, match=r"can't be a key that is sorted or sent to Spark.*not Timedelta"):
        await flow.to_list()
