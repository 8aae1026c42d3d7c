"""filter_when: the elements for which an awaited predicate holds, in their order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.testing import run_virtual
from tests.subscribers import Recorder, idle


async def odd(n: int) -> bool:
    await asyncio.sleep(10 - n % 10)
    return n % 2 == 1


async def never(_: object) -> bool:
    return False


@pytest.mark.parametrize("max_concurrency", [1, 2, 5, 64])
def test_elements_come_in_their_order_whatever_the_concurrency(max_concurrency: int) -> None:
    assert [*range(1, 20, 2)] == run_virtual(Flow.range(20).filter_when(odd, max_concurrency=max_concurrency).to_list())


def test_predicates_are_awaited_one_at_a_time_unless_told_otherwise() -> None:
    async def main(max_concurrency: int) -> float:
        await Flow.range(10).filter_when(odd, max_concurrency=max_concurrency).to_list()
        return asyncio.get_running_loop().time()

    assert 55.0 == run_virtual(main(1))
    assert 10.0 == run_virtual(main(10))


async def test_an_element_is_given_as_it_is_where_the_result_is_only_true() -> None:
    async def name(item: str) -> str:
        return item.strip()

    assert [" a", "b"] == await Flow.of(" a", "", "b", " ").filter_when(name).to_list()


async def test_another_element_is_asked_for_in_place_of_each_that_is_dropped() -> None:
    read: list[int] = []
    recorder = Recorder(1)

    async def third(n: int) -> bool:
        return n % 3 == 2

    Flow.range(99).do_on_next(read.append).filter_when(third).subscribe(recorder)
    await idle(100)

    assert [2] == recorder.items
    assert [0, 1, 2] == read
    recorder.cancel()
    await idle()


async def test_it_completes_without_demand_behind_elements_that_are_dropped() -> None:
    recorder = Recorder(1)

    async def first(n: int) -> bool:
        await asyncio.sleep(0)
        return n == 0

    Flow.range(4).filter_when(first, max_concurrency=4).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), 60)

    assert [0] == recorder.items
    assert "complete" == recorder.kinds[-1]


async def test_all_dropped_is_an_empty_flow() -> None:
    assert [] == await Flow.range(1000).filter_when(never, max_concurrency=3).to_list()


async def test_a_failure_names_the_element() -> None:
    async def fail(n: int) -> bool:
        return 1 // (n - 2) != 0

    with pytest.raises(ZeroDivisionError) as caught:
        await Flow.range(9).filter_when(fail).to_list()

    assert "in filter_when(fail, 1), chained at" in caught.value.__notes__[0]
    assert "element #2" in caught.value.__notes__[0]


async def test_a_result_that_is_neither_true_nor_false_is_a_failure() -> None:
    class Undecided:
        def __bool__(self) -> bool:
            raise ValueError("undecided")

    async def ask(_: int) -> Any:
        return Undecided()

    with pytest.raises(ValueError, match="undecided") as caught:
        await Flow.range(9).filter_when(ask).to_list()

    assert "element #0" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Flow.of(1).filter_when(True), TypeError, "filter_when.. takes a function, not bool"),
        (lambda: Flow.of(1).filter_when(odd, max_concurrency=0), ValueError, "max_concurrency must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()
