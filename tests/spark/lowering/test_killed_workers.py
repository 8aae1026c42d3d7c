"""Workers that die during keyed work, before and behind its shuffle: nothing is lost, nothing comes twice.

``KILLS=50 python3 dev.py test tests/spark/lowering/test_killed_workers.py`` kills ten times as many as CI does.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import frozen

from reactive_aio import Flow

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Files

pytestmark = [pytest.mark.spark, pytest.mark.skipif(sys.platform == "win32", reason="kills by a signal")]

AT_ONCE = 5
"""The kills of one flow: no more than three in one stage, as Spark gives up a task that dies for the fourth time."""
ROUNDS = range(max(1, int(os.environ.get("KILLS", AT_ONCE)) // AT_ONCE))
USERS = 7
EVENTS = [(n * 5 % USERS, n * 37 % 1009) for n in range(1000)]
"""A user and a time; no time comes twice."""

Pair = tuple[int, int]
T = TypeVar("T")


@frozen
class Dies:
    """The identity, but for elements that have a file, with which the worker takes itself away."""

    folder: Path
    place: str

    def __call__(self, item: T) -> T:
        try:
            (self.folder / f"{self.place} {item}").unlink()
        except FileNotFoundError:
            return item
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")


def plant(folder: Path, seed: int, **counts: int) -> None:
    """Draw the elements that kill, so many at each place."""
    assert AT_ONCE == sum(counts.values())
    drawn = random.Random(seed)
    for place, count in counts.items():
        for item in drawn.sample(EVENTS if place != "other" else NAMES, count):
            (folder / f"{place} {item}").touch()


NAMES = [(user, user * 100) for user in range(USERS)]


def user(pair: Pair) -> int:
    return pair[0]


def at(pair: Pair) -> int:
    return pair[1]


def gap(two: tuple[Pair, Pair]) -> int:
    return two[1][1] - two[0][1]


def gaps(events: Flow[Pair], folder: Path) -> Flow[Pair]:
    """The times between the events of each user."""
    keyed = events.map(Dies(folder, "before")).group_by_key(user, order_by=at)
    return keyed.map(Dies(folder, "behind")).pairwise().map(gap).pairs()


def joined(events: Flow[Pair], names: Flow[Pair], folder: Path) -> Flow[tuple[int, tuple[int, int]]]:
    keyed = events.map(Dies(folder, "before")).group_by_key(user).map(Dies(folder, "behind")).map(at)
    return keyed.join(names.map(Dies(folder, "other")).group_by_key(user).map(at))


def by_user(pairs: Iterable[tuple[int, T]]) -> dict[int, list[T]]:
    found: defaultdict[int, list[T]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    """The folder of the files that kill."""
    (folder := tmp_path / "armed").mkdir()
    return folder


@pytest.mark.parametrize("seed", ROUNDS)
async def test_the_gaps_of_each_user_are_those_of_the_event_loop(sc: Any, armed: Path, seed: int) -> None:
    expected = by_user(await gaps(Flow.from_iterable(EVENTS), armed).to_list())
    plant(armed, seed, before=3, behind=2)

    found = by_user(await gaps(Flow.from_spark(sc.parallelize(EVENTS, 4)), armed).to_list())

    assert expected == found
    assert [] == [*armed.iterdir()]


@pytest.mark.parametrize("seed", ROUNDS)
async def test_a_join_has_the_pairs_of_the_event_loop(sc: Any, armed: Path, seed: int) -> None:
    expected = sorted(await joined(Flow.from_iterable(EVENTS), Flow.from_iterable(NAMES), armed).to_list())
    plant(armed, seed, before=2, behind=2, other=1)

    events, names = Flow.from_spark(sc.parallelize(EVENTS, 4)), Flow.from_spark(sc.parallelize(NAMES, 2))

    assert expected == sorted(await joined(events, names, armed).to_list())
    assert [] == [*armed.iterdir()]


@pytest.mark.parametrize("seed", ROUNDS)
async def test_what_the_workers_write_is_written_once(
    spark: Any, sc: Any, tmp_path: Path, armed: Path, seed: int
) -> None:
    expected = sorted(await gaps(Flow.from_iterable(EVENTS), armed).to_list())
    plant(armed, seed, before=3, behind=2)
    out = tmp_path / "out"

    flow = gaps(Flow.from_spark(sc.parallelize(EVENTS, 4)), armed)
    await flow.to_spark(Files(spark, out, run="once"), "user long, gap long", size=None)

    assert expected == sorted((row.user, row.gap) for row in spark.read.parquet(str(out)).collect())
    assert [] == [*armed.iterdir()]
