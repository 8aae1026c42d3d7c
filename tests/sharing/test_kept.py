"""Shared flows: what is kept for who comes later, and what is let go of."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow
from reactive_aio.testing import VirtualTimeLoop, no_leaks, run_virtual
from tests.sharing.driven import reads
from tests.subscribers import ByHand, idle


class Thing:
    """Something that can be seen to be gone."""


def alive(made: list[weakref.ref[Thing]]) -> int:
    return sum(each() is not None for each in made)


def watched(made: list[weakref.ref[Thing]]) -> Callable[[Thing], None]:
    return lambda thing: made.append(weakref.ref(thing))


@pytest.mark.parametrize("replay", [0, 1, 3])
async def test_a_replay_of_n_keeps_n(replay: int) -> None:
    made: list[weakref.ref[Thing]] = []
    gc.disable()
    try:
        things = Flow.range(10).map(lambda _: Thing()).do_on_next(watched(made))
        async with things.concat(Flow.never()).share(replay=replay) as shared:
            await shared.take(10).count()
            assert replay == alive(made)
    finally:
        gc.enable()


@pytest.mark.parametrize("readers", [2, 8])
async def test_no_more_is_kept_for_eight_subscribers_than_for_two(readers: int) -> None:
    made: list[weakref.ref[Thing]] = []
    gc.disable()
    try:
        things = Flow.range(50).map(lambda _: Thing()).do_on_next(watched(made))
        shared = things.share(lag=5, start=readers)
        fast = asyncio.ensure_future(shared.count())
        slow = [reads(shared) for _ in range(readers - 1)]
        await idle()
        assert (5, 5, 5) == (len(made), alive(made), shared.snapshot().kept)

        for each in slow:
            each.cancel()
        assert 50 == await fast
        assert 0 == alive(made)
    finally:
        gc.enable()


def test_a_replay_is_forgotten_by_age_though_nothing_happens() -> None:
    made: list[weakref.ref[Thing]] = []

    async def main() -> None:
        publisher = ByHand()
        async with Flow.from_publisher(publisher).share(replay=9, replay_for=5.0) as shared:
            reader = asyncio.ensure_future(shared.take(4).count())
            await idle()
            things = [Thing() for _ in range(4)]
            made.extend(map(weakref.ref, things))
            publisher.next(*things)
            things.clear()  # so that only the replay refers to them
            assert 4 == await reader
            await asyncio.sleep(4.9)
            assert 4 == alive(made)
            await asyncio.sleep(0.2)
            assert 0 == alive(made)
            late = reads(shared, UNBOUNDED)
            await idle()
            assert [] == late.items

    gc.disable()
    try:
        run_virtual(main())
    finally:
        gc.enable()


class Setting(VirtualTimeLoop):
    """A loop on which few timers are set."""

    few: int = 20

    def call_at(self, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self.few -= 1
        assert self.few, "the same timer is set for ever"
        return super().call_at(*args, **kwargs)


@pytest.mark.parametrize("start", [0.1, 0.3, 16383.7])
def test_the_timer_of_a_replay_is_set_once_for_a_list_however_floats_are_rounded(start: float) -> None:
    async def main() -> None:
        await asyncio.sleep(start)
        async with Flow.range(9).share(replay=1, replay_for=0.5) as shared:
            assert 0 == await shared.first()
            await asyncio.sleep(5.0)
            assert 1 == await shared.first()

    with asyncio.Runner(loop_factory=Setting) as runner:
        runner.run(main())


def test_no_timer_is_left_for_a_replay_that_nobody_can_be_given() -> None:
    async def main() -> None:
        async with no_leaks():
            assert [0, 1, 2] == await Flow.range(3).share(replay=3, replay_for=1000.0).to_list()

    run_virtual(main())
