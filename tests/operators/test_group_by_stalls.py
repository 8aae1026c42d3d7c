"""group_by: never a hang, since a stall is an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import (
    Flow,
    GroupedFlow,
    StalledError,
)
from reactive_aio.testing import run_virtual
from tests.operators.groups import ByHand, in_turn, listed, parity
from tests.registry import same
from tests.subscribers import idle


def stalling(stall_after: float = 10) -> Flow[GroupedFlow[int, int]]:
    return Flow.range(1000).group_by(lambda n: n % 3, prefetch=16, stall_after=stall_after)


def test_groups_that_nobody_reads_are_an_error_when_they_hold_up_the_others() -> None:
    async def read_the_first_alone() -> float:
        started = asyncio.get_running_loop().time()
        with pytest.raises(StalledError) as failure:
            await in_turn(stalling(stall_after=7))
        told = str(failure.value)
        assert "nothing has moved for 7 s" in told
        assert "nobody reads (2: group 1, group 2)" in told
        assert "Raise the max_concurrency of the operator that reads the groups" in told
        assert __file__ in told
        return asyncio.get_running_loop().time() - started

    assert 7 == pytest.approx(run_virtual(read_the_first_alone()))


def test_groups_that_nobody_asks_for_are_an_error_when_they_hold_up_the_others() -> None:
    async def read_two_of_three() -> None:
        async with stalling().open() as groups, asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task((await anext(groups)).to_list())

    with pytest.raises(ExceptionGroup) as failure:
        run_virtual(read_two_of_three())

    assert {StalledError} == {type(error) for error in failure.value.exceptions}


def test_a_reader_that_asks_for_more_when_others_have_taken_up_all_does_not_wait_for_ever() -> None:
    async def ask_late() -> None:
        hand = ByHand(prefetch=2)
        await idle()
        await hand.give(1, 2)
        odd = await hand.read(0, demand=1)
        await hand.give(4)
        await asyncio.sleep(3600)
        assert ["subscribe", "next"] == odd.kinds

        odd.request(1)
        await asyncio.sleep(3600)
        assert isinstance(odd.error, StalledError)

    run_virtual(ask_late())


def test_it_is_no_stall_when_somebody_comes_to_read_in_time() -> None:
    async def read_late() -> dict[int, int]:
        async with asyncio.TaskGroup() as tasks:
            counts: dict[int, asyncio.Task[int]] = {}
            async for group in stalling():
                await asyncio.sleep(9)
                counts[group.key] = tasks.create_task(group.count())
        return {key: count.result() for key, count in counts.items()}

    assert {0: 334, 1: 333, 2: 333} == run_virtual(read_late())


def test_it_is_no_stall_while_nobody_waits() -> None:
    async def read_at_leisure() -> list[int]:
        async with Flow.range(6).group_by(lambda _: "all", prefetch=2).concat_map(same).open() as items:
            return [await later(anext(items)) for _ in range(6)]

    assert [0, 1, 2, 3, 4, 5] == run_virtual(read_at_leisure())


async def later(awaited: Any) -> Any:
    """Wait for long before and after."""
    await asyncio.sleep(3600)
    item = await awaited
    await asyncio.sleep(3600)
    return item


def test_it_is_no_stall_when_a_reader_is_slow() -> None:
    async def count_slowly(group: GroupedFlow[int, int]) -> int:
        count = 0
        async for _ in group.take(20):
            await asyncio.sleep(60)
            count += 1
        return count

    async def read_all() -> list[int]:
        async with asyncio.TaskGroup() as tasks:
            counts = [
                tasks.create_task(count_slowly(group)) async for group in Flow.range(60).group_by(parity, prefetch=4)
            ]
        return [count.result() for count in counts]

    assert [20, 20] == run_virtual(read_all())[:2]


def test_it_is_no_stall_when_the_flow_itself_is_slow() -> None:
    async def read_all() -> dict[str, list[int]]:
        return await listed(Flow.interval(60).take(4).group_by(parity, prefetch=1))

    assert {"even": [0, 2], "odd": [1, 3]} == run_virtual(read_all())


def test_groups_that_are_only_collected_are_an_error_once_they_take_up_all() -> None:
    with pytest.raises(StalledError, match="Groups that nobody reads"):
        run_virtual(stalling().to_list())


@pytest.mark.usefixtures("still")
def test_a_reader_that_has_left_holds_up_no_error() -> None:
    async def leave() -> None:
        hand = ByHand(key=lambda n: n, prefetch=2)
        await idle()
        await hand.give(0)
        (await hand.read(0, demand=1)).cancel()
        await idle()
        await hand.give(1, 2)
        await asyncio.sleep(3600)
        assert isinstance(hand.subscriber.error, StalledError)

    run_virtual(leave())


def test_it_is_no_stall_when_the_one_who_waited_has_left() -> None:
    async def leave() -> None:
        hand = ByHand(demand=2, prefetch=2)
        await idle()
        await hand.give(1, 2)
        odd = await hand.read(0)
        await hand.give(4)
        odd.cancel()
        await asyncio.sleep(3600)
        assert {"subscribe", "next"} == set(hand.subscriber.kinds)

    run_virtual(leave())


@pytest.mark.usefixtures("still")
def test_it_is_no_stall_while_one_who_had_waited_does_not_use_what_has_come() -> None:
    async def wait_then_rest() -> None:
        hand = ByHand(prefetch=2)
        await idle()
        await hand.give(1, 2)
        odd = await hand.read(0, demand=2)
        await hand.give(4)
        even = await hand.read(1)
        await hand.give(1)
        await hand.give(3, 5)
        await asyncio.sleep(3600)
        even.request(1)
        await asyncio.sleep(3600)
        assert [1, 1] == odd.items
        assert {"subscribe", "next"} == set(hand.subscriber.kinds)

    run_virtual(wait_then_rest())
