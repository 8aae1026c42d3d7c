"""Shared flows: what is kept for who comes later, and what is let go of."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Callable

import pytest

from reactive_aio import UNBOUNDED, Flow
from reactive_aio.testing import no_leaks, run_virtual
from tests.few_timers import FewTimers
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


@pytest.mark.parametrize("start", [0.1, 0.3, 16383.7])
def test_the_timer_of_a_replay_is_set_once_for_a_list_however_floats_are_rounded(start: float) -> None:
    async def main() -> None:
        await Flow.timer(start).drain()
        async with Flow.range(9).share(replay=1, replay_for=0.5) as shared:
            assert 0 == await shared.first()
            await asyncio.sleep(5.0)
            assert 1 == await shared.first()

    with asyncio.Runner(loop_factory=FewTimers) as runner:
        runner.run(main())


def test_no_timer_is_left_for_a_replay_that_nobody_can_be_given() -> None:
    async def main() -> None:
        async with no_leaks():
            assert [0, 1, 2] == await Flow.range(3).share(replay=3, replay_for=1000.0).to_list()

    run_virtual(main())


def test_no_timer_is_left_when_the_block_of_a_flow_that_has_ended_is_left() -> None:
    async def main() -> None:
        async with no_leaks(), Flow.range(3).share(replay=3, replay_for=1000.0, restart="never") as shared:
            assert [0, 1, 2] == await shared.to_list()

    run_virtual(main())


def test_an_age_without_a_replay_is_refused() -> None:
    with pytest.raises(ValueError, match=r"share\(replay_for=5\) keeps nothing without replay="):
        Flow.range(3).share(replay_for=5)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that lets seconds pass at once, in which no event loop does anything."""
    real, passed = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + sum(passed))
    return passed.append


def test_an_old_replay_is_not_for_one_on_another_event_loop(passes: Callable[[float], None]) -> None:
    shared = Flow.range(5).share(replay=3, replay_for=1000.0, restart="never")
    assert [0, 1, 2, 3, 4] == asyncio.run(shared.to_list())
    assert [2, 3, 4] == asyncio.run(shared.to_list())

    passes(1001.0)  # no timer of the first loop comes any more
    assert [] == asyncio.run(shared.to_list())


async def test_an_old_replay_is_not_for_one_who_comes_while_the_loop_is_blocked(
    passes: Callable[[float], None],
) -> None:
    async with Flow.range(5).share(replay=3, replay_for=1000.0) as shared:
        assert [0, 1, 2] == await shared.take(3).to_list()
        passes(1001.0)
        assert [3, 4] == await shared.take(2).to_list()


@pytest.mark.parametrize(("after", "seen"), [(4.999, [2, 3, 4]), (5.0, []), (5.001, [])])
def test_an_element_is_kept_for_less_than_the_seconds_of_a_replay(after: float, seen: list[int]) -> None:
    async def main() -> None:
        shared = Flow.range(5).share(replay=3, replay_for=5.0, restart="never")
        assert 5 == await shared.count()
        await asyncio.sleep(after)
        assert seen == await shared.to_list()

    run_virtual(main())
