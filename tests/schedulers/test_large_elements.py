"""Large elements on processes: they come back as they were, by memory or by the socket, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, WorkerDiedError, schedulers
from reactive_aio._remote import memory
from reactive_aio._remote.frames import SHARED, Frame
from reactive_aio._remote.memory import Memory
from tests.schedulers import work

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no memory without a name")

SIZE = 300_000


def left() -> tuple[int, set[str]]:
    """Return what a process may leave behind: descriptors, and memory that has a name."""
    return len(os.listdir("/proc/self/fd")), set(os.listdir("/dev/shm"))


def elements(n: int) -> list[bytes]:
    return [bytes([at]) * SIZE for at in range(n)]


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have memory asked for at once, and give the frames that go by it."""
    frames: list[int] = []
    lend = Memory.lend

    def watched(self: Memory, frame: Frame) -> Frame:
        said = lend(self, frame)
        frames.extend([said.number] if said.kind & SHARED else [])
        return said

    monkeypatch.setattr(memory, "PAINS", 0)
    monkeypatch.setattr(Memory, "lend", watched)
    return frames


@pytest.fixture
async def nothing_left() -> AsyncIterator[None]:
    # Event loops make some objects when they are first used like that, and keep them.
    await Flow.of(0).publish_on(schedulers.processes(1)).map(work.same).to_list()
    before = left()
    yield
    assert before == left()


async def test_they_come_back_as_they_were(lent: list[int], nothing_left: None) -> None:
    async with schedulers.processes(2) as pool:
        back = await Flow.from_iterable(elements(20)).publish_on(pool).map(work.same).to_list()

    assert elements(20) == back
    assert lent


async def test_a_worker_that_is_killed_leaves_nothing(lent: list[int], nothing_left: None) -> None:
    with pytest.raises(WorkerDiedError, match="was killed by SIGKILL"):
        await Flow.from_iterable(elements(20)).publish_on(schedulers.processes(2)).map(work.kill_at_third).to_list()

    assert lent


async def test_a_flow_that_is_left_in_the_middle_leaves_nothing(lent: list[int], nothing_left: None) -> None:
    async with schedulers.processes(2) as pool:
        for _ in range(3):
            some = await Flow.from_iterable(elements(20)).publish_on(pool).map(work.same).take(2).to_list()

            assert elements(2) == some
    assert lent


async def test_flows_on_a_pool_that_is_kept_share_memory_and_do_not_add_to_it(lent: list[int]) -> None:
    async def run(pool: Any) -> int:
        lengths = await Flow.from_iterable(elements(9)).publish_on(pool).map(len).to_list()
        assert [SIZE] * 9 == lengths
        return left()[0]

    async with schedulers.processes(2) as pool:
        after_one = await run(pool)

        assert [after_one] * 3 == [await run(pool) for _ in range(3)]


async def test_a_pool_keeps_no_more_memory_after_many_flows_at_a_time_than_after_one(lent: list[int]) -> None:
    async def run(pool: Any) -> None:
        assert [SIZE] * 9 == await Flow.from_iterable(elements(9)).publish_on(pool).map(len).to_list()

    async with schedulers.processes(2) as pool:
        await run(pool)
        after_one = left()[0]
        await asyncio.gather(*(run(pool) for _ in range(4)))

        assert after_one == left()[0]
    assert lent


@pytest.mark.parametrize("missing", ["memfd_create", "posix_fallocate"])
async def test_they_go_by_the_socket_where_there_is_no_such_memory(
    missing: str, lent: list[int], nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, missing, refused)
    back = await Flow.from_iterable(elements(9)).publish_on(schedulers.processes(2)).map(work.same).to_list()

    assert elements(9) == back
    assert [] == lent


async def test_arrays_may_be_written_to_on_both_sides(lent: list[int], nothing_left: None) -> None:
    np = pytest.importorskip("numpy")
    given = [np.full(50_000, at, dtype=np.float64) for at in range(6)]

    async with schedulers.processes(2) as pool:
        back = await Flow.from_iterable(given).publish_on(pool).map(work.raised_by_one).to_list()

    assert [at + 1.0 for at in range(6)] == [array[-1] for array in back]
    assert [float(at) for at in range(6)] == [array[-1] for array in given]
    back[0][:] = 9
    assert 2.0 == back[1][0]
    assert lent
