from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from tests.subscribers import ByHand, Recorder, idle


@pytest.mark.parametrize(
    ("n", "expected"), [(1, [[0], [1], [2], [3]]), (2, [[0, 1], [2, 3]]), (3, [[0, 1, 2], [3]]), (9, [[0, 1, 2, 3]])]
)
async def test_gives_lists_of_n_and_what_is_left(n: int, expected: list[list[int]]) -> None:
    assert await Flow.range(4).buffer(n).to_list() == expected


async def test_an_empty_source_gives_no_list() -> None:
    assert await Flow.empty().buffer(2).to_list() == []


async def test_reads_for_a_list_what_is_in_it_and_no_more() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for n in range(100):
            read.append(n)
            yield n

    assert await Flow.from_iterable(numbers()).buffer(3).take(2).to_list() == [[0, 1, 2], [3, 4, 5]]
    assert read == [0, 1, 2, 3, 4, 5]


async def test_asks_for_what_the_wanted_lists_have_room_for() -> None:
    source = ByHand()
    recorder = Recorder(request=2)

    Flow.from_publisher(source).buffer(3).subscribe(recorder)
    await idle()
    assert source.requests == [6]

    source.next(*range(5))
    await idle()
    recorder.request(1)
    await idle()
    assert sum(source.requests) == 9


async def test_unbounded_demand_stays_unbounded() -> None:
    source = ByHand()

    Flow.from_publisher(source).buffer(3).subscribe(Recorder(request=UNBOUNDED))
    await idle()

    assert source.requests == [UNBOUNDED]


async def test_completes_at_once_with_the_last_list() -> None:
    recorder = Recorder(request=2)

    Flow.range(4).buffer(2).subscribe(recorder)
    await idle()

    assert recorder.kinds == ["subscribe", "next", "next", "complete"]


async def test_the_last_list_waits_for_demand() -> None:
    recorder = Recorder(request=1)

    Flow.range(3).buffer(2).subscribe(recorder)
    await idle()
    assert recorder.kinds == ["subscribe", "next"]

    recorder.request(1)
    await idle()
    assert recorder.signals[2:] == [("next", [2]), ("complete", None)]


async def test_what_made_no_list_is_discarded_when_the_source_fails() -> None:
    discarded: list[object] = []

    with hooks.using(on_discard=discarded.append), pytest.raises(OSError, match="down"):
        await Flow.range(3).concat(Flow.error(OSError("down"))).buffer(2).drain()

    assert discarded == [2]


async def test_what_made_no_list_is_discarded_on_cancel() -> None:
    discarded: list[object] = []
    source = ByHand()
    recorder = Recorder(request=1)

    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(source).buffer(3).subscribe(recorder)
        await idle()
        source.next(1, 2)
        await idle()
        recorder.cancel()
        await idle()

    assert (discarded, source.cancels) == ([1, 2], 1)


async def test_each_subscription_has_its_own_list() -> None:
    source = ByHand()
    flow = Flow.from_publisher(source).buffer(2)
    first, second = Recorder(request=1), Recorder(request=1)

    flow.subscribe(first)
    flow.subscribe(second)
    await idle()
    source.subscribers[0].on_next(1)
    source.subscribers[1].on_next(2)
    source.subscribers[0].on_next(3)
    await idle()

    assert (first.items, second.items) == ([[1, 3]], [])


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_a_wrong_size_is_refused_when_the_flow_is_built(n: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="buffer"):
        Flow.of(1).buffer(cast("Any", n))
