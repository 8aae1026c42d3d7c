"""The streaming query behind a flow, where the one of Spark is played: whose it is, how it ends, and who hears of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

from reactive_aio import Flow, SparkJobError, hooks
from reactive_aio._plan import Elsewhere
from reactive_aio.extend import flow_of
from tests.spark.streaming.writer import Process, hang_up_all
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio.spark._task.rows import Reading
from reactive_aio.spark.streaming import MicroBatch, WrittenBatch, _query, inbox
from reactive_aio.spark.streaming._query import CLAIMED
from reactive_aio.spark.streaming._source import FromSparkStream, StreamSubscription

pytestmark = pytest.mark.spark

LIMIT = 20.0


@define(eq=False)
class Played:
    """A query of Spark's, which makes one micro-batch after another until the test stops it."""

    call: Callable[[Any, int], None]
    stuck: threading.Event | None = None
    """Where it does not stop as long as this is not set."""
    id: str = "query"
    committed: list[int] = field(factory=list[int])
    _told: threading.Event = field(factory=threading.Event)

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return not self._told.is_set()

    def stop(self) -> None:
        self._told.set()

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        try:
            while self.isActive:
                self.call(None, len(self.committed))
                self.committed.append(len(self.committed))
        finally:
            if self.stuck is not None:
                self.stuck.wait(LIMIT)


@frozen(eq=False)
class FromPlayed(FromSparkStream):
    """The source, of queries that are played."""

    stuck: threading.Event | None = None
    queries: list[Played] = field(factory=list[Played])

    @property
    def elsewhere(self) -> Elsewhere:
        return Elsewhere("a stage", "played", "micro-batches")

    def start(self, call: Any) -> Any:
        self.queries.append(Played(call, self.stuck))
        return self.queries[-1]

    def caller(self) -> Any:
        return None  # it calls without py4j


def batches(checkpoint: object, stuck: threading.Event | None = None) -> tuple[Flow[MicroBatch[Any]], list[Played]]:
    data: Any = None
    source = FromPlayed(data, Reading(tuple), str(checkpoint), "append", {}, 8192, ordered=True, stuck=stuck)
    return flow_of(source), source.queries


# -- a failure of the subscriber


@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_the_subscriber_fails_with_it_is_not_told_of_besides(tmp_path: Path, cancelled: bool) -> None:
    dropped: list[BaseException] = []
    taken = asyncio.Event()

    async def fail(batch: MicroBatch[Any]) -> None:
        async with batch:
            taken.set()
            if cancelled:
                await asyncio.Event().wait()
            raise KeyError("no such sensor")

    flow, _ = batches(tmp_path)
    with hooks.using(on_error_dropped=dropped.append):
        running = asyncio.create_task(flow.for_each(fail))
        await asyncio.wait([running, asyncio.create_task(taken.wait())], return_when=asyncio.FIRST_COMPLETED)
        if cancelled:
            running.cancel()
        with pytest.raises(asyncio.CancelledError if cancelled else KeyError):
            await running

    assert [] == dropped


@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_the_subscriber_of_an_inbox_fails_with_it_is_not_told_of_besides(cancelled: bool) -> None:
    dropped: list[BaseException] = []
    taken = asyncio.Event()

    async def fail(batch: WrittenBatch[Any]) -> None:
        async with batch:
            taken.set()
            if cancelled:
                await asyncio.Event().wait()
            raise KeyError("no such sensor")

    async with inbox(tuple) as own:
        await (await Process.task(own.options)).begun()
        with hooks.using(on_error_dropped=dropped.append):
            running = asyncio.create_task(own.batches.for_each(fail))
            await taken.wait()
            if cancelled:
                running.cancel()
            with pytest.raises(asyncio.CancelledError if cancelled else KeyError):
                await running

    await hang_up_all()
    assert [] == dropped


@pytest.mark.parametrize("late", [False, True])
async def test_one_that_asks_for_more_all_the_same_is_told_when_the_query_has_ended(tmp_path: Path, late: bool) -> None:
    flow, queries = batches(tmp_path)
    recorder = Recorder(request=1)
    flow.subscribe(recorder)
    while not recorder.items:
        await asyncio.sleep(0.001)
    recorder.items[0].fail(OSError("the disk is full"))
    while late and len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0.001)
    assert ["subscribe", "next"] == recorder.kinds
    recorder.request(1)
    async with asyncio.timeout(LIMIT):
        await recorder.over.wait()

    assert "the disk is full" == str(recorder.error)
    assert not queries[0].isActive
    assert [] == queries[0].committed


