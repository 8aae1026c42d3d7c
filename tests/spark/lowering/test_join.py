"""The join of two keyed flows in Spark's workers: the pairs that come on the event loop."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, KeyedFlow, LimitExceededError

pytest.importorskip("pyspark")

pytestmark = pytest.mark.spark

Element = tuple[int, int]


def elements(seed: int) -> list[Element]:
    draw = Random(seed)
    return [(draw.randint(0, 40), draw.randint(-9, 9)) for _ in range(60)]


def key_of(element: Element) -> Any:
    return (None, float("nan"), element[0] * 1.0, f"{element[0]}")[element[0] % 4]


def other_key_of(element: Element) -> Any:
    return (None, -float("nan"), element[0], f"{element[0]}")[element[0] % 4]


def on_spark(spark: Any, seed: int, **settings: Any) -> Flow[Element]:
    return Flow.from_spark(
        spark.createDataFrame(elements(seed), "number int, value int").repartition(2), as_=tuple, **settings
    )


def counted(pairs: list[Any]) -> Counter[str]:
    """Count pairs by what tells them apart: the key is that of the first element that has come."""
    return Counter(repr(values) for _, values in pairs)


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
async def test_a_join_has_the_pairs_that_it_has_on_the_event_loop(spark: Any, how: Any) -> None:
    def join(left: Flow[Element], right: Flow[Element]) -> Flow[Any]:
        return left.group_by_key(key_of).join(right.group_by_key(other_key_of), how=how)

    flow = join(on_spark(spark, 1), on_spark(spark, 2, ordered=False))

    assert counted(await join(*(Flow.from_iterable(elements(n)) for n in (1, 2))).to_list()) == counted(
        await flow.to_list()
    )
    assert "shuffled by key" in flow.describe()
    assert "where join reads" not in flow.describe()


async def test_operators_before_the_join_run_by_key_in_the_workers_too(spark: Any) -> None:
    def join(left: Flow[Element], right: Flow[Element]) -> Flow[Any]:
        def cut(flow: Flow[Element]) -> KeyedFlow[Any, Any]:
            return flow.group_by_key(key_of, order_by=lambda element: element).take(3)

        return cut(left).join(cut(right).map(str), how="outer")

    flow = join(on_spark(spark, 1), on_spark(spark, 2))

    assert counted(await join(*(Flow.from_iterable(elements(n)) for n in (1, 2))).to_list()) == counted(
        await flow.to_list()
    )
    assert "where join reads" not in flow.describe()


async def test_a_side_on_the_event_loop_has_the_join_there(spark: Any) -> None:
    left, right = on_spark(spark, 1).group_by_key(key_of), Flow.from_iterable(elements(2)).group_by_key(key_of)
    expected = Flow.from_iterable(elements(1)).group_by_key(key_of).join(right)

    assert counted(await expected.to_list()) == counted(await left.join(right).to_list())
    assert "where join reads" in left.join(right).describe()


async def test_a_join_within_a_time_is_on_the_event_loop_and_reads_both_flows_from_the_workers(spark: Any) -> None:
    left, right = (on_spark(spark, n).group_by_key(key_of).map(str) for n in (1, 2))
    here = [Flow.from_iterable(elements(n)).group_by_key(key_of).map(str) for n in (1, 2)]
    flow = left.join(right, how="outer", within=1e6)

    assert counted(await here[0].join(here[1], how="outer").to_list()) == counted(await flow.to_list())
    assert 2 == flow.describe().count("from_spark(DataFrame, as_=tuple) -> group_by_key(key_of -> map(str))")
    assert "shuffled" not in flow.describe()


@attrs.frozen
class Met:
    left: int
    right: int


def test_a_frame_has_the_join_in_its_plan(spark: Any) -> None:
    joined = on_spark(spark, 1).group_by_key(key_of).join(on_spark(spark, 2).group_by_key(key_of))
    frame = joined.map(lambda pair: Met(pair[1][0][1], pair[1][1][1])).to_frame(Met)
    sides = [Flow.from_iterable(elements(n)).group_by_key(key_of) for n in (1, 2)]

    assert Counter((left[1], right[1]) for _, (left, right) in sides[0].join(sides[1]).run_sync()) == Counter(
        map(tuple, frame.collect())
    )


@pytest.mark.parametrize("wires", [("results", "results"), ("results", None)])
def test_a_frame_has_the_join_whatever_wire_the_flows_have(spark: Any, wires: Any) -> None:
    """Spark Connect has no other than that of results."""
    sides = [Flow.from_iterable(elements(n)).group_by_key(abs_of) for n in (1, 2)]
    left, right = (on_spark(spark, n, wire=wire).group_by_key(abs_of) for n, wire in zip((1, 2), wires, strict=True))
    frame = left.join(right).map(lambda pair: Met(pair[1][0][1], pair[1][1][1])).to_frame(Met)

    assert Counter((one[1], other[1]) for _, (one, other) in sides[0].join(sides[1]).run_sync()) == Counter(
        map(tuple, frame.collect())
    )


def abs_of(element: Element) -> int:
    return abs(element[1])


def test_a_frame_has_keyed_work_on_several_flows(spark: Any) -> None:
    both = on_spark(spark, 1).concat(on_spark(spark, 2, wire="results"))
    frame = both.group_by_key(lambda element: element[0]).count().to_frame("key int, count long")
    counts = Counter(element[0] for element in elements(1) + elements(2))

    assert set(counts.items()) == set(map(tuple, frame.collect()))


async def test_sides_of_two_sessions_of_one_context_are_joined(spark: Any) -> None:
    left, right = (
        flow.group_by_key(lambda element: element[0]) for flow in (on_spark(spark, 1), on_spark(spark.newSession(), 2))
    )
    sides = [Flow.from_iterable(elements(n)).group_by_key(lambda element: element[0]) for n in (1, 2)]

    assert counted(await sides[0].join(sides[1]).to_list()) == counted(await left.join(right).to_list())


class OddError(Exception):
    pass


def odd(element: Element) -> int:
    raise OddError("odd")


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("broken", ["left", "right"])
async def test_a_failure_of_either_side_arrives_as_itself(spark: Any, broken: str, ordered: bool) -> None:
    bad = on_spark(spark, 1).group_by_key(odd, order_by=(lambda element: element) if ordered else None)
    good = on_spark(spark, 2).group_by_key(lambda element: element[0])
    left, right = (bad, good) if broken == "left" else (good, bad)
    with pytest.raises(OddError, match="odd") as failed:
        await left.join(right, how="left").to_list()
    assert any(note.startswith("in join(") and "odd" in note for note in failed.value.__notes__)


async def test_a_right_element_of_a_key_beyond_max_size_is_refused(spark: Any) -> None:
    sides = [on_spark(spark, n).group_by_key(lambda _: 0) for n in (1, 2)]
    with pytest.raises(LimitExceededError, match=r"join\(max_size=59\)"):
        await sides[0].join(sides[1], max_size=59).to_list()
