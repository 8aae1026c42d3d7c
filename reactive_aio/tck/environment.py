"""Where a verification runs: an event loop that can be asked whether it is idle, and how long to wait for others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from attrs import field, frozen

from .watch import Watch


def no_loops() -> Iterable[asyncio.AbstractEventLoop]:
    """Name no other loops."""
    return ()


@frozen
class Environment:
    """What surrounds the publisher or subscriber under test.

    By default everything is expected on the event loop of the test, which is asked whether anything is left to
    run; no test waits by the clock then. Say so where other threads take part: with ``loops``, if they are event
    loops, which can be asked too; else with ``threads``, and the tests wait for silence.
    """

    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    """Makes the loop of each test."""
    loops: Callable[[], Iterable[asyncio.AbstractEventLoop]] = no_loops
    """Gives the running event loops of other threads that take part."""
    threads: bool = False
    """Whether signals come from threads that can't be asked whether they are idle."""
    silence: float = 0.05
    """With ``threads``, the seconds without a signal after which nothing more is expected."""
    patience: float = 1.0
    """The seconds for which the timers of a publisher are waited for, in the time of the loop."""
    deadline: float = 5.0
    """The seconds of real time after which a test gives up waiting for rest."""
    budget: float = 0.05
    """The seconds that a call may take that has to return quickly."""


class NeverAtRestError(AssertionError):
    """There was always something left to run."""


@frozen(eq=False)
class Settling:
    """Waits until nothing is left to run."""

    environment: Environment
    watch: Watch
    others: tuple[Watch, ...]
    count: Callable[[], int]
    """Counts what has been recorded so far."""
    _started: float = field(init=False, factory=time.monotonic)

    async def settle(self) -> None:
        """Return when nothing is left to run, here or on the other loops."""
        given_up = time.monotonic() + self.environment.deadline
        horizon = self.watch.loop.time() + self.environment.patience
        while time.monotonic() < given_up:
            await asyncio.sleep(0)
            if self.watch.busy or await self._others_moved():
                continue
            timer = self.watch.next_timer
            if timer is not None and timer <= horizon:
                await _until(self.watch.loop, timer)
            elif not self.environment.threads or await self._silent():
                return
        raise NeverAtRestError(
            f"after {self.environment.deadline} s there was still something left to run: a request or a cancel "
            "seems to keep the event loop busy without end"
        )

    async def _others_moved(self) -> bool:
        """Go once to each other loop and back; tell whether anything happened meanwhile."""
        if not self.others:
            return False
        before = self._activity()
        for other in self.others:
            if other.loop.is_running():
                await _visit(self.watch.loop, other.loop)
        if any(self._awaited(other) for other in self.others):
            await asyncio.sleep(0.001)
            return True
        # A visit is one callback there; anything beyond that was somebody else's.
        moved = self._activity() - before != len(self.others)
        return moved or self.watch.busy or any(other.busy for other in self.others)

    def _awaited(self, other: Watch) -> bool:
        timer = other.next_timer
        return timer is not None and timer <= other.loop.time() + self.environment.patience

    def _activity(self) -> int:
        return sum(other.activity for other in self.others) + self.count() * 1000

    async def _silent(self) -> bool:
        before = self.count()
        await asyncio.sleep(self.environment.silence)
        return self.count() == before


async def _visit(here: asyncio.AbstractEventLoop, there: asyncio.AbstractEventLoop) -> None:
    arrived = here.create_future()

    def back() -> None:
        if not arrived.done():
            arrived.set_result(None)

    there.call_soon_threadsafe(lambda: here.call_soon_threadsafe(back))
    await arrived


async def _until(loop: asyncio.AbstractEventLoop, when: float) -> None:
    reached: asyncio.Future[Any] = loop.create_future()
    loop.call_at(when, reached.set_result, None)
    await reached
