"""Failures arrive as what they are, once, and behind the elements before them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, RemoteError, SparkJobError
from tests.spark.noise import noise
from tests.spark.waiting import only_task, until
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio.spark._task.failures import ADVICE

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


async def recorded(flow: Flow[object]) -> Recorder:
    """All signals of a flow, once it has ended and cleaned up."""
    recorder = Recorder(request=2**63 - 1)
    flow.subscribe(recorder)
    await recorder.over.wait()
    await until(only_task)
    return recorder


async def test_the_elements_before_then_the_exception_itself(sc: Any) -> None:
    class WrongError(Exception):
        def __init__(self, n: int) -> None:
            super().__init__(n, "wrong")
            self.add_note("a note of its own")

    def check(n: Any) -> Any:
        if n == 17:
            raise WrongError(n)
        return n

    flow = Flow.from_spark(sc.parallelize(range(40), 4), prefetch=8).map(lambda n: n).map(check)
    line = sys._getframe().f_lineno - 1
    recorder = await recorded(flow)

    assert list(range(17)) == recorder.items
    assert ["subscribe", *["next"] * 17, "error"] == recorder.kinds
    error = recorder.error
    assert type(error) is WrongError
    assert (17, "wrong") == error.args
    own, where, remote = error.__notes__
    assert "a note of its own" == own
    assert f"in map(check), chained at {__file__}:{line}, on element #7 of partition 1 of from_spark(RDD)" == where
    assert remote.startswith("traceback in partition 1 of from_spark(RDD):\nTraceback (most recent call last)")
    assert "raise WrongError(n)" in remote
    assert "pyspark" not in remote


async def test_an_exception_that_cannot_be_pickled_is_stood_in_for(sc: Any) -> None:
    def check(n: Any) -> Any:
        if n == 3:
            error = ValueError("no good")
            error.lock = threading.Lock()  # type: ignore[attr-defined]
            raise error
        return n

    recorder = await recorded(Flow.from_spark(sc.parallelize(range(9), 1)).map(check))

    assert [0, 1, 2] == recorder.items
    assert type(recorder.error) is RemoteError
    assert "ValueError: no good" == str(recorder.error)
    assert "in map(check)" in recorder.error.__notes__[0]
    assert "no good" in recorder.error.__notes__[-1]


async def test_an_exception_whose_class_takes_other_arguments_than_it_keeps(sc: Any) -> None:
    class PickyError(Exception):
        def __init__(self, *, reason: str) -> None:
            super().__init__("picky", 1)
            self.reason = reason

    def check(n: Any) -> None:
        raise PickyError(reason="a reason")

    recorder = await recorded(Flow.from_spark(sc.parallelize(range(9), 1)).map(check))
    error = recorder.error

    assert isinstance(error, PickyError)
    assert ("a reason", ("picky", 1)) == (error.reason, error.args)


async def test_an_exception_that_cannot_be_unpickled_here_is_stood_in_for(sc: Any) -> None:
    class OnlyThere:
        def __reduce__(self) -> Any:
            import os

            def here(there: Any) -> None:
                if os.getpid() != there:
                    raise OSError("this is another process")

            return here, (os.getpid(),)

    def check(n: Any) -> None:
        raise ValueError("a message", OnlyThere())

    recorder = await recorded(Flow.from_spark(sc.parallelize(range(9), 1)).map(check))

    assert type(recorder.error) is RemoteError
    assert "a message" in str(recorder.error)
    assert "another process" in recorder.error.__notes__[1]


async def test_a_stop_iteration_is_no_end(sc: Any) -> None:
    def stop(n: Any) -> None:
        raise StopIteration(n)

    recorder = await recorded(Flow.from_spark(sc.parallelize(range(9), 1)).map(stop))

    assert type(recorder.error) is RuntimeError
    assert "in map(stop)" in recorder.error.__notes__[0]


async def test_what_goes_before_in_the_rdd_fails_as_itself(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize([4, 2, 0], 1).map(lambda n: 8 // n)).map(lambda n: n + 1)
    recorder = await recorded(flow)

    assert [3, 5] == recorder.items
    assert type(recorder.error) is ZeroDivisionError


async def test_an_element_that_cannot_be_pickled(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 1)).map(lambda n: threading.Lock() if n == 4 else n)
    recorder = await recorded(flow)

    assert [0, 1, 2, 3] == recorder.items
    assert type(recorder.error) is TypeError
    assert any("has to be picklable" in note for note in recorder.error.__notes__)


async def test_elements_whose_class_cannot_be_imported_here_come_as_that_class(sc: Any) -> None:
    class Local:
        def __init__(self, n: int) -> None:
            self.n = n

    found = await Flow.from_spark(sc.parallelize(range(3), 1)).map(Local).to_list()

    assert [Local] * 3 == [type(each) for each in found]
    assert [0, 1, 2] == [each.n for each in found]


async def test_a_stage_that_the_workers_cannot_load(sc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def same(n):\n    return n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # type: ignore[import-not-found]

    recorder = await recorded(Flow.from_spark(sc.parallelize(range(3), 1)).map(only_here.same))

    assert type(recorder.error) is ModuleNotFoundError
    assert "in a worker" in recorder.error.__notes__[0]
    assert ADVICE in recorder.error.__notes__


# -- of Spark itself


async def test_a_job_that_fails_for_good_signals_once(spark: Any) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("assert_true(id < 7, 'too large') as nothing", "id")
    recorder = await recorded(Flow.from_spark(frame, as_=tuple))

    assert ["error"] == [kind for kind in recorder.kinds if kind not in {"subscribe", "next"}]
    assert type(recorder.error) is SparkJobError
    assert "from_spark(DataFrame, as_=tuple)" in str(recorder.error)
    assert recorder.error.__cause__ is not None


async def test_a_job_that_cannot_begin(sc: Any, tmp_path: Path) -> None:
    recorder = await recorded(Flow.from_spark(sc.textFile(str(tmp_path / "nothing-there"))))

    assert type(recorder.error) is SparkJobError
    assert "nothing-there" in str(recorder.error)


@pytest.mark.parametrize("kind", ["rdd", "frame"])
async def test_a_killed_worker_is_retried_and_goes_on_behind_what_has_arrived(
    spark: Any, sc: Any, tmp_path: Path, kind: str
) -> None:
    def deadly(n: Any, flag: str = str(tmp_path / "killed")) -> Any:
        import os
        import signal

        if n == 7_777 and not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    if kind == "rdd":
        flow = Flow.from_spark(sc.parallelize(range(10_000), 2), prefetch=256).map(deadly)
    else:
        rows = Flow.from_spark(spark.range(0, 10_000, 1, 2), as_=tuple, prefetch=256)
        flow = rows.map(lambda row: row[0]).map(deadly)

    assert list(range(10_000)) == await flow.to_list()
    assert (tmp_path / "killed").exists()


async def test_a_worker_that_dies_each_time_is_given_up_after_the_elements_before(sc: Any) -> None:
    def deadly(n: Any) -> Any:
        import os

        return os._exit(1) if n == 600 else n

    recorder = await recorded(Flow.from_spark(sc.parallelize(range(1000), 1), prefetch=64).map(deadly))

    assert list(range(len(recorder.items))) == recorder.items
    assert 500 < len(recorder.items) <= 600
    assert type(recorder.error) is SparkJobError


KILL = """
import asyncio, os, signal, subprocess, sys, threading
from reactive_aio import Flow, SparkJobError, schedulers
from reactive_aio.spark.session import local_session
from reactive_aio.spark.sink import Files, Frames
from reactive_aio.spark.streaming import _query as query
from reactive_aio.spark.streaming import inbox
from tests.spark.jobs import active_jobs

