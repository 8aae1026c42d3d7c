"""Cancelling stops the job, and nothing outlives the stream."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reactive_aio import Flow, TaskCancelledError, schedulers

pytest.importorskip("pyspark")

from reactive_aio.spark._delivery import subscription
from reactive_aio.spark._frame import shuffling
from reactive_aio.spark._job import job
from reactive_aio.spark._job.calls import cancel_group
from reactive_aio.spark._source.arrow import Batches
from reactive_aio.spark._source.source import FromSpark
from tests.spark.jobs import active_jobs
from tests.spark.stuck import Stuck
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, only_task, until
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]


def sockets() -> int:
    """The sockets of this process, py4j's own among them."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except OSError:
            continue
    return found


@pytest.fixture
def nothing_left(sc: Any) -> Iterator[Any]:
    yield
    assert not threads()
    assert not active_jobs(sc)


@pytest.mark.usefixtures("nothing_left")
async def test_leaving_early_stops_the_job(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(10**7), 2)).map(lambda n: n)
    async with flow.open() as items:
        assert [0, 1, 2] == [await anext(items) for _ in range(3)]
        assert active_jobs(sc)

    assert not active_jobs(sc)
    assert not threads()
    assert {asyncio.current_task()} == asyncio.all_tasks()


@pytest.mark.usefixtures("nothing_left")
async def test_take_stops_the_job_and_completes(sc: Any) -> None:
    assert [0, 1, 2] == await Flow.from_spark(sc.parallelize(range(10**7), 2)).take(3).to_list()
    assert not active_jobs(sc)


@pytest.mark.usefixtures("nothing_left")
async def test_a_task_whose_filter_lets_nothing_through_hears_of_it(sc: Any, tally: Tally) -> None:
    flow = Flow.from_spark(sc.parallelize(range(10**9), 1)).map(tally.counting(lambda n: n)).filter(lambda n: n < 0)
    end = asyncio.create_task(flow.to_list())
    await until(lambda: tally.count)
    end.cancel()
    with pytest.raises(asyncio.CancelledError):
        await end

    assert not active_jobs(sc)
    count = tally.count
    await asyncio.to_thread(sc.parallelize(range(8), 3).count)
    assert count == tally.count


@pytest.mark.usefixtures("nothing_left")
async def test_a_slow_shuffle_before_the_region_is_stopped_too(spark: Any, sc: Any, tally: Tally) -> None:
    count = tally.counting(lambda n: n)

    def slow(batches: Any) -> Iterator[Any]:
        for batch in batches:
            count(1)
            threading.Event().wait()
            yield batch

    frame = spark.range(0, 10, 1, 1).mapInArrow(slow, "id long").orderBy("id")
    end = asyncio.create_task(Flow.from_spark(frame).to_list())
    await until(lambda: tally.count)
    end.cancel()
    async with asyncio.timeout(LIMIT):
        with pytest.raises(asyncio.CancelledError):
            await end

    assert not active_jobs(sc)


@pytest.mark.parametrize("kind", ["RDD", "DataFrame", "join"])
@pytest.mark.parametrize(
    ("owner", "step"), [(job, "listen"), (shuffling, "shuffled"), (FromSpark, "computation"), (Batches, "made")]
)
@pytest.mark.usefixtures("nothing_left")
async def test_a_cancel_before_a_step_of_preparing_stops_the_stages_that_begin_later(
    spark: Any, sc: Any, tally: Tally, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, kind: str
) -> None:
    reached, cancelled = threading.Event(), threading.Event()
    do = getattr(owner, step)

    def held(*args: Any) -> Any:
        reached.set()
        cancelled.wait(LIMIT)
        return do(*args)

    def noted(*args: Any) -> None:
        cancel_group(*args)
        cancelled.set()

    def slow(row: Any) -> int:
        threading.Event().wait(LIMIT / 4)  # to be killed in
        return number(row)

    def number(row: Any) -> int:
        return int(row if isinstance(row, int) else row[0])

    monkeypatch.setattr(owner, step, held)
    monkeypatch.setattr(job, "cancel_group", noted)
    data = sc.parallelize(range(3), 3) if kind == "RDD" else spark.range(0, 3, 1, 3)
    groups = Flow.from_spark(data).map(slow).map(tally.counting(number)).group_by_key(abs)
    others = Flow.from_spark(data).map(number).group_by_key(abs)
    flow: Flow[Any] = groups.join(others) if kind == "join" else groups.count()
    end = asyncio.create_task(flow.to_list())
    await until(reached.is_set)
    end.cancel()
    with pytest.raises(asyncio.CancelledError):
        await end

    assert cancelled.is_set()
    assert not tally.count


