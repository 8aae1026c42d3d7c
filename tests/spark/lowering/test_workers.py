"""Operators in parts: which steps the workers do, and which they do not."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._core import budgets
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

from reactive_aio.spark._delivery import subscription  # noqa: E402
from reactive_aio.spark._job.job import Job  # noqa: E402
from reactive_aio.spark._task import sparing  # noqa: E402
from reactive_aio.spark._task.sparing import read_on  # noqa: E402


@pytest.mark.parametrize(
    ("end", "most"),
    [
        (lambda flow: flow.take(3).to_list(), 3),
        (Flow.first, 1),
        (lambda flow: flow.element_at(4), 5),
        (lambda flow: flow.contains(2), 3),
        (lambda flow: flow.take_while(lambda n: n < 5).to_list(), 6),
    ],
    ids=["take", "first", "element_at", "contains", "take_while"],
)
async def test_no_partition_is_read_further_than_it_could_matter(sc: Any, tally: Tally, end: Any, most: int) -> None:
    await end(Flow.from_spark(sc.parallelize(range(1000), 1)).map(tally.counting(lambda n: n)))

    assert most == tally.count


async def test_one_value_of_each_partition_crosses_the_wire(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(900), 3)).map(lambda n: n % 7)

    async with flow.take_last(1).open() as items:
        assert [899 % 7] == [item async for item in items]
        assert 3 == items.snapshot().regions[0].delivered


async def test_parts_are_computed_side_by_side_and_combined_in_their_order(sc: Any, tmp_path: Path) -> None:
    """The first partition ends only when the second has been worked on."""
    worked_on = str(tmp_path / "worked on")

    def letter(n: int) -> str:
        import os
        import time

        if n == 1:
            open(worked_on, "w").close()
        while n == 0 and not os.path.exists(worked_on):
            time.sleep(0.01)
        return "abcd"[n]

    flow = Flow.from_spark(sc.parallelize(range(4), 4), ordered=False).map(letter)
    async with asyncio.timeout(LIMIT):
        assert "abcd" == await flow.reduce(operator.add, combine=operator.add)


async def test_a_failure_in_a_part_is_located_and_comes_in_its_order(sc: Any) -> None:
    def fail(n: int) -> int:
        return 1 // (n % 10 - 9)

    with pytest.raises(ZeroDivisionError) as failed:
        await Flow.from_spark(sc.parallelize(range(40), 4)).max(key=fail)

    notes = failed.value.__notes__
    assert "in max(fail) in parts" in notes[0]
    assert "on element #9 of partition 0" in notes[0]
    assert __file__ in notes[0]


async def test_a_failure_behind_the_end_is_nobodys(sc: Any) -> None:
    def fail(n: int) -> int:
        return n // (n < 20)

    assert list(range(15)) == await Flow.from_spark(sc.parallelize(range(40), 4)).map(fail).take(15).to_list()


# -- the rest of a task's input


@pytest.mark.usefixtures("still")
def test_what_is_left_is_read_if_it_is_little() -> None:
    items = iter(range(100))
    read_on(items)

    assert [] == list(items)


def test_what_would_take_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += sparing.NEXT_TO_NO_TIME / 4
        return now

    monkeypatch.setattr(budgets, "clock", clock)
    items = iter(range(100))
    read_on(items)

    assert 4 == next(items)


def test_a_failure_in_what_is_left_is_nobodys() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    read_on(failing())


async def test_a_worker_is_used_again_though_its_task_needed_no_more(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "Job", partial(Job, grace=LIMIT))  # tasks end by themselves, however slowly

    def worker(_: Any) -> int:
        import os

        return os.getpid()

    small = sc.parallelize([[1, 2, 3]], 1).flatMap(lambda part: part)
    workers = {await Flow.from_spark(small).map(worker).first() for _ in range(8)}

    assert len(workers) < 8