query.STOP = 100.0  # the workers of a busy machine take ten seconds to start
spark = local_session("killed", "local[6]")
sc = spark.sparkContext
numbers = Flow.from_spark(sc.parallelize(range(10**6), 4), prefetch=128)

def slow(n):
    import time
    time.sleep(0.005)
    return n

def stuck(n):
    return threading.Event().wait() if n == 9 else n

async def leave(flow, last=200):
    async with flow.open() as items:
        async for item in items:
            if item == last:
                break
    assert not active_jobs(sc)
    assert len(asyncio.all_tasks()) == 1
    assert not [thread for thread in threading.enumerate() if "reactive_aio" in thread.name]

for _ in range(3):
    asyncio.run(leave(numbers))
    asyncio.run(leave(numbers.map(slow)))
    asyncio.run(leave(Flow.from_spark(sc.range(0, 10**5, 1, 4), wire="results")))
    asyncio.run(leave(Flow.from_spark(sc.range(0, 10**3, 1, 4), wire="results").map(slow)))
    asyncio.run(leave(Flow.range(10**6).publish_on(schedulers.spark(spark, 1), prefetch=4).map(lambda n: n)))
asyncio.run(leave(Flow.range(10**6).publish_on(schedulers.spark(spark, 1), prefetch=4).map(stuck), last=6))

