"""Every operator, cancelled at every turn of the loop: the cancel comes out, and nothing is left."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from tests.registry import REGISTRY, AnyFlow, Entry, Settings
from tests.subscribers import idle

MOST_TURNS = 60
"""More turns of the loop than any entry takes for five elements, where no thread takes part."""
ENTRIES = [entry for entry in REGISTRY if not (entry.threaded or entry.pool)]


def all_there_is() -> set[object]:
    return {*asyncio.all_tasks(), *threading.enumerate()}


def fused(flow: AnyFlow) -> AnyFlow:
    return flow


async def cancelled_after(turns: int, flow: AnyFlow, times: int) -> bool:
    """Collect a flow, cancel it after so many turns, and tell whether it was cancelled before it had ended."""
    task = asyncio.ensure_future(flow.to_list())
    for _ in range(turns):
        await asyncio.sleep(0)
    over = task.done()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    try:
        listed = await task
    except asyncio.CancelledError:
        assert not over
        return True
    assert over or len(listed) == 5
    return False


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize("via", [fused, Flow.from_publisher], ids=["fused", "apart"])
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
async def test_a_cancel_comes_out_and_nothing_is_left(entry: Entry, via: Any, times: int) -> None:
    before = all_there_is()
    turns = 0

    while await cancelled_after(turns, entry.make(5, via, Settings(prefetch=2)), times):
        if via is not fused:
            await idle()  # the contract has no word by which a publisher could be waited for
        assert all_there_is() <= before
        turns += 1
        assert turns < MOST_TURNS, "it does not end"

    assert turns, "no cancel came before the end"


async def test_a_flow_over_a_thread_leaves_nothing_whenever_it_is_cancelled() -> None:
    before = all_there_is()

    for turns in range(30):
        flow = Flow.range(1_000_000_000).publish_on(schedulers.thread("cancelled"), prefetch=2).map(str)
        assert await cancelled_after(turns, flow, 1)
        assert all_there_is() <= before
