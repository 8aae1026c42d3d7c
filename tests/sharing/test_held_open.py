"""Shared flows that a block holds open, with nobody there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count

import pytest

from reactive_aio import UNBOUNDED, Flow, SharedClosedError, hooks
from reactive_aio.testing import no_leaks, run_virtual
from tests.sharing.driven import Counted, Hot, reads
from tests.subscribers import Recorder, idle


async def one_in_two_turns() -> AsyncIterator[int]:
    for n in count():
        yield n
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_a_run_that_is_held_open_pauses_when_nobody_is_there() -> None:
    source = Counted(Flow.range(100))
    async with source.flow().share() as shared:
        assert [0, 1, 2] == await shared.take(3).to_list()
        await idle()
        assert [3] == source.asked

        assert [3, 4] == await shared.take(2).to_list()
    assert (1, 1) == (source.runs, source.cancels)


async def test_one_who_comes_to_a_run_that_is_held_open_begins_with_what_nobody_has_had() -> None:
    async with Flow.range(100).share(lag=10) as shared:
        fast, slow = reads(shared, UNBOUNDED), reads(shared, 2)
        await idle()
        fast.cancel()
        slow.cancel()
        await idle()
        assert [12, 13] == await shared.take(2).to_list()


async def test_a_replay_goes_before_what_nobody_has_had() -> None:
    async with Flow.range(100).share(replay=2) as shared:
        assert [0, 1, 2] == await shared.take(3).to_list()
        assert [1, 2, 3] == await shared.take(3).to_list()


async def test_who_still_reads_when_the_block_is_left_fails_behind_what_is_kept() -> None:
    async with Flow.of(1, 2).concat(Flow.never()).share() as shared:
        fast, slow = reads(shared, UNBOUNDED), reads(shared)
        await idle()
    slow.request(2)
    await idle()

    assert [[1, 2], [1, 2]] == [fast.items, slow.items]
    assert isinstance(fast.error, SharedClosedError)
    assert isinstance(slow.error, SharedClosedError)


def test_the_block_is_left_when_the_cleanup_is_done() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            log.append("cleaned up")

    async def main() -> None:
        async with Flow.from_async_iterable(numbers()).share() as shared:
            await shared.take(1).to_list()
        log.append("left")

    run_virtual(main())
    assert ["cleaned up", "left"] == log


async def test_what_the_block_raises_is_raised_behind_the_cleanup() -> None:
    source, readers = Counted(Flow.never()), list[Recorder]()

    async def block() -> None:
        async with source.flow().share() as shared:
            readers.append(reads(shared, 1))
            await idle()
            raise OSError("of the block")

    async with no_leaks():
        with pytest.raises(OSError, match="of the block") as raised:
            await block()
        assert 1 == source.cancels
    assert None is raised.value.__context__
    assert isinstance(readers[0].error, SharedClosedError)


async def test_who_still_reads_when_the_block_fails_is_told_what_it_raised() -> None:
    failure, readers = OSError("of the block"), list[Recorder]()

    async def block() -> None:
        async with Flow.never().share() as shared:
            readers.append(reads(shared, 1))
            await idle()
            raise failure

    with pytest.raises(OSError, match="of the block"):
        await block()
    await idle()
    assert isinstance(readers[0].error, SharedClosedError)
    assert failure is readers[0].error.__cause__


@pytest.mark.parametrize("reads_by", ["for_each", "async for"])
async def test_one_who_is_cancelled_when_the_block_ends_has_nothing_to_report(reads_by: str) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def read(shared: Flow[int]) -> None:
        if reads_by == "for_each":
            await shared.for_each(lambda _: None)
        else:
            async for _ in shared:
                pass

    async with Flow.from_async_iterable(one_in_two_turns).share() as shared:
        readers = [asyncio.create_task(read(shared)) for _ in range(2)]
        await idle()
        for reader in readers:
            reader.cancel()
    await asyncio.wait(readers)
    assert not reported


@pytest.mark.parametrize("turns", range(20, 24))
async def test_a_task_group_around_the_block_raises_what_the_block_raised(turns: int) -> None:
    async def block() -> None:
        async with asyncio.TaskGroup() as tasks, Flow.from_async_iterable(one_in_two_turns).share() as shared:
            for _ in range(2):
                tasks.create_task(shared.count())
            for _ in range(turns):
                await asyncio.sleep(0)
            raise OSError("of the block")

    with hooks.using(on_error_dropped=lambda _: None), pytest.raises(ExceptionGroup) as raised:
        await block()
    assert OSError in map(type, raised.value.exceptions)


async def test_one_block_at_a_time_holds_a_flow_open() -> None:
    shared = Flow.of(1).share()
    async with shared:
        with pytest.raises(RuntimeError, match="already held open"):
            await shared.__aenter__()


# -- with nobody there, for a while


async def test_a_linger_needs_a_block() -> None:
    with pytest.raises(RuntimeError, match="needs `async with`"):
        await Flow.of(1).share(linger=1.0).to_list()


@pytest.mark.parametrize(("absent", "runs"), [(4.9, 1), (5.1, 3)])
def test_a_run_lingers_for_so_long(absent: float, runs: int) -> None:
    source = Counted(Flow.range(100))

    async def main() -> None:
        async with source.flow().share(linger=5.0) as shared:
            for _ in range(2):
                await shared.take(1).to_list()
                await asyncio.sleep(absent)
            await shared.take(1).to_list()

    run_virtual(main())
    assert runs == source.runs


@pytest.mark.parametrize(("comes", "runs"), [(4.9, 1), (5.1, 2)])
def test_a_run_lingers_for_as_long_when_nobody_has_come_yet(comes: float, runs: int) -> None:
    source = Counted(Flow.range(100))

    async def main() -> None:
        async with source.flow().share(linger=5.0) as shared:
            await asyncio.sleep(comes)
            assert [0] == await shared.take(1).to_list()

    run_virtual(main())
    assert (runs, runs) == (source.runs, source.cancels)


@pytest.mark.parametrize("leaves", ["before the end", "after it"])
@pytest.mark.parametrize("failure", [None, OSError("down")])
def test_a_run_that_ends_while_it_lingers_is_kept_for_who_comes_later(leaves: str, failure: OSError | None) -> None:
    reported: list[BaseException] = []

    async def main() -> Recorder:
        hot = Hot.of(linger=5.0, restart="never", replay=1)
        async with hot.shared:
            first = reads(hot.shared, 2)
            await idle()
            hot.publisher.next(1, 2)
            await idle()
            if leaves == "before the end":
                first.cancel()
                await asyncio.sleep(1.0)
            if failure is None:
                hot.publisher.complete()
            else:
                hot.publisher.error(failure)
            await asyncio.sleep(9.0)
            later = reads(hot.shared, 2)
            await idle()
            assert 1 == len(hot.publisher.subscribers)
        return later

    with hooks.using(on_error_dropped=reported.append):
        later = run_virtual(main())
    assert ["subscribe", "next", "complete" if failure is None else "error"] == later.kinds
    assert ([2], []) == (later.items, reported)


def test_a_failure_of_a_run_that_lingers_is_reported_if_nobody_comes() -> None:
    failure, reported = OSError("down"), list[BaseException]()

    async def main() -> None:
        hot = Hot.of(linger=5.0, restart="never")
        async with hot.shared:
            reader = reads(hot.shared, 1)
            await idle()
            reader.cancel()
            await idle()
            hot.publisher.error(failure)
            await asyncio.sleep(9.0)

    with hooks.using(on_error_dropped=reported.append):
        run_virtual(main())
    assert [failure] == reported


def test_a_run_ends_in_time_though_news_of_an_earlier_absence_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    source, news = Counted(Flow.range(100)), list[Callable[[], object]]()

    def later(_: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
        news.append(partial(call, *args))  # as when those who leave are on threads of their own

    monkeypatch.setattr("reactive_aio.operators.sharing.shared.soon", later)

    async def main() -> None:
        async with source.flow().share(linger=5.0) as shared:
            for _ in range(2):
                await shared.take(1).to_list()
            first, second = news
            second()
            first()
            await asyncio.sleep(5.1)
            assert 1 == source.cancels

    run_virtual(main())


@pytest.mark.parametrize("first", ["who comes", "the timer"])
def test_one_who_comes_at_the_moment_in_which_the_time_is_up_joins_that_run_or_the_next(first: str) -> None:
    source = Counted(Flow.range(100))

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        async with source.flow().share(linger=5.0) as shared:
            assert [0] == await shared.take(1).to_list()
            if first == "the timer":
                await asyncio.sleep(0)  # it is set in an event behind the one that leaves
            comes = loop.create_future()
            loop.call_at(5.0, comes.set_result, None)
            await comes
            assert 5.0 == loop.time()
            return await shared.take(1).to_list()

    given = run_virtual(main())
    assert (given, source.runs) in [([1], 1), ([0], 2)]
    assert source.runs - 1 <= source.cancels <= source.runs


def test_the_time_to_linger_begins_anew_with_each_who_leaves() -> None:
    source = Counted(Flow.range(100))

    async def main() -> None:
        async with source.flow().share(linger=5.0) as shared:
            await shared.take(1).to_list()
            await asyncio.sleep(3.0)
            await shared.take(1).to_list()
            await asyncio.sleep(3.0)
            await shared.take(1).to_list()

    run_virtual(main())
    assert 1 == source.runs
