"""A failure in the tasks behind a frame arrives as itself where a flow reads the frame again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, SparkJobError

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from reactive_aio._remote import failures
from reactive_aio.spark._task.sealing import MARK, MOST, own_secret, sealed, unsealed
from reactive_aio.spark.sink import Files
from tests.spark.tally import Tally

pytestmark = pytest.mark.spark

WIRES = pytest.mark.parametrize("wire", ["tcp", "results"])


class OddError(Exception):
    """Can't be made of its arguments alone."""

    def __init__(self, text: str, *, number: int) -> None:
        super().__init__(text)
        self.number = number


class LockedError(Exception):
    """Can't be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


def numbers(spark: Any, fail: Callable[[int], Any]) -> Flow[int]:
    def work(n: int) -> int:
        if n == 4:
            fail(n)
        return n

    return Flow.from_spark(spark.range(0, 6, 1, 2), as_=tuple).map(lambda row: row[0]).map(work)


def odd(_: int) -> None:
    error = OddError("no four", number=4)
    error.add_note("a note of the function")
    raise error


def failed_with(flow: Flow[Any]) -> BaseException:
    with pytest.raises(BaseException) as failed:  # noqa: PT011 - the tests look at it
        flow.run_sync()
    return failed.value


def failure(data: Any, wire: Any = "tcp") -> BaseException:
    return failed_with(Flow.from_spark(data, wire=wire))


def is_of_spark(error: BaseException | None) -> bool:
    return isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError"


@WIRES
def test_it_has_its_type_arguments_and_notes_and_the_error_of_spark_as_its_cause(spark: Any, wire: Any) -> None:
    error = failure(numbers(spark, odd).to_frame("n long"), wire)

    assert isinstance(error, OddError)
    assert (("no four",), 4) == (error.args, error.number)
    assert is_of_spark(error.__cause__)
    first, second, third = error.__notes__
    assert "a note of the function" == first
    assert second.startswith(f"in map(work), chained at {__file__}:")
    assert second.endswith("on element #1 of partition 1 of from_spark(DataFrame, as_=tuple)")
    assert third.startswith("traceback in partition 1 of from_spark(DataFrame, as_=tuple):\n")
    assert "in odd" in third


FRAMES: dict[str, Callable[[Any], Any]] = {
    "ordered": lambda frame: frame.orderBy("n"),
    "joined": lambda frame: frame.join(frame.sparkSession.range(9).withColumnRenamed("id", "n"), "n"),
    "grouped": lambda frame: frame.groupBy("n").count(),
    "again in a flow": lambda frame: Flow.from_spark(frame, as_=tuple).filter(bool).to_frame("n long"),
}


@pytest.mark.parametrize("of_spark", FRAMES)
def test_it_does_so_through_what_spark_does_with_the_frame(spark: Any, of_spark: str) -> None:
    error = failure(FRAMES[of_spark](numbers(spark, odd).to_frame("n long")))

    assert isinstance(error, OddError)
    assert any("on element #1 of partition 1 of from_spark(DataFrame" in note for note in error.__notes__)


def test_it_does_so_from_before_a_shuffle_of_the_flow_whose_tasks_are_not_repeated_for_it(
    spark: Any, tally: Tally
) -> None:
    flow = numbers(spark, tally.counting(odd)).group_by_key(lambda n: n % 2).count()
    error = failure(flow.to_frame("key long, count long"))

    assert isinstance(error, OddError)
    assert ["a note of the function", "in map(work)", "traceback in partition 1 of from_spark(DataFrame"] == [
        note.partition(",")[0] for note in error.__notes__
    ]
    assert 1 == tally.count


def test_it_does_so_through_an_rdd(spark: Any) -> None:
    error = failure(numbers(spark, odd).to_rdd())

    assert isinstance(error, OddError)
    assert is_of_spark(error.__cause__)


@WIRES
@pytest.mark.parametrize("how", ["cause", "context"])
def test_the_one_that_led_to_it_comes_along_and_the_error_of_spark_led_to_that(spark: Any, wire: Any, how: str) -> None:
    def fail(n: int) -> None:
        try:
            raise KeyError(n)
        except KeyError as before:
            error = OddError("no four", number=4)
            if how == "cause":
                error.__cause__ = before
            raise error  # noqa: B904 - it is one of the cases

    error = failure(numbers(spark, fail).to_frame("n long"), wire)
    before = error.__cause__ if how == "cause" else error.__context__

    assert isinstance(before, KeyError)
    assert (4,) == before.args
    assert is_of_spark(before.__cause__)


@WIRES
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, asyncio.CancelledError])
def test_it_is_what_the_flow_fails_with_without_a_frame(spark: Any, kind: type[BaseException], wire: Any) -> None:
    def fail(_: int) -> None:
        raise kind("no four")

    flow = numbers(spark, fail)
    expected, error = failed_with(flow), failed_with(Flow.from_spark(flow.to_frame("n long"), wire=wire))

    assert (type(expected), expected.args) == (type(error), error.args)
    assert expected.__notes__[0] == error.__notes__[0]


@dataclass(frozen=True)
class FrozenError(Exception):
    """Lets no attribute be set."""

    number: int


def frozen(n: int) -> None:
    raise FrozenError(n)


def not_text(_: int) -> None:
    raise ValueError("a name: \udc80")


def noted(_: int) -> None:
    error = ValueError("no four")
    error.add_note("of the file \udc80")
    raise error


def led(_: int) -> None:
    raise ValueError("no four") from OSError("\udc80")


HARD_TO_SHOW: dict[str, Callable[[int], None]] = {each.__name__: each for each in (frozen, not_text, noted, led)}
WAYS: dict[str, Callable[[Flow[int]], Any]] = {
    "to_frame": lambda flow: Flow.from_spark(flow.to_frame("n long")),
    "to_frame, results": lambda flow: Flow.from_spark(flow.to_frame("n long"), wire="results"),
    "to_rdd": lambda flow: Flow.from_spark(flow.to_rdd()),
    "to_frame by key": lambda flow: Flow.from_spark(
        flow.group_by_key(lambda n: n % 2).count().to_frame("key long, count long")
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HARD_TO_SHOW)
def test_one_that_spark_can_not_show_is_read_again_as_it_was_raised(spark: Any, name: str, way: str) -> None:
    flow = numbers(spark, HARD_TO_SHOW[name])
    expected, error = failed_with(flow), failed_with(WAYS[way](flow))

    assert (type(expected), expected.args) == (type(error), error.args)
    assert expected.__notes__[:-1] == error.__notes__[:-1]
    assert f"in {name}" in error.__notes__[-1]
    assert type(expected.__cause__) is type(error.__cause__) or is_of_spark(error.__cause__)


@pytest.mark.parametrize("name", HARD_TO_SHOW)
async def test_the_same_arrives_where_tasks_write(spark: Any, tmp_path: Path, name: str) -> None:
    expected: Any = numbers(spark, HARD_TO_SHOW[name])
    with pytest.raises(BaseException) as direct:  # noqa: PT011 - it is compared
        await expected.to_list()
    with pytest.raises(SparkJobError) as failed:
        await expected.to_spark(Files(spark, tmp_path), "n long", size=None)

    assert f"{type(direct.value).__name__}: " in str(failed.value)
    assert direct.value.__notes__[0] in failed.value.__notes__


def test_spark_shows_type_text_and_notes_of_one_whose_text_has_no_bytes(spark: Any) -> None:
    with pytest.raises(PySparkException) as failed:
        numbers(spark, not_text).to_frame("n long").collect()

    assert "ValueError: a name: \\udc80" in str(failed.value)
    assert "in map(work), chained at" in str(failed.value)


def large(_: int) -> None:
    from random import Random

    raise OddError(Random(1).randbytes(MOST).hex(), number=4)


def locked(_: int) -> None:
    raise LockedError("no four")


@pytest.mark.parametrize("fail", [locked, large])
def test_one_that_can_not_be_pickled_or_is_too_large_is_told_in_words(spark: Any, fail: Any) -> None:
    frame = numbers(spark, fail).to_frame("n long")
    error = failure(frame)

    assert isinstance(error, SparkJobError)
    assert "Error: " in str(error)
    assert error.__notes__[0].startswith(f"in map(work), chained at {__file__}:")
    with pytest.raises(PySparkException) as failed:
        frame.collect()
    assert MARK not in str(failed.value)


def test_a_line_of_another_driver_is_not_unpickled(spark: Any) -> None:
    frame = numbers(spark, odd).to_frame("n long")
    own_secret.cache_clear()  # as if another process had made the frame

    error = failure(frame)

    assert isinstance(error, SparkJobError)
    assert "OddError: no four" in str(error)
    assert ["a note of the function", "in map(work)"] == [note.partition(",")[0] for note in error.__notes__]


# -- the line


def packed(text: str = "x") -> bytes:
    return failures.pack(ValueError(text), "a test")


def test_a_line_is_found_in_a_text_by_the_secret_that_has_sealed_it() -> None:
    one, other = (sealed(packed(text), secret) for text, secret in (("one", b"1"), ("other", b"2")))
    text = f"Traceback\n  {one}\n\n{other} and more\n"

    assert packed("one") == unsealed(text, b"1")
    assert packed("other") == unsealed(text, b"2")
    assert None is unsealed(text, b"3")


def test_the_last_line_counts_since_a_message_may_quote_others() -> None:
    text = "\n".join(str(sealed(packed(text), b"1")) for text in ("quoted", "raised"))

    assert packed("raised") == unsealed(text, b"1")


@pytest.mark.parametrize("at", [0, 31, 32, -1])
def test_a_line_that_was_changed_is_not_believed(at: int) -> None:
    from base64 import b64decode, b64encode

    line = sealed(packed(), b"1")
    assert line is not None
    data = bytearray(b64decode(line.removeprefix(MARK)))
    data[at] ^= 1

    assert None is unsealed(MARK + b64encode(data).decode(), b"1")


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_line_that_was_cut_off_is_not_believed(cut: int) -> None:
    assert None is unsealed(str(sealed(packed(), b"1"))[:-cut], b"1")
    assert None is unsealed(MARK + "abcdefghijkl"[:cut] + "==", b"1")


def test_a_failure_that_is_only_words_is_not_sealed() -> None:
    assert None is sealed(failures.pack(LockedError("x"), "a test"), b"1")
