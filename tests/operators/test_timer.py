"""timer: one element, some time after the first demand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.testing import VirtualTimeLoop, probe, run_virtual


def test_the_element_comes_the_delay_after_the_first_demand_and_completes() -> None:
    async def main() -> None:
        async with probe(Flow.timer(10.0)) as p:
            await p.expect_no_event(for_=5.0)
            await p.request(1)
            await p.expect_no_event(for_=9.5)
            await p.request(1)  # starts nothing anew
            await p.expect_next(0)
            await p.expect_complete()
            assert 15.0 == asyncio.get_running_loop().time()

    run_virtual(main())


def test_each_subscription_has_a_clock_of_its_own() -> None:
    async def main() -> tuple[list[int], float]:
        return await Flow.timer(2.0).repeat(3).to_list(), asyncio.get_running_loop().time()

    assert ([0, 0, 0], 6.0) == run_virtual(main())


def test_cancel_stops_the_clock() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Flow.timer(1.0).open() as items:
            task = asyncio.ensure_future(anext(items))
            await asyncio.sleep(0.5)
            task.cancel()
        assert isinstance(loop, VirtualTimeLoop)
        assert all(timer.cancelled() for timer in loop._scheduled)

    run_virtual(main())


@pytest.mark.parametrize(
    ("delay", "error", "text"),
    [
        (-1, ValueError, "delay must be a finite number of at least 0"),
        pytest.param(
            10**400,
            ValueError,
            r"timer\(delay=1000.*\.\.\.\): delay must be a finite number",
            id="larger than any float",
        ),
        ("1", TypeError, "delay is a number of seconds, not str"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(delay: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        Flow.timer(delay)
