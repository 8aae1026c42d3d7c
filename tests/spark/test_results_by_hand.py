"""The account of the demand where elements are results, with the jobs and the region played by hand."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyspark")

from reactive_aio import SparkJobError
from reactive_aio._remote.frames import PART, Frame
from reactive_aio.spark._results.subscription import ResultsSubscription
from tests.spark.waiting import until


class ByHand:
    """The jobs, the region and its loop in one."""

    def __init__(self, *chunks: list[Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.context = contextvars.copy_context()
        self.chunks = chunks
        self.asked = False
        self.delivered: list[list[Any]] = []
        self.over = asyncio.Event()
        self.tasks = self.done = 0
        self.source = "from_spark(RDD)"
        self.subscription = ResultsSubscription(cast("Any", self), cast("Any", self))

    @property
    def count(self) -> int:
        return sum(map(len, self.delivered))

    @property
    def jobs(self) -> Any:
        return self

    def enter(self) -> None:
        pass

    def frames(self) -> Iterator[bytes]:
        self.asked = True
        return (b"".join(Frame(PART, 0, len(each), pickled=pickle.dumps(each)).encoded()) for each in self.chunks)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.create_task(coroutine)

    def show_tasks(self, tasks: object) -> None:
        pass

    def on_chunk(self, items: list[Any]) -> None:
        self.delivered.append(items)

    def on_complete(self) -> None:
        self.over.set()


async def test_nothing_is_asked_of_spark_before_something_is_wanted() -> None:
    hand = ByHand([1])
    hand.subscription.begin()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not hand.asked

    hand.subscription.request(1)
    await hand.over.wait()
    assert [[1]] == hand.delivered


async def test_no_more_is_delivered_than_was_requested() -> None:
    hand = ByHand([1, 2, 3, 4, 5], [6, 7])
    hand.subscription.begin()
    wanted = 0
    for n in (2, 1, 3):
        wanted += n
        hand.subscription.request(n)
        await until(lambda: hand.count >= wanted)  # noqa: B023 - it is asked while it is bound
        assert wanted == hand.count
    assert not hand.over.is_set()
    hand.subscription.request(9)
    await hand.over.wait()

    assert [[1, 2], [3], [4, 5], [6], [7]] == hand.delivered


async def test_a_session_of_spark_connect_that_is_stopped_meanwhile_is_named() -> None:
    class Session:
        is_stopped = True

    class Source:
        connect = True
        data = SimpleNamespace(sparkSession=Session())

        def __str__(self) -> str:
            return "from_spark(DataFrame)"

    class Stopped(ByHand):
        def frames(self) -> Iterator[bytes]:
            yield from ()
            raise ValueError("<_MultiThreadedRendezvous of RPC that terminated with: >")

        def on_error(self, error: BaseException) -> None:
            self.failure = error
            self.over.set()

    Session.__module__ = "pyspark.sql.connect.session"
    hand = Stopped()
    hand.source = cast("Any", Source())
    hand.subscription.begin()
    hand.subscription.request(1)
    await hand.over.wait()

    assert isinstance(hand.failure, SparkJobError)
    assert "the Spark job of from_spark(DataFrame) failed: its session has been stopped" == str(hand.failure)
    assert isinstance(hand.failure.__cause__, ValueError)
