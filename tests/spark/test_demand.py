"""Never more on the way than was asked for, however large a partition; and the loop is never blocked."""

from __future__ import annotations

import asyncio
import mmap
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, only_task, until
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.mark.parametrize("partitions", [1, 2, 5])
async def test_no_more_is_produced_than_requested_and_prefetched(sc: Any, tally: Tally, partitions: int) -> None:
    recorder = Recorder(request=10)
    Flow.from_spark(sc.parallelize(range(100_000), partitions), prefetch=64).map(tally.counting(lambda n: n)).subscribe(
        recorder
    )
    await until(lambda: len(recorder.items) == 10)

    # All credit is used up, where there is a partition ahead too; then another job has run, and nothing has moved.
    await until(lambda: tally.count == 64)
    await asyncio.to_thread(sc.parallelize(range(8), 4).count)
    assert list(range(10)) == recorder.items
    assert 64 == tally.count

    recorder.request(40)  # 50 are consumed, more than three quarters of what was prefetched: 50 more are asked for
    await until(lambda: len(recorder.items) == 50)
    await until(lambda: tally.count == 114)
    await asyncio.to_thread(sc.parallelize(range(8), 4).count)
    assert 114 == tally.count

    recorder.cancel()
    await until(only_task)
    assert 114 == tally.count


async def test_stop_and_wait(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(40), 4), prefetch=1)

    assert list(range(40)) == await flow.to_list()


@pytest.mark.parametrize("prefetch", [2, 3, 8, 33, 1000])
async def test_all_comes_for_any_prefetch(sc: Any, prefetch: int) -> None:
    flow = Flow.from_spark(sc.parallelize(range(3000), 6), prefetch=prefetch).filter(lambda n: n % 3)

    assert [n for n in range(3000) if n % 3] == await flow.to_list()


async def test_a_large_partition_never_runs_ahead_of_its_subscriber(sc: Any, tmp_path: Path) -> None:
    rows, prefetch = 2_000_000, 1024
    shared = tmp_path / "produced"
    shared.write_bytes(bytes(8))

    def produced(items: Any, path: str = str(shared)) -> Iterator[Any]:
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 8) as view:
            for at, item in enumerate(items, 1):
                view[:] = struct.pack("q", at)
                yield item

    most = 0
    with shared.open("r+b") as file, mmap.mmap(file.fileno(), 8) as view:

        def consume(taken: int, _: int) -> int:
            nonlocal most
            if not taken % 64:
                most = max(most, struct.unpack("q", view[:])[0] - taken)
            return taken + 1

        flow = Flow.from_spark(sc.parallelize(range(rows), 1).mapPartitions(produced), prefetch=prefetch)
        assert rows == await flow.reduce(consume, 0)

    assert 0 < most <= prefetch


async def test_a_slow_function_is_not_waited_for_to_fill_a_chunk(sc: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def blocked(n: Any, gate: str = str(gate)) -> Any:
        import os
        import time

        while n == 3 and not os.path.exists(gate):
            time.sleep(0.01)
        if n < 3:
            time.sleep(0.01)
        return n

    recorder = Recorder(request=10)
    Flow.from_spark(sc.parallelize(range(5), 1)).map(blocked).subscribe(recorder)

    await until(lambda: recorder.items == [0, 1, 2])
    gate.touch()
    await recorder.over.wait()

    assert [0, 1, 2, 3, 4] == recorder.items
    await until(only_task)


async def test_the_loop_turns_while_the_jvm_is_asked(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from reactive_aio.spark._source.source import FromSpark

    turns = threading.Semaphore(0)
    ask = FromSpark.java_rdd

    def slow(self: Any, task: Any) -> Any:
        for _ in range(100):
            assert turns.acquire(timeout=LIMIT), "the event loop stood still"
        return ask(self, task)

    async def tick() -> None:
        while True:
            turns.release()
            await asyncio.sleep(0)

    monkeypatch.setattr(FromSpark, "java_rdd", slow)
    ticker = asyncio.create_task(tick())

    assert 500 == await Flow.from_spark(sc.parallelize(range(500), 2)).count()
    ticker.cancel()


@pytest.mark.parametrize("kind", ["rdd", "frame"])
async def test_no_call_into_the_jvm_is_made_on_the_thread_of_the_loop(
    spark: Any, sc: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from py4j.clientserver import ClientServerConnection

    data = sc.parallelize(range(500), 2) if kind == "rdd" else spark.range(500)
    callers: set[str] = set()
    send = ClientServerConnection.send_command

    def watched(self: Any, command: Any) -> Any:
        callers.add(threading.current_thread().name)
        return send(self, command)

    # To build it and to show the whole of its plan takes such calls.
    flow = Flow.from_spark(data).map(lambda n: n)
    assert "Spark local" in flow.describe()

    monkeypatch.setattr(ClientServerConnection, "send_command", watched)

    assert repr(flow).startswith("Flow.from_spark(")
    assert 500 == await flow.count()
    assert callers
    assert threading.current_thread().name not in callers
    callers.clear()
    async with flow.open() as items:
        await anext(items)
    assert threading.current_thread().name not in callers
