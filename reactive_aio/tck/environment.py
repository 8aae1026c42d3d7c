"""Where a verification runs: an event loop that knows whether it is idle, and how long to wait for others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from attrs import define, field, frozen

from .._clocks.bystanders import Bystanders
from .._clocks.windows import settle_here
from .timers import Timers

A_MOMENT: Final = 0.5
"""The seconds that a test waits for rest, if an earlier wait took too long."""


def always_idle() -> bool:
    """Return True: there are no others."""
    return True


def no_loops() -> Iterable[asyncio.AbstractEventLoop]:
    """Return no other loops."""
    return ()


@frozen
class Environment:
    """The surroundings of the publisher or subscriber under test.

    Each test asks its event loop whether anything is left to run. It also asks the threads that start during the test.
    These may belong to an executor, end without a signal, have an event loop, or run regions. So no test waits by the
    clock. Name the event loops of older threads in ``loops``. A thread with a work loop of its own can't be asked: pass
    ``threads``, and the tests wait for silence.
    """

    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    """Makes the loop of each test."""
    loops: Callable[[], Iterable[asyncio.AbstractEventLoop]] = no_loops
    """Returns the running event loops of other threads that take part."""
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
    idle: Callable[[], bool] = always_idle
    """Returns whether others, such as the workers of a pool, are idle and have told the loop so."""


class NeverAtRestError(AssertionError):
    """There was always something left to run."""


@define(eq=False)
class Settling:
    """Waits until nothing is left to run, here, on the loops named in the environment, or in threads begun since."""

    environment: Environment
    count: Callable[[], int]
    """Counts what has been recorded so far."""
    here: Timers = field(init=False)
    others: tuple[Timers, ...] = field(init=False)
    _bystanders: Bystanders = field(init=False)
    _seconds: float = field(init=False)
    """How long to wait for rest. After one wait that took too long, the next waits are short."""

    def begin(self) -> None:
        """Begin to watch, on the running loop."""
        self.here = Timers(asyncio.get_running_loop())
        self.others = tuple(Timers(loop) for loop in self.environment.loops())
        self._bystanders = Bystanders()
        self._seconds = self.environment.deadline
        for each in (self.here, *self.others):
            each.begin()

    def end(self) -> None:
        """Leave the loops as they were."""
        for each in (self.here, *self.others):
            each.end()

    async def settle(self) -> None:
        """Return when nothing is left to run."""
        given_up = time.monotonic() + self._seconds
        horizon = self.here.loop.time() + self.environment.patience
        while True:
            try:
                await settle_here(self._busy, given_up - time.monotonic())
            except TimeoutError as busy:
                reason = str(busy)
                break
            timer = self.here.next()
            if timer is not None and timer <= horizon:
                await self.here.reach(timer)
            elif any(map(self._awaited, self.others)):
                await asyncio.sleep(0.001)
            elif not self.environment.threads or await self._silent():
                return
            if time.monotonic() > given_up:
                reason = "there are always more timers, or more signals"
                break
        waited, self._seconds = self._seconds, min(self._seconds, A_MOMENT)
        raise NeverAtRestError(
            f"after {waited} s there was still something left to run: {reason}. A request or a "
            "cancel may keep the event loop busy without end. Or a thread can't be asked: see Environment(threads=True)"
        )

    def _busy(self) -> str | None:
        """Return who else may still call."""
        if not self.environment.idle():
            return "not everybody is idle"
        if self.environment.threads:
            return None
        loops = [other.loop for other in self.others if other.loop.is_running()]
        return self._bystanders.busy(settling=True, loops=loops)

    def _awaited(self, other: Timers) -> bool:
        timer = other.next()
        return timer is not None and timer <= other.loop.time() + self.environment.patience

    async def _silent(self) -> bool:
        before = self.count()
        await asyncio.sleep(self.environment.silence)
        return self.count() == before
