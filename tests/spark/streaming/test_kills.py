"""Streaming services whose parts are killed at random moments, as often as one likes.

::

    KILLS=100 python3 dev.py test -s -k kills                 shared out to the three ways, and what happened in figures
    KILLS=100 KILLS_SEED=7 python3 dev.py test -s -k kills    the same moments and victims again

A part is the *subscriber* (this library's process, with its event loop), the *driver* (the JVM), or a *worker* (a Python
process of Spark's). A service that does not outlive the loss of a part has to end by itself, and is run again on the same folder.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path

import pytest
from attrs import define, field

from examples import sensors
from tests.spark.streaming.service import BATCH, WAYS
from tests.spark.streaming.test_sensors import expected

KILLS = int(os.environ.get("KILLS", "0"))
SEED = int(os.environ.get("KILLS_SEED", "0")) or random.randrange(1, 2**31)
ROOT = Path(__file__).parents[3]
PATIENCE = 300.0
"""Seconds for whatever has to happen by itself: less would blame a busy machine, and more would be a hang."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.stress,
    pytest.mark.skipif(not KILLS, reason="a quarter of a minute for each kill: ask for them by KILLS=..."),
    pytest.mark.skipif(sys.platform != "linux", reason="looks for its victims in /proc"),
]


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def threads_children(pid: int) -> list[int]:
    """The same, for the children of all threads."""
    with suppress(OSError):
        found = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(each) for part in found for each in part]
    return []


def count(path: Path, query: str) -> int:
    """Return the number that a query gives, or 0 if the table is not there yet."""
    if path.exists():
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.OperationalError):
            return int(connection.execute(query).fetchone()[0] or 0)
    return 0


@define
class Service:
    """The process, and who is to be killed in it."""

    command: list[str]
    progress: Callable[[], int]
    log: Path
    process: asyncio.subprocess.Process | None = field(init=False, default=None)
    starts: int = field(init=False, default=0)

    async def run(self) -> asyncio.subprocess.Process:
        """Return the process; one that has ended is started again."""
        if self.process is None or self.process.returncode is not None:
            self.starts += 1
            with self.log.open("ab") as log:
                self.process = await asyncio.create_subprocess_exec(
                    *self.command, cwd=ROOT, start_new_session=True, stdout=log, stderr=log
                )
        return self.process

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pytest.fail(f"{what} not within {PATIENCE:.0f} s:\n{self.log.read_text()[-5000:]}")

    async def get_on(self) -> None:
        """Have something more be stored; a service that ends meanwhile is started again."""
        before = self.progress()
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while self.progress() <= before:
            if asyncio.get_running_loop().time() > deadline:
                pytest.fail(f"no progress within {PATIENCE:.0f} s:\n{self.log.read_text()[-5000:]}")
            await self.run()
            await asyncio.sleep(0.02)

    def victims(self, part: str) -> list[int]:
        """The processes that a part is made of."""
        assert self.process is not None
        main = self.process.pid
        drivers = [pid for pid in threads_children(main) if _name(pid) == "java"]
        if part == "subscriber":
            return [main]
        if part == "driver":
            return drivers
        daemons = [pid for driver in drivers for pid in threads_children(driver)]
        return [pid for daemon in daemons for pid in children(daemon)]

    async def kill(self, part: str, chance: random.Random) -> bool:
        """Kill a part, and tell whether there was one; what can't live without it has to end by itself."""
        process = await self.run()
        victims = self.victims(part)
        if not victims:
            return False
        drivers = self.victims("driver")
        with suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
        if part != "worker":
            waiting = asyncio.create_task(process.wait())
            await self.until(f"the service has lost its {part} and ends", waiting.done)
            await self.until("the JVM ends", lambda: not any(_name(pid) == "java" for pid in drivers))
        return True

    async def to_its_end(self) -> None:
        """Run it until it has done all."""
        for _ in range(3):  # a worker that was killed last may take the query with it
            process = await self.run()
            waiting = asyncio.create_task(process.wait())
            await self.until("the service comes to its end", waiting.done)
            if process.returncode == 0:
                return
        pytest.fail(f"the service has failed:\n{self.log.read_text()[-5000:]}")

    async def close(self) -> None:
        """Leave nothing behind."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


@pytest.mark.parametrize("way", WAYS)
async def test_no_row_is_lost_and_none_takes_effect_twice_however_often_parts_are_killed(
    tmp_path: Path, way: str
) -> None:
    faulthandler.cancel_dump_traceback_later()  # this takes as long as it takes
    kills = KILLS // 3 + (WAYS.index(way) < KILLS % 3)
    chance = random.Random(f"{SEED}-{way}")
    readings = sensors.some_readings(1500 * (kills + 1))  # more than are read between two kills
    killed: Counter[str] = Counter()

    async with AsyncExitStack() as stack:
        command = [sys.executable, "-m", "tests.spark.streaming.service", way, str(tmp_path)]
        if way == "windows":
            command.append(str(await stack.enter_async_context(sensors.serve(readings))))
            table, query = tmp_path / "minutes.db", "SELECT SUM(readings) FROM minutes"
        else:
            table, query = tmp_path / "numbers.db", "SELECT COUNT(*) FROM numbers"
        service = Service(command, lambda: count(table, query), tmp_path / "log")
        stack.push_async_callback(service.close)

        while killed.total() < kills:
            await service.get_on()
            await asyncio.sleep(chance.uniform(0, 1.5))  # the moment
            part = chance.choice(["subscriber", "driver", "worker"])
            killed[part] += await service.kill(part, chance)
        await service.close()
        service.command.append("10000")
        (tmp_path / "end").write_text(str(service.progress() + 5 * BATCH))
        await service.to_its_end()

    print(f"\n{way}: seed {SEED}, killed {dict(killed)}, started {service.starts} times", end="")  # noqa: T201
    if way == "windows":
        assert expected(readings) == sensors.stored(tmp_path)
    else:
        check_numbers(tmp_path)


def check_numbers(folder: Path) -> None:
    """Each number is there once; what was delivered more than once are micro-batches of the same number."""
    with closing(sqlite3.connect(folder / "numbers.db")) as connection:
        found = [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]
        (last,) = connection.execute("SELECT last FROM reactive_aio_batches").fetchone()
    deliveries = Counter(map(int, (folder / "deliveries").read_text().split()))
    again = sum(deliveries.values()) - len(deliveries)
    print(f"; {len(found)} rows, {len(deliveries)} micro-batches, {again} deliveries again", end="")  # noqa: T201

    assert [*range(int((folder / "end").read_text()))] == found
    assert [*range(last + 1)] == sorted(deliveries)
