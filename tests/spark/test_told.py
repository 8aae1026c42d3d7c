"""The errors that stand for a failure of Spark's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JNetworkError

from reactive_aio import DriverUnreachableError, Flow, SparkJobError, schedulers
from reactive_aio.spark._job.calls import JobGroup
from reactive_aio.spark._job.told import ENDED, TOO_SMALL, failure_of, told
from reactive_aio.spark._task.failures import ADVICE

pytestmark = pytest.mark.spark


FROM_THE_WORKER = """[STREAM_FAILED] Query [id = 1] terminated with exception: [RUNTIME] Failed to perform latestOffset: \
Traceback (most recent call last):
  File "runner.py", line 281, in main
ValueError: old

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "datasource.py", line 155, in ask
    raise SparkJobError(data.decode())
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
SparkJobError: the flow of the stream failed: ValueError: 3
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Logical Plan:
+- ~StreamingDataSourceV2ScanRelation[id#0L] reactive_aio
"""
FROM_A_DISK = """An error occurred while calling o1.parquet.
: org.apache.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.
	at org.apache.spark.Some
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
	at x
Caused by: java.io.IOException: No space left on device
	... 43 more
"""


class CausedError(Exception):
    """As PySpark's are that know what they came from."""

    def __init__(self, text: str, cause: Exception | None = None) -> None:
        super().__init__(text)
        self._cause = cause


class GoneError(Exception):
    """As py4j's are that ask a JVM for their message which is no more."""

    def __str__(self) -> str:
        raise ConnectionError


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("An error occurred while calling o1.x.\n: org.Some: no space\n\tat x", "org.Some: no space"),
        ("it failed:\n  at x\n\nValueError: 3", "it failed: ValueError: 3"),
        (
            "An error occurred while calling o1.x. Trace:\npy4j.Py4JException: Method x does not exist\n\tat y\n\tat z",
            "py4j.Py4JException: Method x does not exist",
        ),
        ("one\ntwo", "one"),
        ("", "RuntimeError"),
        (
            FROM_THE_WORKER,
            (
                "[STREAM_FAILED] Query [id = 1] terminated with exception: [RUNTIME] Failed to perform latestOffset: "
                "SparkJobError: the flow of the stream failed: ValueError: 3"
            ),
        ),
        (
            FROM_A_DISK,
            (
                "org.apache.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows. "
                "(caused by java.io.IOException: No space left on device)"
            ),
        ),
    ],
)
def test_a_line_of_what_there_is(text: str, line: str) -> None:
    assert line == told(RuntimeError(text))


def test_what_it_all_began_with_is_told_once() -> None:
    began = CausedError("[COMMIT] not all of the state\nhas been committed")
    told_by_its_type = CausedError("org.apache.SparkException: it failed", began)

    assert "it failed (caused by [COMMIT] not all of the state)" == told(CausedError("it failed", told_by_its_type))
    assert "it failed: [COMMIT] not all of the state" == told(
        CausedError("it failed: [COMMIT] not all of the state", began)
    )
    assert "it failed" == told(CausedError("it failed", CausedError("org.apache.SparkException: it failed")))


def test_a_failure_whose_message_went_with_the_jvm_is_told_by_its_name() -> None:
    assert "GoneError" == told(GoneError())


@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_a_session_that_has_been_stopped_is_named_as_the_cause(
    sc: Any, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    flow = Flow.from_spark(sc.parallelize([1], 1), wire=wire)
    monkeypatch.setattr(sc, "_jsc", None)  # as SparkContext.stop does

    with pytest.raises(SparkJobError, match="its session has been stopped"):
        await flow.to_list()


async def test_a_region_fed_from_the_loop_says_so_too(spark: Any, sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow.range(3).publish_on(schedulers.spark(spark, 1)).map(str)
    monkeypatch.setattr(sc, "_jsc", None)

    with pytest.raises(SparkJobError, match="its session has been stopped"):
        await flow.to_list()


async def test_workers_of_another_version_are_named_as_the_cause(
    spark: Any, sc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive_aio._remote.handshake.MAGIC", b"rea0")
    for flow in (
        Flow.from_spark(sc.parallelize([1], 1)),
        Flow.range(3).publish_on(schedulers.spark(spark, 1)).map(str),
    ):
        with pytest.raises(DriverUnreachableError, match=r"another version of the credit boundary.*'rea0'"):
            await flow.to_list()


def test_a_job_that_is_submitted_behind_the_cancel_does_not_run(sc: Any) -> None:
    jobs = JobGroup(sc, "cancelled")
    try:
        jobs.enter()
        jobs.cancel()

        with pytest.raises(Exception, match="SPARK_JOB_CANCELLED"):
            sc.parallelize([1], 1).count()
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            sc.setLocalProperty(name, None)


@pytest.mark.parametrize(
    ("raised", "notes"),
    [("ModuleNotFoundError: No module named 'pyarrow'", [ADVICE]), ("ValueError: No module named 'pyarrow'", [])],
)
def test_a_module_that_workers_do_not_have_is_laid_to_their_python(raised: str, notes: list[str]) -> None:
    from_worker = (
        f"An exception was thrown from the Python worker: Traceback (most recent call last):\n  File\n{raised}\n"
    )
    failure = failure_of("the Spark job of x failed", RuntimeError(from_worker))

    assert raised in str(failure)
    assert notes == getattr(failure, "__notes__", [])


# -- what to do about it


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ConnectionRefusedError(111, "Connection refused"), [ENDED]),
        (Py4JNetworkError("Answer from Java side is empty"), [ENDED]),
        (Exception("Job 3 cancelled because SparkContext was shut down"), [ENDED]),
        (
            Exception("An error occurred while calling o65.toRdd.\n: java.lang.OutOfMemoryError: Java heap space"),
            [TOO_SMALL],
        ),
        (Exception("in a worker: ConnectionRefusedError: [Errno 111] Connection refused"), []),
    ],
)
def test_a_jvm_that_has_ended_is_named_and_one_without_memory(error: Exception, advice: list[str]) -> None:
    """A function of the user's may be refused a connection as well, by another server."""
    assert advice == getattr(failure_of("it failed", error), "__notes__", [])
