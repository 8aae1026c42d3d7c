"""A machine that vanishes while it works for a flow: nothing comes from it any more, and no connection is closed."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.spark._task import connecting
from tests.spark_cluster.hosts import WORKERS, Hosts
from tests.spark_cluster.profile import ON_HOSTS

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import Consumable, feed, inbox

pytestmark = [*ON_HOSTS, pytest.mark.usefixtures("nothing_left")]

N = 10_000
NOW = {"availableNow": True}
PATIENCE = 120.0

Lose = Callable[[str], None]


@pytest.fixture
def lose(spark: Any) -> Iterator[Lose]:
    """Have a machine vanish, the first that is named; it is back afterwards."""
    hosts = Hosts.found()
    lost: list[str] = []

    def vanish(host: str) -> None:
        if not lost:
            lost.append(host)
            hosts.unplug(host)

    yield vanish
    assert lost
    hosts.plug_in(lost[0])
    until = time.monotonic() + PATIENCE
    while executors(spark) < len(WORKERS):
        assert time.monotonic() < until, "the machine has not come back"
        time.sleep(0.1)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a connection without an answer given up by the loop after some seconds, rather than half a minute."""
    for name, value in {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 6_000}.items():
        monkeypatch.setitem(connecting.KEEPALIVE, name, value)


def executors(spark: Any) -> int:
    """Those that Spark takes for alive."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def source(spark: Any, **options: Any) -> Flow[tuple[int, str]]:
    """The numbers up to N, each with the machine that it comes from."""
    numbers: Flow[int] = Flow.from_spark(spark.sparkContext.range(0, N, 1, 4), **options)
    return numbers.map(lambda n: (n, socket.gethostname()))


def region(spark: Any) -> Flow[tuple[int, str]]:
    scheduler = schedulers.spark(spark, 2)
    return Flow.range(N).publish_on(scheduler, prefetch=64).map(lambda n: (n, socket.gethostname()))


async def taken(flow: Flow[tuple[int, str]], lose: Lose, at: int = N // 3) -> list[int]:
    """Take all, and lose the machine from which a certain element has come."""
    found: list[int] = []
    async with flow.open() as items:
        async for n, host in items:
            if n == at:
                lose(host)
            found.append(n)
    return found


async def all_taken(batches: Flow[Consumable[Any]], lose: Lose) -> list[int]:
    """Take the rows of all micro-batches, and do the same."""
    found: list[int] = []

    async def take(batch: Consumable[Any]) -> None:
        async with batch as rows:
            found.extend(await taken(rows, lose))

    await batches.for_each(take)
    return sorted(found)


async def test_a_source_in_order_goes_on_after_half_a_minute(spark: Any, lose: Lose) -> None:
    assert [*range(N)] == await taken(source(spark, prefetch=256), lose)


@pytest.mark.usefixtures("soon")
async def test_a_source_as_it_comes_goes_on(spark: Any, lose: Lose) -> None:
    assert [*range(N)] == sorted(await taken(source(spark, prefetch=256, ordered=False), lose))


async def test_results_of_jobs_go_on(spark: Any, lose: Lose) -> None:
    assert [*range(N)] == await taken(source(spark, wire="results"), lose)


async def test_a_region_fed_from_the_loop_goes_on_after_six_beats(spark: Any, lose: Lose) -> None:
    assert [*range(N)] == await taken(region(spark), lose)


@pytest.mark.usefixtures("soon")
async def test_a_stream_written_to_an_inbox_goes_on(spark: Any, tmp_path: Path, lose: Lose) -> None:
    from pyspark.sql.functions import udf

    await asyncio.to_thread(spark.range(0, N, 1, 3).write.parquet, str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    where = udf(lambda _: socket.gethostname(), "string", useArrow=False)

    async with inbox(tuple, host="driver", prefetch=64) as own:
        await own.start(stream.select("id", where("id")), checkpoint=tmp_path / "checkpoint", trigger=NOW)
        assert [*range(N)] == await all_taken(own.batches, lose)


@pytest.mark.usefixtures("soon")
async def test_a_stream_read_from_a_feed_goes_on(spark: Any, tmp_path: Path, lose: Lose) -> None:
    from pyspark.sql.functions import udf

    where = udf(lambda _: socket.gethostname(), "string", useArrow=False)
    async with feed(Flow.range(N), spark, "n long", batch=N // 2, partitions=2) as own:
        frame = (await own.frame()).select("n", where("n"))
        batches = Flow.from_spark(frame, as_=tuple, prefetch=64, checkpoint=tmp_path / "checkpoint", trigger=NOW)
        assert [*range(N)] == await all_taken(batches, lose)


@pytest.mark.parametrize("flow", [source, region])
async def test_leaving_does_not_wait_for_a_machine_that_is_gone(spark: Any, lose: Lose, flow: Any) -> None:
    async with flow(spark).open() as items:
        n, host = await anext(items)
        lose(host)

    assert 0 == n
    assert len(WORKERS) == executors(spark)  # not even Spark has noticed


@pytest.mark.parametrize("flow", [source, region])
async def test_a_driver_that_is_out_of_reach_for_moments_loses_nothing(spark: Any, flow: Any) -> None:
    hosts = Hosts.found()

    def vanish(_: str) -> None:
        hosts.unplug("driver")
        asyncio.get_running_loop().call_later(2.0, hosts.plug_in, "driver")

    assert [*range(N)] == await taken(flow(spark), vanish)