async def leave_files():
    written = asyncio.Event()
    flow = Flow.range(10**9).map(lambda n: (n,))
    end = asyncio.create_task(
        flow.to_spark(Files(spark, sys.argv[1] + "/files"), "n long", size=50000, progress=lambda _: written.set())
    )
    await written.wait()
    async with asyncio.timeout(60):
        while not active_jobs(sc):
            await asyncio.sleep(0)
    end.cancel()
    await asyncio.wait([end])

async def leave_streams():
    endless = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10**5).load().select("value")
    async with Flow.from_spark(endless, as_=tuple, checkpoint=sys.argv[1] + "/read").open() as batches:
        async with (await anext(batches)).rows.open() as rows:
            await anext(rows)
    async with inbox(tuple) as own:
        await own.start(endless, checkpoint=sys.argv[1] + "/written")
        async with own.batches.open() as batches, (await anext(batches)).rows.open() as rows:
            await anext(rows)

asyncio.run(leave_files())
asyncio.run(leave_streams())
print("left", flush=True)

async def kill():
    found = subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True)
    at_work = {name: asyncio.Event() for name in ("source", "results", "region", "sink")}

    def working(name):
        return lambda _: at_work[name].set()

    async def sink():
        flow = Flow.range(10**9).map(lambda n: (n,))
        await flow.to_spark(Frames(spark, lambda frame, id: frame.count()), "n long", size=10, progress=working("sink"))

    flows = {
        "source": numbers.map(slow).for_each(working("source")),
        "results": Flow.from_spark(sc.range(0, 10**4, 1, 10**3), wire="results").map(slow).for_each(working("results")),
        "region": Flow.range(10**9).publish_on(schedulers.spark(spark, 1)).map(slow).for_each(working("region")),
        "sink": sink(),
    }
    ends = {name: asyncio.create_task(flow) for name, flow in flows.items()}
    for event in at_work.values():
        await event.wait()
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
    for name, end in ends.items():
        try:
            await end
        except SparkJobError as error:
            print(name, type(error).__name__, flush=True)
    assert len(asyncio.all_tasks()) == 1
    assert not [thread for thread in threading.enumerate() if "reactive_aio" in thread.name]

print("killing", file=sys.stderr, flush=True)
asyncio.run(asyncio.wait_for(kill(), 120))
os._exit(0)  # Spark's own shutdown wants to ask the JVM
"""


@pytest.mark.long
def test_cancelling_makes_no_noise_and_a_dead_jvm_is_a_typed_error_for_whatever_runs(tmp_path: Path) -> None:
    """In a process of its own, whose JVM may be killed and whose stderr can be read."""
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ},
    )

    failed = [f"{name} SparkJobError" for name in ("source", "results", "region", "sink")]
    assert ["left", *failed] == done.stdout.splitlines(), done.stderr
    quiet = done.stderr.partition("killing")[0]
    assert not noise(quiet), quiet
