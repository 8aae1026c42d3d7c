"""Firewalls between the machines of a cluster: what has to be let through to the driver, and what is said where it is not."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import DriverUnreachableError, Flow, schedulers
from tests.spark_cluster.hosts import ALIAS, Hosts
from tests.spark_cluster.profile import ON_HOSTS

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import Consumable, Inbox, feed, inbox

pytestmark = [
    *ON_HOSTS,
    pytest.mark.skipif(shutil.which("nft") is None, reason="firewalls take the command nft, of the package nftables"),
    pytest.mark.usefixtures("nothing_left"),
]

N = 2_000
NOW = {"availableNow": True}
PORT = 41007

SPARKS = "tcp dport { 7078, 7079 } accept"
"""The session's spark.driver.port and spark.driver.blockManager.port."""
OURS = f"ip daddr {Hosts.address(ALIAS)} tcp dport 41000-41031 accept"
"""The session's spark.reactive_aio.host and .ports."""
REFUSED = "tcp dport 41000-41031 reject with tcp reset"
"""Not to have to wait, as where packets are dropped, until each of four attempts has lost its patience."""


def from_spark(spark: Any, **options: Any) -> Flow[int]:
    numbers: Flow[int] = Flow.from_spark(spark.sparkContext.range(0, N, 1, 4), **options)
    return numbers


def through_spark(spark: Any) -> Flow[int]:
    return Flow.range(N).publish_on(schedulers.spark(spark, 2)).map(lambda n: n)


async def written(spark: Any, tmp_path: Path, own: Inbox[Any]) -> list[int]:
    """The rows of a stream that tasks write to an inbox."""
    await asyncio.to_thread(spark.range(0, N, 1, 2).write.parquet, str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    await own.start(stream, checkpoint=tmp_path / "inbox", trigger=NOW)
    found: list[int] = []

    async def take(batch: Consumable[Any]) -> None:
        async with batch as rows:
            found.extend(row[0] for row in await rows.to_list())

    await own.batches.for_each(take)
    return sorted(found)


async def test_the_ports_that_are_named_are_all_that_it_takes(spark: Any, tmp_path: Path) -> None:
    with Hosts.found().firewall("driver", SPARKS, OURS):
        assert [*range(N)] == await from_spark(spark).to_list()
        assert [*range(N)] == await through_spark(spark).to_list()
        async with inbox(tuple, host=ALIAS, port=PORT) as own:
            assert [*range(N)] == await written(spark, tmp_path, own)
        async with feed(Flow.range(N), spark, "n long", batch=N) as own_feed:
            frame = await own_feed.frame()
            writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "feed")).trigger(**NOW)
            query = await asyncio.to_thread(writer.format("parquet").start, str(tmp_path / "out"))
            await asyncio.to_thread(query.awaitTermination)
            assert N == spark.read.parquet(str(tmp_path / "out")).count()


@pytest.mark.parametrize("flow", [from_spark, through_spark])
async def test_no_way_to_the_driver_is_said_from_where_to_where(spark: Any, flow: Any) -> None:
    with (
        Hosts.found().firewall("driver", SPARKS, REFUSED),
        pytest.raises(
            DriverUnreachableError, match=r"worker-\d can't connect .* driver-too:410\d\d .*spark.reactive_aio.ports"
        ),
    ):
        await flow(spark).to_list()


async def test_no_way_to_an_inbox_is_said_from_where_to_where(spark: Any, tmp_path: Path) -> None:
    with (
        Hosts.found().firewall("driver", SPARKS, REFUSED),
        pytest.raises(DriverUnreachableError, match=rf"worker-\d can't connect .* driver-too:{PORT}"),
    ):
        async with inbox(tuple, host=ALIAS, port=PORT) as own:
            await written(spark, tmp_path, own)


async def test_results_of_jobs_come_by_the_ports_of_spark(spark: Any) -> None:
    with Hosts.found().firewall("driver", SPARKS):
        assert [*range(N)] == await from_spark(spark, wire="results").to_list()
