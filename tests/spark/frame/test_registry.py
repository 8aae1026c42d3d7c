"""Each operator there is, behind a flow on Spark: a frame has what the event loop gives, or it is refused by name and line."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError
from tests.registry import REGISTRY, Entry, Settings

pytest.importorskip("pyspark")

pytestmark = pytest.mark.spark

N = 12
OPERATORS = [entry for entry in REGISTRY if entry.kind == "operator" and not entry.threaded and not entry.pool]
RUN = {
    "concat", "do_on_next", "filter", "filter-half", "filter_when", "flat_map_iterable", "flat_map_iterable-some-empty", "group_by_key",
    "group_by_key-in order", "ignore_elements", "map", "map_async", "map_batches", "map_not_none", "of_type", "repartition",
    "sample_fraction", "then",
}  # fmt: skip
"""The entries whose operators run in Spark's tasks."""
COMPLETES = "handle"
"""The entry that begins with a function that is refused when it is called, since it completes the flow."""


def built(entry: Entry) -> Flow[str]:
    return entry.make(N, lambda flow: flow, Settings()).map(repr)


@pytest.fixture
def on_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the entries, which begin with a range, read one on Spark."""

    def numbers(*bounds: int) -> Flow[int]:
        start, stop = (0, *bounds)[-2:]
        return Flow.from_spark(spark.range(start, stop, 1, 2), as_=tuple).map(lambda row: row[0])

    monkeypatch.setattr(Flow, "range", numbers)


@pytest.mark.usefixtures("on_spark")
@pytest.mark.parametrize("entry", [each for each in OPERATORS if str(each) not in {*RUN, COMPLETES}], ids=str)
def test_it_is_refused_by_name_and_line(entry: Entry) -> None:
    with pytest.raises(
        UnsupportedOnSparkError, match=r", chained at .*registry\w*\.py:\d+, can't be run by to_frame\(\): "
    ):
        built(entry).to_frame("text string")


@pytest.mark.parametrize("entry", [each for each in OPERATORS if str(each) in RUN], ids=str)
def test_a_frame_has_what_the_event_loop_gives(request: pytest.FixtureRequest, entry: Entry) -> None:
    expected = built(entry).run_sync()
    request.getfixturevalue("on_spark")
    found = [row.text for row in built(entry).to_frame("text string").collect()]

    assert Counter(expected) == Counter(found)
    assert entry.method in {"repartition", "group_by_key"} or expected == found
