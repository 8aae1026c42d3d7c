"""run_sync blocks its thread: it refuses a flow that needs the event loop there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.schedulers import Scheduler


def running(_: Scheduler) -> Scheduler:
    return schedulers.loop(asyncio.get_running_loop())


@pytest.mark.parametrize("place", [lambda outer: outer, running], ids=["thread", "loop"])
@pytest.mark.parametrize("inside", [False, True], ids=["of its own", "of a flow that it reads"])
async def test_run_sync_that_would_wait_for_itself_is_refused(
    place: Callable[[Scheduler], Scheduler], inside: bool
) -> None:
    async with schedulers.thread("outer") as outer:

        def nested(_: int) -> list[int]:
            flow = Flow.of(1).publish_on(place(outer))
            return (Flow.of(0).concat(flow) if inside else flow).run_sync()

        with pytest.raises(RuntimeError, match=r"run_sync\(\) would wait for itself: it blocks (thread|loop)"):
            await Flow.of(1).publish_on(outer).map(nested).to_list()


async def test_beside_a_running_loop_it_runs_on_a_thread_of_its_own() -> None:
    flow = Flow.of(1).publish_on(schedulers.current()).publish_on(schedulers.thread("inner"))

    assert [1] == flow.run_sync()