def test_the_thread_that_cancels_ends_though_the_loop_is_closed_and_hears_of_no_end() -> None:
    nothing: Any = None
    events: Any = SimpleNamespace(not_prepared=nothing, threads_ended=nothing)
    work = job.Job(nothing, "flow", nothing, events, post=lambda handle, value: None)
    work.start()  # it fails at once, without a context
    work.stop(cancel=True)
    ended = threading.Thread(target=work.join, daemon=True)
    ended.start()
    ended.join(LIMIT)

    assert not ended.is_alive()


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the worker in /proc")
@pytest.mark.parametrize(
    ("kind", "wire", "sort"),
    [
        ("RDD", "tcp", ""),
        ("DataFrame", "tcp", ""),
        ("RDD", "results", ""),
        ("DataFrame", "results", ""),
        ("RDD", "tcp", "elements"),
        ("RDD", "tcp", "keys"),
    ],
)
@pytest.mark.usefixtures("nothing_left", "lenient_spark")
async def test_a_worker_in_the_middle_of_a_function_ends_itself(
    spark: Any,
    sc: Any,
    tmp_path: Path,
    kind: str,
    wire: str,
    sort: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also in the jobs that put partitions into order, before there are any to be read."""
    monkeypatch.setattr(subscription, "HANG_UP", 0.05)
    stuck = Stuck(tmp_path / "stuck")
    data = sc.parallelize(range(9), 1) if kind == "RDD" else spark.range(0, 9, 1, 1)
    flow: Flow[Any] = Flow.from_spark(data, wire=wire)
    flow = flow if sort == "keys" else flow.map(stuck.function())
    if sort:
        flow = flow.sort_by(stuck.function() if sort == "keys" else None, max_size=10**9)
    end = asyncio.create_task(flow.to_list())
    process = await stuck.begun()
    end.cancel()
    with pytest.raises(asyncio.CancelledError):
        await end

    assert not active_jobs(sc)
    await stuck.gone(process)
    assert ("", "") == capfd.readouterr()


@pytest.mark.usefixtures("nothing_left")
async def test_no_thread_stays_in_a_worker_that_is_used_again(spark: Any, sc: Any) -> None:
    numbers = Flow.from_spark(sc.parallelize(range(3000), 3), ordered=False)
    assert 3000 == await numbers.count()
    await numbers.take(3).to_list()
    await numbers.publish_on(schedulers.spark(spark, 2)).map(str).take(3).to_list()

    def threads_there(_: Any) -> Any:
        return [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]

    assert [] == await asyncio.to_thread(sc.parallelize(range(3), 3).mapPartitions(threads_there).collect)


@pytest.mark.usefixtures("nothing_left")
async def test_cancelled_before_the_job_has_begun(sc: Any, tally: Tally) -> None:
    recorder = Recorder(request=5)
    Flow.from_spark(sc.parallelize(range(5), 1)).map(tally.counting(lambda n: n)).subscribe(recorder)
    recorder.cancel()
    await until(only_task)

    assert ["subscribe"] == recorder.kinds
    assert not tally.count


@pytest.mark.usefixtures("nothing_left")
async def test_the_failure_of_one_partition_stops_those_ahead(sc: Any) -> None:
    def check(n: Any) -> Any:
        if n == 10:
            raise OSError("no more")
        return n

    with pytest.raises(OSError, match="no more"):
        await Flow.from_spark(sc.parallelize(range(10**6), 4)).map(check).to_list()
    assert not active_jobs(sc)


@pytest.mark.usefixtures("nothing_left")
async def test_the_task_of_the_source_cancelled_by_somebody_else(sc: Any) -> None:
    recorder = Recorder(request=5)
    Flow.from_spark(sc.parallelize(range(10**6), 2)).subscribe(recorder)
    await until(lambda: len(recorder.items) >= 5)
    (task,) = asyncio.all_tasks() - {asyncio.current_task()}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    recorder.request(10**6)  # it stays behind what has arrived
    await recorder.over.wait()
    assert len(recorder.items) < 10**5
    assert type(recorder.error) is TaskCancelledError


@pytest.mark.usefixtures("nothing_left")
def test_a_loop_that_ends_in_the_middle_stops_the_job(sc: Any) -> None:
    recorder = None

    async def leave() -> None:
        nonlocal recorder
        recorder = Recorder(request=5)
        Flow.from_spark(sc.parallelize(range(10**6), 2)).subscribe(recorder)
        await until(lambda: len(recorder.items) >= 5)

    asyncio.run(leave())

    assert recorder is not None
    assert [0, 1, 2, 3, 4] == recorder.items
    assert not active_jobs(sc)


@pytest.mark.usefixtures("nothing_left")
async def test_on_a_thread_of_its_own(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(10**6), 2)).skip(5).subscribe_on(schedulers.thread("reader"))

    assert [5, 6] == await flow.take(2).to_list()
    assert not [thread for thread in threading.enumerate() if thread.name == "reader"]
    assert 999_995 == await flow.count()


@pytest.mark.usefixtures("nothing_left")
async def test_many_subscriptions_leave_no_socket_behind(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(1000), 3)).map(lambda n: n)

    async def subscribe() -> None:
        assert [0] == await flow.take(1).to_list()
        assert 1000 == await flow.count()
        gc.collect()

    for _ in range(2):
        await subscribe()
    before = sockets()
    for _ in range(4):
        await subscribe()

    # py4j keeps a few connections of its own, and lets go of those of threads that have ended when it comes to it.
    await until(lambda: sockets() <= before + 2)


@pytest.mark.usefixtures("nothing_left")
async def test_more_subscriptions_at_a_time_than_slots(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(2000), 3), prefetch=64)

    async with asyncio.TaskGroup() as group:
        ends = [group.create_task(flow.to_list()) for _ in range(5)]

    assert [list(range(2000))] * 5 == [end.result() for end in ends]


# -- the secret


@pytest.mark.parametrize("hello", ["nothing", "noise", "a wrong secret", "a bomb"])
async def test_a_connection_without_the_secret_is_dropped(
    sc: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hello: str
) -> None:
    import pickle

    from reactive_aio._remote.frames import PART, Frame
    from reactive_aio._remote.handshake import Greeter
    from reactive_aio.spark._task import connecting

    address = None
    make = connecting.Address

    def noted(*args: Any) -> Any:
        nonlocal address
        address = make(*args)
        return address

    monkeypatch.setattr(job, "Address", noted)

    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "unpickled"),)

    bomb = pickle.dumps([Bomb()])
    frame = b"".join(Frame(PART, 0, 1, pickled=bomb).encoded())
    says = {
        "nothing": b"",
        "noise": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n",
        "a wrong secret": Greeter(b"x" * 32, 0, 0).greeting + b"y" * 32 + frame,
        "a bomb": frame * 2,
    }[hello]
    async with Flow.from_spark(sc.parallelize(range(10**6), 1), prefetch=64).open() as items:
        assert 0 == await anext(items)
        assert address is not None
        assert "127.0.0.1" == address.host
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(says)
        if says:
            with suppress(ConnectionResetError):
                assert 68 >= len(await reader.read())  # no more than the reply of the handshake
        assert [1, 2, 3] == [await anext(items) for _ in range(3)]
    assert not (tmp_path / "unpickled").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.host, address.port))
    writer.close()
