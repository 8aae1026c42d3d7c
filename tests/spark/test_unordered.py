"""Elements as they are made: partitions side by side, and all the other promises as ever."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from tests.spark.jobs import active_jobs
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, only_task, until
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[2]


def parted(sc: Any, parts: list[list[Any]]) -> Any:
    """An RDD of these partitions."""
    return sc.parallelize(parts, len(parts)).flatMap(lambda part: part)


def gated(gate: Path, is_held: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """A function that holds some elements back until the gate is there."""
    path = str(gate)

    def hold(item: Any) -> Any:
        import os
        import time

        while is_held(item) and not os.path.exists(path):
            time.sleep(0.01)
        return item

    return hold


def in_partitions(items: list[tuple[int, int]], count: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for partition, item in items:
        found[partition].append(item)
    return found


@pytest.mark.parametrize("seed", range(8))
async def test_the_same_elements_as_a_list_and_in_order_within_a_partition(sc: Any, seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice([0, 1, chance.randrange(3000)]) for _ in range(chance.randrange(1, 8))]
    parts = [[(index, n) for n in range(size)] for index, size in enumerate(sizes)]
    prefetch = chance.choice([1, 5, 64, 1000]) if sum(sizes) < 1000 else chance.choice([64, 1000])

    flow = Flow.from_spark(parted(sc, parts), ordered=False, prefetch=prefetch)
    found = await flow.filter(lambda pair: pair[1] % 3).map(lambda pair: (pair[0], -pair[1])).to_list()

    assert [[-n for n in range(size) if n % 3] for size in sizes] == in_partitions(found, len(parts))


async def test_rows_of_a_frame(spark: Any) -> None:
    frame = spark.range(0, 9000, 1, 5).where("id < 1000 or id > 6000")
    found = await Flow.from_spark(frame, as_=tuple, ordered=False).map(lambda row: row[0]).to_list()

    assert [*range(1000), *range(6001, 9000)] == sorted(found)


async def test_nothing_at_all_completes(spark: Any, sc: Any) -> None:
    assert [] == await Flow.from_spark(sc.emptyRDD(), ordered=False).to_list()
    assert [] == await Flow.from_spark(spark.range(9).where("false"), ordered=False).to_list()


async def test_a_partition_that_stands_still_holds_up_nobody(sc: Any, tmp_path: Path) -> None:
    gate, size, prefetch = tmp_path / "gate", 5000, 64
    parts = [[(0, 0)], [(1, n) for n in range(size)], [(2, n) for n in range(size)]]
    flow = Flow.from_spark(parted(sc, parts), ordered=False, prefetch=prefetch).map(
        gated(gate, lambda pair: pair == (0, 0))
    )
    recorder = Recorder(request=2**63 - 1)
    flow.subscribe(recorder)

    await until(lambda: len(recorder.items) == 2 * size)
    gate.touch()
    await recorder.over.wait()

    assert "complete" == recorder.kinds[-1]
    assert [[0], [*range(size)], [*range(size)]] == in_partitions(recorder.items, 3)
    await until(only_task)


async def test_no_partition_starves_beside_a_large_one(sc: Any) -> None:
    """The large one has no end, so that it is not luck that the other has its turn."""
    data = sc.parallelize([0, 1], 2).flatMap(lambda part: range(100) if part else itertools.repeat(-1))
    found: list[int] = []
    async with asyncio.timeout(LIMIT), Flow.from_spark(data, ordered=False, prefetch=64).open() as items:
        async for item in items:
            if item >= 0:
                found.append(item)
            if len(found) == 100:
                break

    assert [*range(100)] == found


@pytest.mark.parametrize("partitions", [1, 2, 5])
async def test_no_more_is_produced_than_requested_and_prefetched(sc: Any, tally: Tally, partitions: int) -> None:
    recorder = Recorder(request=10)
    data = sc.parallelize(range(100_000), partitions)
    Flow.from_spark(data, ordered=False, prefetch=64).map(tally.counting(lambda n: n)).subscribe(recorder)
    await until(lambda: len(recorder.items) == 10)

    await until(lambda: tally.count == 64)
    await asyncio.to_thread(sc.parallelize(range(8), 4).count)  # a job of the subscriber's finds a slot
    assert 64 == tally.count

    recorder.request(40)
    await until(lambda: len(recorder.items) == 50)
    await until(lambda: tally.count == 114)
    await asyncio.to_thread(sc.parallelize(range(8), 4).count)
    assert 114 == tally.count

    recorder.cancel()
    await until(only_task)
    assert 114 == tally.count


async def test_leaving_early_stops_all_that_runs(sc: Any) -> None:
    async with Flow.from_spark(sc.parallelize(range(10**7), 4), ordered=False).open() as items:
        await anext(items)

    assert not active_jobs(sc)
    assert {asyncio.current_task()} == asyncio.all_tasks()


async def test_a_failure_comes_behind_the_elements_of_its_partition(sc: Any) -> None:
    def check(pair: Any) -> Any:
        if pair == (1, 7):
            raise OSError("no more")
        return pair

    parts = [[(index, n) for n in range(50_000)] for index in range(3)]
    recorder = Recorder(request=2**63 - 1)
    Flow.from_spark(parted(sc, parts), ordered=False).map(check).subscribe(recorder)
    await recorder.over.wait()
    await until(only_task)

    assert type(recorder.error) is OSError
    assert "on element #7 of partition 1 of from_spark(RDD, ordered=False)" in recorder.error.__notes__[0]
    assert [*range(7)] == in_partitions(recorder.items, 3)[1]
    assert not active_jobs(sc)


@pytest.mark.parametrize("kind", ["rdd", "frame"])
async def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    spark: Any, sc: Any, tmp_path: Path, kind: str
) -> None:
    deaths = {1_111, 8_888} if kind == "rdd" else {7_777}

    def deadly(n: Any, folder: str = str(tmp_path)) -> Any:
        import os
        import signal

        flag = f"{folder}/{n}"
        if n in deaths and not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    if kind == "rdd":
        flow = Flow.from_spark(sc.parallelize(range(10_000), 4), ordered=False, prefetch=256).map(deadly)
    else:
        rows = Flow.from_spark(spark.range(0, 10_000, 1, 4), as_=tuple, ordered=False, prefetch=256)
        flow = rows.map(lambda row: row[0]).map(deadly)
    found = await flow.to_list()

    assert len(deaths) == len(os.listdir(tmp_path))
    assert list(range(10_000)) == sorted(found)
    for part in range(4):
        own = [n for n in found if n // 2500 == part]
        assert sorted(own) == own


# -- several flows wait for each other on three slots, and each would like more than its share


@pytest.fixture(params=[True, False], ids=["ordered", "unordered"])
def numbers(request: pytest.FixtureRequest, sc: Any) -> Callable[[], Flow[int]]:
    return lambda: Flow.from_spark(sc.parallelize(range(3000), 5), ordered=request.param, prefetch=16)


async def test_as_many_flows_as_slots_read_side_by_side(numbers: Callable[[], Flow[int]]) -> None:
    found = 0
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        flows = [await stack.enter_async_context(numbers().open()) for _ in range(3)]
        for _ in range(3000):
            found += len([await anext(items) for items in flows])

    assert 9000 == found


def running(items: Any) -> int:
    """Return the tasks of a flow that run."""
    found: int = items.snapshot().regions[0].tasks.running
    return found


@pytest.mark.parametrize("at_once", [1, 2])
async def test_an_iterator_opened_later_and_read_in_turn_with_others(
    numbers: Callable[[], Flow[int]], at_once: int
) -> None:
    found = 0
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        flows = [await stack.enter_async_context(numbers().open()) for _ in range(at_once)]
        for items in flows:
            await anext(items)
        await until(lambda: sum(running(items) for items in flows) == 2)  # that is all they may have
        flows.append(await stack.enter_async_context(numbers().open()))
        for _ in range(2999):
            found += len([await anext(items) for items in flows])

    assert 2999 * len(flows) == found


TWO_SLOTS = """
import asyncio
from reactive_aio import Flow
from reactive_aio.spark.session import local_session

sc = local_session("two slots", "local[2]").sparkContext

async def in_turn(ordered):
    flow = Flow.from_spark(sc.parallelize(range(1000), 3), ordered=ordered, prefetch=16)
    async with flow.open() as some, flow.open() as others:
        return sum([await anext(items) for _ in range(1000) for items in (some, others)])

print([asyncio.run(asyncio.wait_for(in_turn(ordered), 120)) for ordered in (True, False)])
"""


def test_two_slots_will_do_for_two_flows() -> None:
    """In a process of its own, whose session has no more."""
    command = [sys.executable, "-c", TWO_SLOTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)

    assert done.stdout == "[999000, 999000]\n", done.stderr


async def test_a_job_for_each_element(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(12), 6), ordered=False, prefetch=1)
    async with asyncio.timeout(LIMIT):
        counts = [await asyncio.to_thread(sc.parallelize(range(n), 3).count) async for n in flow]

    assert list(range(12)) == sorted(counts)


def test_the_plan_shows_it(sc: Any) -> None:
    plan = Flow.from_spark(sc.parallelize([1]), ordered=False, prefetch=64).map(str).describe()

    assert "from_spark(RDD, ordered=False) -> map(str)" in plan
