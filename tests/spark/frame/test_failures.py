"""A failure in the tasks behind a frame fails Spark's job. The text names the exception, the operator and its line."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, UnsupportedOnSparkError
from reactive_aio.extend import Stage
from tests.spark.tally import Tally

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from reactive_aio.spark._task.sealing import MARK

pytestmark = pytest.mark.spark


class FalsyError(Exception):
    """Can't be asked for its truth."""

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class MuteError(Exception):
    """Can't be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


KINDS: dict[str, type[BaseException]] = {
    each.__name__: each
    for each in (
        ValueError,
        StopIteration,
        StopAsyncIteration,
        GeneratorExit,
        SystemExit,
        KeyboardInterrupt,
        asyncio.CancelledError,
        FalsyError,
        MuteError,
    )
}


def numbers(spark: Any, partitions: int = 2) -> Flow[int]:
    return Flow.from_spark(spark.range(0, 6, 1, partitions), as_=tuple).map(lambda row: row[0])


def failing(kind: str, at: int = 4) -> Any:
    def fail(n: int) -> int:
        if n == at:
            raise KINDS[kind]("no four")
        return n

    return fail


def failure(frame: Any) -> str:
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    return str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_sparks_error_tells_the_exception_and_the_operator_with_its_line(spark: Any, kind: str) -> None:
    line = sys._getframe().f_lineno + 1
    frame = numbers(spark).map(failing(kind)).to_frame("n long")

    text = failure(frame)

    assert kind in text
    assert f"in map(fail), chained at {__file__}:{line}, on element #1 of partition 1 of from_spark(DataFrame" in text


def test_what_is_awaited_fails_likewise(spark: Any) -> None:
    async def fail(n: int) -> int:
        if n == 4:
            raise ValueError("no four")
        return n

    line = sys._getframe().f_lineno + 1
    text = failure(numbers(spark).map_async(fail, max_concurrency=2).to_frame("n long"))

    assert "ValueError: no four" in text
    assert f"in map_async(fail, 2), chained at {__file__}:{line}" in text
    assert "partition 1 of from_spark(DataFrame, as_=tuple)" in text


def test_the_line_for_the_reader_of_the_frame_is_the_last_of_the_exception(spark: Any) -> None:
    text = failure(numbers(spark).map(failing("ValueError")).to_frame("n long"))

    shown = text[text.index("ValueError: no four") :].rstrip().splitlines()
    assert ["ValueError: no four", "in map(fail)", MARK] == [
        shown[0],
        shown[1].partition(",")[0],
        shown[2][: len(MARK)],
    ]


def test_an_element_that_does_not_fit_is_told_by_place_and_column(spark: Any) -> None:
    text = failure(numbers(spark).map(lambda n: (n, n if n == 4 else str(n))).to_frame("n long, name string"))

    assert "SchemaMismatchError: element #1, field name: 4 is not string: it is of type int" in text
    assert "while the elements of partition 1 of from_spark(DataFrame, as_=tuple)" in text


@attrs.frozen
class Holding(Stage[int, int]):
    """A stage that fails when it lets go."""

    def apply(self, items: Any) -> Any:
        yield from items

    def close(self) -> None:
        raise ValueError("not let go")


def test_what_fails_in_the_cleanup_fails_the_job(spark: Any) -> None:
    assert "ValueError: not let go" in failure(numbers(spark).then(Holding()).to_frame("n long"))


def test_what_fails_in_the_cleanup_behind_a_failure_is_a_note_of_that(spark: Any) -> None:
    # In one partition, since each task lets go, and Spark tells the failure of the first that failed.
    text = failure(numbers(spark, partitions=1).map(failing("ValueError")).then(Holding()).to_frame("n long"))

    assert "ValueError: no four" in text
    assert "a further failure: ValueError: not let go" in text


def test_a_flow_that_a_function_would_complete_fails(spark: Any) -> None:
    line = sys._getframe().f_lineno + 1
    text = failure(numbers(spark).handle(lambda n, sink: sink.complete()).to_frame("n long"))

    assert UnsupportedOnSparkError.__name__ in text
    assert "sink.complete() can't end the whole flow" in text
    assert f"in handle(<lambda>), chained at {__file__}:{line}" in text


def test_a_task_that_spark_repeats_runs_the_functions_again(spark: Any, tally: Tally) -> None:
    counted = tally.counting(abs)
    path = str(tally.path)

    def fails_at_first(n: int) -> int:
        counted(n)
        with open(path, "rb") as file:
            if len(file.read()) == 3:
                raise ValueError("not yet")
        return n

    frame = Flow.from_spark(spark.range(0, 3, 1, 1), as_=tuple).map(lambda row: row[0]).map(fails_at_first)

    assert [0, 1, 2] == [row.n for row in frame.to_frame("n long").collect()]
    assert 6 == tally.count
