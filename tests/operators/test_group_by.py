"""group_by: a flow for each key; bounded, and an error rather than a hang."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import (
    UNBOUNDED,
    Flow,
    GroupedFlow,
    LimitExceededError,
    SourceCancelledError,
    SourceConsumedError,
    hooks,
)
from reactive_aio.operators.windowing.group_by import Group
from tests.operators.groups import ByHand, listed, parity
from tests.subscribers import Recorder, idle


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 5), st.integers(1, 9), st.booleans())
def test_each_group_has_the_elements_of_its_key_in_order(
    numbers: list[int], keys: int, prefetch: int, apart: bool
) -> None:
    flow: Flow[int] = Flow.from_iterable(numbers)
    flow = Flow.from_publisher(flow) if apart else flow
    expected: dict[int, list[int]] = {}
    for n in numbers:
        expected.setdefault(n % keys, []).append(n)

    assert expected == asyncio.run(listed(flow.group_by(lambda n: n % keys, prefetch=prefetch)))


async def test_a_group_is_emitted_with_its_first_element_and_has_its_key() -> None:
    hand = ByHand()
    await idle()
    assert [] == hand.subscriber.items

    await hand.give(1)
    assert ["odd"] == [group.key for group in hand.subscriber.items]
    await hand.give(3, 2)
    assert ["odd", "even"] == [group.key for group in hand.subscriber.items]


async def test_no_more_groups_come_than_are_requested_and_their_elements_are_kept() -> None:
    hand = ByHand(demand=1)
    await idle()
    await hand.give(1, 2, 3, 4)
    assert ["odd"] == [group.key for group in hand.subscriber.items]

    hand.subscriber.request(1)
    await idle()
    assert [2, 4] == (await hand.read(1)).items


async def test_no_more_than_the_prefetch_is_asked_for_and_kept_of_all_groups_together() -> None:
    hand = ByHand(prefetch=4)
    await idle()
    await hand.give(1, 2, 3, 4)
    assert [[4]] == hand.source.requests

    odd = await hand.read(0)
    assert [1, 3] == odd.items
    assert [[4, 2]] == hand.source.requests


async def test_more_is_asked_for_when_three_quarters_have_been_read() -> None:
    hand = ByHand(prefetch=8)
    await idle()
    await hand.give(1)
    await hand.read(0, demand=100)
    await hand.give(3, 5, 7, 9)
    assert [[8]] == hand.source.requests

    await hand.give(11)
    assert [[8, 6]] == hand.source.requests


async def test_a_group_gives_no_more_than_its_reader_wants() -> None:
    hand = ByHand()
    await idle()
    await hand.give(1, 3, 5)
    reader = await hand.read(0, demand=2)
    assert [1, 3] == reader.items

    reader.request(1)
    await idle()
    assert [1, 3, 5] == reader.items


async def test_groups_complete_behind_their_elements_when_the_flow_does() -> None:
    hand = ByHand(demand=1)
    await idle()
    await hand.give(1, 2)
    hand.source.last.complete()
    await idle()
    assert ["subscribe", "next"] == hand.subscriber.kinds

    hand.subscriber.request(1)
    await idle()
    assert ["subscribe", "next", "next", "complete"] == hand.subscriber.kinds
    assert ["subscribe", "next", "complete"] == (await hand.read(1)).kinds


async def test_a_flow_without_elements_has_no_groups() -> None:
    subscriber = Recorder()
    Flow.empty().group_by(parity).subscribe(subscriber)
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds


async def test_a_group_can_be_subscribed_to_once() -> None:
    groups = await Flow.of(1).group_by(parity).to_list()
    assert [1] == await groups[0].to_list()

    with pytest.raises(SourceConsumedError, match="group 'odd' was subscribed to a second time"):
        await groups[0].to_list()


async def test_a_group_can_be_read_from_another_event_loop() -> None:
    async def read(group: GroupedFlow[str, int]) -> tuple[str, list[int]]:
        return group.key, await asyncio.to_thread(group.run_sync)

    async with asyncio.TaskGroup() as tasks:
        reads = [tasks.create_task(read(group)) async for group in Flow.range(2000).group_by(parity)]

    assert [("even", [*range(0, 2000, 2)]), ("odd", [*range(1, 2000, 2)])] == [each.result() for each in reads]


def test_groups_are_read_on_any_event_loop_when_all_have_ended() -> None:
    async def both() -> list[GroupedFlow[str, int]]:
        return await Flow.range(5).group_by(parity).to_list()

    even, odd = asyncio.run(both())

    assert [0, 2, 4] == asyncio.run(even.to_list())
    assert [1, 3] == asyncio.run(odd.to_list())


def test_groups_that_nobody_read_in_time_say_so_on_any_event_loop() -> None:
    async def first() -> list[GroupedFlow[str, int]]:
        groups = await Flow.never().start_with(*range(5)).group_by(parity).take(2).to_list()
        await idle()
        return groups

    for group in asyncio.run(first()):
        with pytest.raises(SourceCancelledError, match="before anybody read the group"):
            asyncio.run(group.to_list())


# -- bounds


async def test_one_group_too_many_is_an_error_that_names_the_bound_behind_what_came_before() -> None:
    hand = ByHand(key=lambda n: n, max_groups=2)
    await idle()
    await hand.give(1, 2)
    reader = await hand.read(0)
    await hand.give(1, 3)

    assert isinstance(hand.subscriber.error, LimitExceededError)
    assert "the key 3 needs a new group, but 2 groups are open" in str(hand.subscriber.error)
    assert [1, 1] == reader.items
    assert hand.subscriber.error is reader.error
    assert [3] == hand.discarded
    assert 1 == hand.source.last.cancels


async def test_a_reader_that_leaves_makes_room_and_the_next_element_of_its_key_begins_another_group() -> None:
    hand = ByHand(key=lambda n: n % 10, max_groups=1)
    await idle()
    await hand.give(1)
    reader = await hand.read(0)
    reader.cancel()
    await idle()
    await hand.give(11, 21)

    assert [1, 1] == [group.key for group in hand.subscriber.items]
    assert [11, 21] == (await hand.read(1)).items


async def test_what_a_reader_leaves_goes_to_the_discard_hook_and_makes_room_for_others() -> None:
    hand = ByHand(prefetch=4)
    await idle()
    await hand.give(1, 2, 3, 5)
    odd = await hand.read(0, demand=1)
    odd.cancel()
    await idle()

    assert [3, 5] == hand.discarded
    assert [[4, 1]] == hand.source.requests

    await hand.give(4)
    assert [[4, 1, 2]] == hand.source.requests


async def test_what_was_kept_of_a_group_that_is_let_go_of_unread_goes_to_the_discard_hook() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        groups = await Flow.range(4).group_by(parity).to_list()
        del groups[0]
        gc.collect()

    assert [0, 2] == discarded


# -- failures


async def test_the_failure_of_the_flow_is_that_of_the_groups_behind_their_elements() -> None:
    hand = ByHand()
    await idle()
    await hand.give(1, 3, 2)
    odd = await hand.read(0, demand=1)
    hand.source.last.error(OSError("down"))
    await idle()
    assert "down" == str(hand.subscriber.error)
    assert [1] == odd.items

    odd.request(9)
    await idle()
    assert [1, 3] == odd.items
    assert "down" == str(odd.error)
    assert [] == hand.dropped


async def iterated(flow: Flow[Any]) -> None:
    async for _ in flow:
        pass


@pytest.mark.parametrize("end", [Flow.count, Flow.to_list, iterated], ids=["direct", "gathered", "iterated"])
async def test_readers_that_raise_the_failure_add_nothing_to_what_others_raise(
    end: Callable[[Flow[Any]], Awaitable[object]],
) -> None:
    failures: list[tuple[str, ...]] = []

    async def read(group: Flow[int]) -> None:
        try:
            await end(group)
        except OSError as error:
            failures.append(tuple(traceback.format_exception(error)))

    hand = ByHand(10, key=int)
    await idle()
    await hand.give(*range(10))
    reads = [asyncio.ensure_future(read(group)) for group in hand.subscriber.items[:5]]
    await idle()
    hand.source.last.error(OSError("down"))
    await asyncio.wait(reads)
    for group in hand.subscriber.items[5:]:
        await read(group)

    assert (10, 1) == (len(failures), len(set(failures)))


async def test_the_failure_of_the_key_comes_behind_what_came_before_it_and_says_where() -> None:
    hand = ByHand(key=lambda n: 6 // n)
    await idle()
    await hand.give(2)
    reader = await hand.read(0)
    await hand.give(2, 0, 2)

    assert [2, 2] == reader.items
    assert isinstance(hand.subscriber.error, ZeroDivisionError)
    [note] = hand.subscriber.error.__notes__
    assert note.startswith("in group_by(")
    assert note.endswith("on element #2")
    assert [0, 2] == hand.discarded


async def test_a_key_that_raises_stop_iteration_is_an_error() -> None:
    subscriber = Recorder(1)
    Flow.of(1).group_by(lambda _: next(iter(()))).subscribe(subscriber)
    await idle()

    assert isinstance(subscriber.error, RuntimeError)
    assert isinstance(subscriber.error.__cause__, StopIteration)


async def test_a_key_that_can_not_be_hashed_is_an_error() -> None:
    unhashable: Any = lambda n: [n]  # noqa: E731

    with pytest.raises(TypeError, match="unhashable"):
        await Flow.of(1).group_by(unhashable).to_list()


async def test_a_failure_is_heard_of_once_where_one_task_reads_the_groups_and_others_their_elements() -> None:
    dropped: list[BaseException] = []

    async def failing() -> Any:
        yield 1
        await idle()
        raise OSError("down")

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(ExceptionGroup) as failure:
        await listed(Flow.from_async_iterable(failing()).group_by(parity))

    assert ["down"] == [str(error) for error in failure.value.exceptions]
    assert [] == dropped


# -- cancel


async def test_when_the_groups_are_cancelled_those_that_are_being_read_go_on() -> None:
    hand = ByHand()
    await idle()
    await hand.give(1, 2)
    odd = await hand.read(0)
    hand.subscriber.cancel()
    await idle()
    assert 0 == hand.source.last.cancels

    await hand.give(3, 4)
    assert [1, 3] == odd.items
    assert [4] == hand.discarded
    odd.cancel()
    await idle()
    assert 1 == hand.source.last.cancels


async def test_when_the_groups_are_cancelled_one_that_nobody_reads_fails_behind_what_it_has() -> None:
    hand = ByHand()
    await idle()
    await hand.give(1)
    hand.subscriber.cancel()
    await idle()
    assert 1 == hand.source.last.cancels

    odd = await hand.read(0)
    assert [1] == odd.items
    assert isinstance(odd.error, SourceCancelledError)
    assert "before anybody read the group 'odd'" in str(odd.error)


@pytest.mark.parametrize("somebody", [True, False])
async def test_a_failure_that_comes_behind_the_cancel_is_heard_by_who_reads_a_group_or_else_by_the_hook_once(
    somebody: bool,
) -> None:
    hand, failure = ByHand(), OSError("behind the cancel")
    await idle()
    await hand.give(1, 2)
    hand.subscriber.cancel()
    await asyncio.sleep(0)
    hand.source.last.error(failure)
    await asyncio.sleep(0)
    heard = (await hand.read(0)).error if somebody else None
    await idle()

    assert (([], failure) if somebody else ([failure], None)) == (hand.dropped, heard)


@pytest.mark.parametrize("leaving", ["all leave", "one reads on", "the groups are read on"])
async def test_a_failure_behind_kept_elements_is_reported_once_where_all_leave_before_they_get_it(leaving: str) -> None:
    hand, failure = ByHand(), OSError("behind the elements")
    await idle()
    await hand.give(1, 2)
    odd, even = [await hand.read(at, demand=1) for at in (0, 1)]
    await hand.give(3, 4)
    if leaving != "the groups are read on":
        hand.subscriber.cancel()
    hand.source.last.error(failure)
    await idle()
    odd.cancel()
    await idle()
    assert [] == hand.dropped  # there is another one who may still get it

    if leaving == "one reads on":
        even.request(1)
    else:
        even.cancel()
    await idle()
    heard = [value for kind, value in (*even.signals, *hand.subscriber.signals) if kind == "error"]
    assert (([failure], []) if leaving == "all leave" else ([], [failure])) == (hand.dropped, heard)


async def test_what_nobody_has_asked_for_goes_to_the_discard_hook_on_cancel() -> None:
    hand = ByHand(demand=0)
    await idle()
    await hand.give(1, 2, 3)
    hand.subscriber.cancel()
    await idle()

    assert [1, 3, 2] == hand.discarded
    assert 1 == hand.source.last.cancels


async def test_the_first_groups_of_many_can_be_taken_and_read() -> None:
    flow = Flow.range(10_000).group_by(lambda n: n % 100).take(2)

    assert {0: 100, 1: 100} == {key: len(items) for key, items in (await listed(flow)).items()}


def test_bad_arguments_are_refused_when_the_flow_is_built() -> None:
    async def key(n: int) -> int:
        return n

    not_a_key: Any = key
    with pytest.raises(TypeError, match=r"group_by\(\) takes an ordinary function, but .*key is async def"):
        Flow.of(1).group_by(not_a_key)
    with pytest.raises(ValueError, match=r"group_by\(max_groups=0\): max_groups must be at least 1"):
        Flow.of(1).group_by(parity, max_groups=0)
    with pytest.raises(ValueError, match=r"group_by\(prefetch=0\): prefetch must be at least 1"):
        Flow.of(1).group_by(parity, prefetch=0)
    with pytest.raises(ValueError, match=r"group_by\(stall_after=0\): stall_after must be a finite number above 0"):
        Flow.of(1).group_by(parity, stall_after=0)


@pytest.mark.parametrize("kind", ["complete", "error"])
async def test_many_groups_end_in_several_turns_and_then_the_whole_does(
    kind: str, still: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    ended: list[int] = []
    end = Group.end

    def slow(group: Group, failure: BaseException | None) -> None:
        still[0] += 2e-3
        ended.append(len(turns))
        end(group, failure)

    monkeypatch.setattr(Group, "end", slow)
    hand = ByHand(40, key=int)
    await idle()
    await hand.give(*range(40))
    reads = [Recorder(UNBOUNDED) for _ in range(40)]
    for group, read in zip(hand.subscriber.items, reads, strict=True):
        group.subscribe(read)
    await idle()
    if kind == "complete":
        hand.source.last.complete()
    else:
        hand.source.last.error(OSError("down"))
    while kind not in hand.subscriber.kinds:
        assert len(turns) < 1_000
        turns.append(1)
        await asyncio.sleep(0)

    assert 40 == len(ended)
    assert max(Counter(ended).values()) <= 2
    assert all(kind == read.kinds[-1] for read in reads)
    assert [] == hand.dropped


async def test_elements_right_before_a_failure_come_in_their_group() -> None:
    seen: list[int] = []

    def fail_at_two(n: int) -> int:
        if n == 2:
            raise OSError("down")
        return n

    grouped = Flow.range(9).map(fail_at_two).group_by(lambda _: "all", prefetch=4)
    with pytest.raises(OSError, match="down"):
        await grouped.concat_map(lambda group: group).for_each(seen.append)

    assert [0, 1] == seen
