"""The timer of a subscription, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio._arbiter.timer import Timer
from reactive_aio.testing import VirtualTimeLoop, run_virtual

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


@define(eq=False)
class Room:
    """The parts of an inlet that a timer needs, and a record of the timer's calls."""

    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    context: Context = field(factory=copy_context)
    calls: list[float] = field(init=False, factory=list)
    who: list[str] = field(init=False, factory=list)

    def call(self) -> None:
        self.calls.append(self.loop.time())
        self.who.append(WHO.get())

    def callbacks(self) -> list[float]:
        """When the loop is to call back."""
        assert isinstance(self.loop, VirtualTimeLoop)
        return [each.when() for each in self.loop._scheduled if not each.cancelled()]


def timed(test: Callable[[Room, Timer], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on virtual time, with a timer."""

    async def main() -> None:
        room, failures = Room(), list[Any]()
        room.loop.set_exception_handler(lambda _, failure: failures.append(failure))
        await test(room, Timer(room, room.call))
        assert [] == failures

    def run() -> None:
        run_virtual(main())

    run.__name__ = test.__name__
    return run


@timed
async def test_it_calls_once_when_the_time_has_come(room: Room, timer: Timer) -> None:
    timer.start(5.0)
    assert timer.running
    await asyncio.sleep(20.0)
    assert [5.0] == room.calls
    assert not timer.running


@timed
async def test_set_later_it_calls_then_and_the_loop_is_not_bothered_before(room: Room, timer: Timer) -> None:
    timer.start(5.0)
    for _ in range(4):
        await asyncio.sleep(1.0)
        timer.start(5.0)
        assert [5.0] == room.callbacks()
    await asyncio.sleep(20.0)
    assert [9.0] == room.calls


@timed
async def test_set_earlier_it_calls_then_and_not_again(room: Room, timer: Timer) -> None:
    timer.start_at(5.0)
    timer.start_at(2.0)
    assert [2.0] == room.callbacks()
    await asyncio.sleep(20.0)
    assert [2.0] == room.calls


@timed
async def test_stopped_it_calls_nothing_until_it_is_set_again(room: Room, timer: Timer) -> None:
    timer.start(5.0)
    timer.stop()
    assert not timer.running
    await asyncio.sleep(4.0)
    timer.start(5.0)
    await asyncio.sleep(20.0)
    assert [9.0] == room.calls

    timer.start(5.0)
    timer.stop()
    await asyncio.sleep(20.0)
    assert [9.0] == room.calls


@timed
async def test_it_can_be_set_from_within_its_call(room: Room, timer: Timer) -> None:
    def again() -> None:
        room.call()
        if len(room.calls) < 3:
            repeating.start(5.0)

    repeating = Timer(room, again)
    repeating.start(5.0)
    await asyncio.sleep(99.0)
    assert [5.0, 10.0, 15.0] == room.calls


@timed
async def test_cancelled_it_leaves_no_callback_and_can_not_be_set_any_more(room: Room, timer: Timer) -> None:
    timer.start(5.0)
    timer.cancel()
    timer.start(1.0)
    assert [] == room.callbacks()
    assert not timer.running
    await asyncio.sleep(20.0)
    assert [] == room.calls


@timed
async def test_it_calls_in_the_context_of_the_subscriber(room: Room, timer: Timer) -> None:
    room.context.run(WHO.set, "subscriber")
    timer.start(1.0)
    await asyncio.sleep(2.0)
    timer.start(0.0)
    timer.start(1.0)
    await asyncio.sleep(2.0)
    assert ["subscriber", "subscriber"] == room.who


@pytest.mark.parametrize("seconds", [0.0, 1e-7, 1e-3])
async def test_it_calls_on_every_loop_however_coarse_its_clock(seconds: float) -> None:
    called = asyncio.Event()
    timer = Timer(Room(), called.set)
    timer.start(seconds)
    await called.wait()
    assert not timer.running
