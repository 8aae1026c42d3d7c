"""A warning that flows hold all slots of a cluster, and nobody reads them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow
from reactive_aio.spark._delivery import idle_slots
from reactive_aio.spark._delivery.idle_slots import IdleSlots
from reactive_aio.spark._delivery.slots import Seat
from reactive_aio.spark.sink import Files
from reactive_aio.testing import run_virtual
from tests.spark.waiting import until


class Cluster:
    """Something that flows may run on."""


class Held:
    """A flow that holds a slot."""

    def __init__(self, cluster: Cluster, slots: int, name: str = "flow", waiting: int = 1) -> None:
        self.waiting = waiting
        self.seat = Seat.at(cluster, lambda: None, name, lambda: self.waiting)
        self.seat.slots.total = slots
        self.looks = IdleSlots(self.seat, asyncio.get_running_loop())
        assert self.seat.take()
        self.looks.watch()


@pytest.mark.parametrize(("waited", "lines"), [(4.9, 0), (5.1, 1), (1000.0, 1)])
def test_one_line_tells_of_five_seconds_without_demand(
    caplog: pytest.LogCaptureFixture, waited: float, lines: int
) -> None:
    async def main() -> None:
        flows = [Held(cluster, 2, name) for name in ("the one", "the other")]
        await asyncio.sleep(waited)
        del flows

    cluster = Cluster()
    run_virtual(main())
    assert lines == len(caplog.messages)
    for line in caplog.messages:
        assert line.startswith("flows hold all slots of the cluster (2), and nobody has requested anything from them")
        assert "for 5 s: the one; the other. If their subscribers wait for Spark jobs" in line
        assert "(local[3]), or write by to_spark(size=None)" in line


@pytest.mark.parametrize("why", ["a free slot", "a request", "a task at work", "a slot given back", "the end"])
def test_there_is_nothing_to_tell(caplog: pytest.LogCaptureFixture, why: str) -> None:
    async def main() -> None:
        first, second = Held(cluster, 2 + (why == "a free slot")), Held(cluster, 2 + (why == "a free slot"))
        for _ in range(5):
            await asyncio.sleep(4)
            if why == "a request":
                first.seat.requests += 1
            elif why == "a task at work":
                first.waiting = 0
            elif why == "a slot given back" and first.seat.held:
                first.seat.give_back()
            elif why == "the end":
                second.looks.stop()

    cluster = Cluster()
    run_virtual(main())
    assert [] == caplog.messages


def test_where_there_are_more_flows_than_slots_one_line_names_them_all(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        flows = [Held(cluster, 2, name, waiting) for name, waiting in (("a", 1), ("b", 1), ("queued", 0))]
        await asyncio.sleep(20)
        del flows

    cluster = Cluster()
    run_virtual(main())
    (told,) = caplog.messages
    assert ": a; b; queued. If" in told


def test_another_flow_that_comes_to_it_later_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        first = Held(cluster, 1, "first")
        await asyncio.sleep(20)
        first.seat.leave()
        second = Held(cluster, 1, "second")
        await asyncio.sleep(20)
        del second

    cluster = Cluster()
    run_virtual(main())
    assert 2 == len(caplog.messages)
    assert "for 5 s: first. If" in caplog.messages[0]
    assert "for 5 s: second. If" in caplog.messages[1]


@pytest.mark.spark
async def test_flows_whose_batches_find_no_slot_are_named(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_slots, "TOLD_AFTER", 0.5)
    rows = Flow.from_spark(spark.range(50_000), as_=tuple)
    ends = [asyncio.create_task(rows.to_spark(Files(spark, tmp_path / str(number)), "n long")) for number in range(3)]
    await until(lambda: caplog.messages)
    ends[0].cancel()
    done = await asyncio.gather(*ends, return_exceptions=True)

    (told,) = caplog.messages
    assert 3 == told.count(f"from_spark(DataFrame, as_=tuple), chained at {__file__}")
    assert [50_000, 50_000] == [each.rows for each in done if not isinstance(each, BaseException)]
