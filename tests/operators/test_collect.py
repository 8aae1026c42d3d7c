from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from reactive_aio import UNBOUNDED, Flow, schedulers
from tests.subscribers import ByHand, idle


async def test_gives_one_container_of_everything() -> None:
    assert await Flow.range(3).collect(list, list.append) == [0, 1, 2]


async def test_the_container_of_an_empty_source_is_given_too() -> None:
    assert await Flow.empty().collect(list, list.append) == []


async def test_the_container_is_made_anew_for_each_subscription() -> None:
    made: list[list[int]] = []

    def factory() -> list[int]:
        made.append([])
        return made[-1]

    flow = Flow.range(2)

    first, second = await flow.collect(factory, list.append), await flow.collect(factory, list.append)
    assert first == second == [0, 1]
    assert [first is made[0], second is made[1], len(made)] == [True, True, 2]


async def test_nothing_is_made_or_asked_for_before_it_is_awaited() -> None:
    source = ByHand()
    made: list[list[int]] = []

    collecting = Flow.from_publisher(source).collect(lambda: made.append([]) or made[-1], list.append)
    await idle()

    assert (source.requests, made) == ([], [])
    collecting.close()


async def test_asks_for_everything_and_returns_when_the_source_has_completed() -> None:
    source = ByHand()

    collecting = asyncio.ensure_future(Flow.from_publisher(source).collect(list, list.append))
    await idle()
    assert source.requests == [UNBOUNDED]

    source.next(1, 2)
    await idle()
    assert not collecting.done()

    source.complete()
    assert await collecting == [1, 2]


async def test_the_container_may_come_from_another_thread() -> None:
    flow = Flow.range(1000).publish_on(schedulers.thread("collect")).map(str)

    assert await flow.collect(set, set.add) == set(map(str, range(1000)))


async def test_it_is_given_as_it_is_even_where_that_is_none() -> None:
    seen: list[int] = []

    assert await Flow.of(1, 2).collect(lambda: None, lambda _, item: seen.append(item)) is None
    assert seen == [1, 2]


async def test_a_failing_source_gives_no_container() -> None:
    with pytest.raises(OSError, match="down"):
        await Flow.of(1).concat(Flow.error(OSError("down"))).collect(list, list.append)


@pytest.mark.parametrize("items", [[], [1]])
async def test_a_failing_factory_fails_it(items: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        await Flow.from_iterable(items).collect(lambda: [1 // 0], list.append)


async def test_a_failing_accumulator_fails_it_and_is_named() -> None:
    with pytest.raises(TypeError) as caught:
        await Flow.of([1]).collect(set, set.add)

    assert "in collect(set, add), chained at" in caught.value.__notes__[0]


async def test_to_cancel_it_cancels_the_source() -> None:
    source = ByHand()
    collecting = asyncio.ensure_future(Flow.from_publisher(source).collect(list, list.append))
    await idle()
    source.next(1)
    await idle()

    collecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await collecting

    assert source.cancels == 1


async def test_its_container_goes_on_as_a_flow_by_from_awaitable() -> None:
    letters = Flow.from_iterable("abcab")
    ranked = Flow.from_awaitable(lambda: letters.collect(set, set.add)).flat_map_iterable(sorted)

    assert await ranked.take(2).to_list() == ["a", "b"]
    assert await ranked.map(str.upper).to_list() == ["A", "B", "C"]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_coroutine_function_is_refused(place: int) -> None:
    async def wrong(*_: object) -> None:
        raise NotImplementedError

    functions: list[Any] = [list, list.append, list.extend]
    functions[place] = wrong

    with pytest.raises(TypeError, match="ordinary function"):
        await Flow.of(1).collect(*functions[:2], combine=functions[2])


async def test_an_argument_that_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        await Flow.of(1).collect(cast("Any", []), list.append)
