"""Sessions of Spark Connect: what works, and what is refused when the flow is built, and why.

These imitate one, for its packages may not be there; on a real one is tested with the cluster.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructType

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers
from reactive_aio.spark.sink import Files, Frames, Table

pytestmark = pytest.mark.spark


class Session:
    """As the session of Spark Connect is: without a context."""

    is_stopped = False


class Frame:
    """As a frame of Spark Connect is."""

    schema = StructType().add("id", LongType())
    columns = ("id",)
    sparkSession = Session()  # noqa: N815 - Spark's name

    def __init__(self, *, streaming: bool = False) -> None:
        self.isStreaming = streaming

    def mapInArrow(self, fn: Any, schema: str) -> Any:  # noqa: N802 - Spark's name
        raise NotImplementedError


Session.__module__ = "pyspark.sql.connect.session"
Frame.__module__ = "pyspark.sql.connect.dataframe"


def test_the_plan_of_a_frame_says_how_it_is_read() -> None:
    plan = Flow.from_spark(Frame(), as_=tuple, prefetch=64).map(len).describe()  # type: ignore[call-overload]

    assert (
        "R1  Spark Connect           from_spark(DataFrame, as_=tuple, wire='results') -> map(len)\n"
        " |  results of jobs, prefetch 64\n"
    ) in plan
    assert (
        "R1  partitions as Spark plans them, one after the other\n"
        "R1  Arrow into the workers, pickled chunks as the results of a Connect server"
    ) in plan


def test_its_workers_cannot_connect() -> None:
    with pytest.raises(UnsupportedOnSparkError, match=r"wire='tcp'.*classic session.*wire='results'.*\.master"):
        Flow.from_spark(Frame(), wire="tcp")  # type: ignore[call-overload]


@pytest.mark.parametrize("checkpoint", [None, "a folder"])
def test_a_stream_is_refused(checkpoint: Any) -> None:
    with pytest.raises(UnsupportedOnSparkError, match=r"micro-batches can't reach.*\.master"):
        Flow.from_spark(Frame(streaming=True), checkpoint=checkpoint)  # type: ignore[call-overload]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(TypeError, match="a DataFrame or an RDD of PySpark, not Session"):
        Flow.from_spark(Session())  # type: ignore[call-overload]


def test_a_region_fed_from_the_loop_is_refused() -> None:
    with pytest.raises(UnsupportedOnSparkError, match=r"schedulers\.spark.*classic session.*\.master"):
        schedulers.spark(Session())  # type: ignore[arg-type]


def test_files_are_refused_and_tables_are_not() -> None:
    session: Any = Session()

    with pytest.raises(UnsupportedOnSparkError, match=r"Files.*classic session.*Table"):
        Files(session, "a folder")
    assert "a_table" == Table(session, "a_table").table
    assert Frames(session, print).fn is print


async def test_streams_are_refused_both_ways_before_anything_is_asked_of_the_server() -> None:
    from reactive_aio.spark.streaming import feed, inbox, register

    session: Any = Session()
    frame: Any = Frame(streaming=True)

    with pytest.raises(UnsupportedOnSparkError, match=r"feed\(\) needs a classic session.*\.master"):
        async with feed(Flow.range(3), session, "n long"):
            pass
    async with inbox() as own:
        with pytest.raises(UnsupportedOnSparkError, match=r"Inbox\.start\(\) needs a classic session"):
            await own.start(frame, checkpoint="a folder")
    with pytest.raises(UnsupportedOnSparkError, match=r"register\(\) needs a classic session"):
        register(session)