async def test_a_query_that_ends_just_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, queries = batches(tmp_path)

    class Late(threading.Thread):
        """A thread that starts when the query has ended, if it is to stop it."""

        def start(self) -> None:
            if self.name == "reactive_aio-stream-1":
                queries[0].stop()
                batch.acknowledge()
                (leading,) = (each for each in threading.enumerate() if each.name == "reactive_aio-stream-0")
                leading.join(LIMIT)
            super().start()

    monkeypatch.setattr(_query, "Thread", Late)
    async with asyncio.timeout(LIMIT), flow.open() as items:
        batch = await anext(items)
    assert [0] == queries[0].committed
    assert str(tmp_path) not in CLAIMED


# -- a checkpoint


async def test_a_checkpoint_is_for_one_query_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, _ = batches("checkpoint")
    second, started = batches(tmp_path / "checkpoint")
    async with first.open() as items:
        batch = await anext(items)
        with pytest.raises(SparkJobError, match=r"a checkpoint serves one query at a time\. Use another checkpoint"):
            await second.first()
        batch.acknowledge()
        assert 1 == (await anext(items)).id

    assert [] == started
    assert 0 == (await second.first()).id


@pytest.mark.parametrize("written", ["link", "{}/link", "file:{}/checkpoint", "file://{}/link/"])
async def test_a_checkpoint_that_is_written_in_another_way_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "link").symlink_to("checkpoint")
    first, _ = batches(tmp_path / "checkpoint")
    second, started = batches(written.format(tmp_path))
    async with first.open() as items:
        (await anext(items)).acknowledge()
        with pytest.raises(SparkJobError, match=r"a checkpoint serves one query at a time\. Use another checkpoint"):
            await second.first()
        (await anext(items)).acknowledge()

    assert [] == started


async def test_the_next_query_of_a_checkpoint_waits_for_the_end_of_one_that_was_stopped(tmp_path: Path) -> None:
    stuck = threading.Event()
    first, running = batches(tmp_path, stuck)
    second, started = batches(tmp_path)
    cancelled, recorder = Recorder(request=1), Recorder(request=1)
    first.subscribe(cancelled)
    while not cancelled.items:
        await asyncio.sleep(0.001)
    cancelled.cancel()
    while running[0].isActive:
        await asyncio.sleep(0.001)
    second.subscribe(recorder)
    await asyncio.to_thread(lambda: None)
    assert [] == started

    stuck.set()
    while not recorder.items and not recorder.over.is_set():
        await asyncio.sleep(0.001)
    recorder.cancel()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0.001)

    assert recorder.items


# -- an end that does not come


async def test_a_query_that_does_not_stop_is_given_up_in_time_and_nobody_hears_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive_aio.spark.streaming._query.STOP", 0.01)
    dropped: list[BaseException] = []
    told: list[object] = []
    stuck = threading.Event()
    flow, _ = batches(tmp_path, stuck)
    ended = StreamSubscription.ended

    def noted(self: StreamSubscription, error: SparkJobError | None) -> None:
        told.append(error)
        ended(self, error)

    monkeypatch.setattr(StreamSubscription, "ended", noted)
    with (
        hooks.using(on_error_dropped=dropped.append),
        pytest.raises(SparkJobError, match=r"did not stop within 0.01 s"),
    ):
        async with flow.open() as items:
            await anext(items)
    stuck.set()
    while CLAIMED:
        await asyncio.sleep(0.001)
    for thread in threading.enumerate():
        if thread.name.startswith("reactive_aio-stream"):
            await asyncio.to_thread(thread.join, LIMIT)
    await asyncio.sleep(0)
    assert ["SparkJobError"] == [type(error).__name__ for error in told]
    assert [] == dropped


# -- where an inbox is found


async def test_an_inbox_listens_where_it_is_told_to() -> None:
    async with inbox(tuple) as own:
        port = int(own.options["address"].rpartition(":")[2])
    async with inbox(tuple, port=port) as own:
        assert f"127.0.0.1:{port}" == own.options["address"]
        with pytest.raises(OSError, match="in use"):
            async with inbox(tuple, port=port):
                pass
    with pytest.raises(ValueError, match=r"inbox\(port=65536\): port is a TCP port"):
        async with inbox(tuple, port=65536):
            pass
