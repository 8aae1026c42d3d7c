"""timestamp and elapsed: the time beside each element."""

from __future__ import annotations

import asyncio

from reactive_aio import Flow, schedulers
from reactive_aio.operators.timing.stamping import clock
from reactive_aio.testing import from_marbles, run_virtual


def test_the_time_is_that_of_the_clock_of_the_loop() -> None:
    assert [(2.0, "a"), (6.0, "b")] == run_virtual(from_marbles("--a---b").timestamp().take(2).to_list())


def test_the_first_time_counts_from_the_first_demand_and_each_other_from_the_element_before() -> None:
    async def main() -> list[tuple[float, str]]:
        async with from_marbles("--a---(bc)").elapsed().take(3).open() as items:
            await asyncio.sleep(10.0)
            return [item async for item in items]

    assert [(2.0, "a"), (4.0, "b"), (0.0, "c")] == run_virtual(main())


def test_each_subscription_has_its_own_time() -> None:
    async def main() -> None:
        flow = from_marbles("--a---b").elapsed().take(2)
        assert [2.0, 4.0] == [seconds for seconds, _ in await flow.to_list()]
        assert [2.0, 4.0] == [seconds for seconds, _ in await flow.to_list()]

    run_virtual(main())


def test_behind_a_pool_of_workers_it_is_the_clock_of_the_loop_still() -> None:
    async def main() -> list[tuple[float, str]]:
        return await Flow.interval(3.0).publish_on(schedulers.threads(2)).map(str).timestamp().take(2).to_list()

    assert [(3.0, "0"), (6.0, "1")] == run_virtual(main())


def test_where_there_is_no_loop_it_is_the_clock_that_loops_go_by() -> None:
    before = clock()
    assert before <= clock() < before + 60.0
