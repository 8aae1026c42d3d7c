"""A value that changes: each who reads is given the latest, when it asks."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, State, schedulers
from tests.subscribers import Recorder, idle


async def reads(state: State[Any], request: int = 0) -> Recorder:
    recorder = Recorder(request)
    state.flow.subscribe(recorder)
    await idle()
    return recorder


async def test_one_who_comes_is_given_the_value_first() -> None:
    state = State(1)
    state.set(2)

    assert ([2], 2) == ((await reads(state, UNBOUNDED)).items, state.value)


async def test_each_is_given_the_latest_when_it_asks() -> None:
    state = State(0)
    fast, slow = await reads(state, UNBOUNDED), await reads(state)
    for n in (1, 2, 3):
        state.set(n)
        await idle()
    assert ([0, 1, 2, 3], []) == (fast.items, slow.items)

    slow.request(1)
    await idle()
    assert [3] == slow.items


async def test_values_that_are_set_in_one_turn_are_one() -> None:
    state = State(0)
    reader = await reads(state, UNBOUNDED)
    for n in range(1, 1000):
        state.set(n)
    await idle()

    assert [0, 999] == reader.items


async def test_nobody_is_given_a_value_twice() -> None:
    state = State(0)
    reader = await reads(state, 1)
    reader.request(5)
    await idle()

    assert [0] == reader.items


@pytest.mark.parametrize(("distinct", "given"), [(False, [1, 1, 1]), (True, [1])])
async def test_an_equal_value_is_told_unless_values_are_to_be_distinct(distinct: bool, given: list[int]) -> None:
    state = State(1, distinct=distinct)
    reader = await reads(state, UNBOUNDED)
    for _ in range(2):
        state.set(1)
        await idle()

    assert given == reader.items


async def test_the_end_is_behind_the_latest_value() -> None:
    state = State(0)
    fast, slow = await reads(state, UNBOUNDED), await reads(state)
    state.set(1)
    state.close()
    await idle()
    assert ([0, 1], "complete", ["subscribe"]) == (fast.items, fast.kinds[-1], slow.kinds)

    slow.request(1)
    await idle()
    assert (["subscribe", "next", "complete"], [1]) == (slow.kinds, slow.items)
    assert [1] == await state.flow.to_list()


async def test_what_is_closed_takes_no_more_values() -> None:
    state = State(0)
    state.close()
    state.close()
    with pytest.raises(RuntimeError, match="the state is closed"):
        state.set(1)

    assert 0 == state.value


async def test_it_is_set_from_any_thread_and_read_on_any() -> None:
    state = State(0)
    both = [asyncio.ensure_future(state.flow.to_list())]
    both.append(asyncio.ensure_future(state.flow.publish_on(schedulers.thread("reader")).map(lambda n: n).to_list()))
    both.append(asyncio.ensure_future(state.flow.subscribe_on(schedulers.thread("another")).to_list()))
    await idle()

    def count() -> None:
        for n in range(1, 10_001):
            state.set(n)
        state.close()

    threading.Thread(target=count).start()
    for seen in await asyncio.gather(*both):
        assert (10_000, sorted(set(seen))) == (seen[-1], seen)


async def test_who_leaves_is_forgotten() -> None:
    class Thing:
        """Something that can be seen to be gone."""

    def readers() -> int:
        return sum(type(each).__name__ == "LatestReader" for each in gc.get_objects())

    before = readers()
    state = State(Thing())
    seen = weakref.ref(state.value)
    gc.disable()
    try:
        assert 1 == await state.flow.take(1).count()
        state.set(Thing())
        assert seen() is None
        assert before == readers()
    finally:
        gc.enable()


async def test_a_value_may_set_another_one_when_it_goes() -> None:
    class Leaving:
        def __del__(self) -> None:
            state.set("set by a finalizer")

    state: State[Any] = State(None)
    state.set(Leaving())
    state.set(1)

    assert "set by a finalizer" == state.value


async def test_none_is_a_value_as_any() -> None:
    assert [None] == await State(None).flow.take(1).to_list()


def test_a_flag_that_is_none_is_refused() -> None:
    distinct: Any = 1
    with pytest.raises(TypeError, match="distinct"):
        State(0, distinct=distinct)


def test_a_closed_state_refuses_an_equal_value_as_well() -> None:
    level = State(1, distinct=True)
    level.close()
    for value in (1, 2):
        with pytest.raises(RuntimeError, match="closed"):
            level.set(value)
