"""The budget of time: how long a turn lasts on an event loop, and the clock by which that is measured.

All that works on one loop shares its budget. A turn has a millisecond, divided by how many wait for theirs on the same loop;
so ten busy flows hold the loop for one to two milliseconds together, and not for one each. A flow that is alone has all of it.

To measure work, call ``budgets.clock()``. A test replaces the clock here, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from attrs import define, field

clock: Callable[[], float] = perf_counter
"""The seconds by which work is measured. To be called as ``budgets.clock()``, and never imported by name."""

TURN = 1e-3
"""Seconds for which a turn goes on before the event loop has its own."""

SHORT = 2e-4
"""Seconds after which regions that wake one another let the event loop have its turn."""

SHARES: Final = 10
"""Into how many parts a turn is divided at most; a shorter part would cost more than is done in it."""

BUDGET: Final = "_reactive_aio_budget"
"""The attribute of an event loop that holds its budget."""


@define(eq=False)
class Budget:
    """The time of one event loop. Each flow that works there takes a part of it."""

    until: float = field(init=False, default=0.0)
    """When the turn that is running is to end; 0.0 while none is. What it calls works until then too."""
    short: float = field(init=False, default=0.0)
    """When that turn is to wake nobody any more in the same callback."""
    part: float = field(init=False, factory=lambda: TURN)
    """How long a turn was to last when that was measured most lately."""
    waiting: set[object] = field(init=False, factory=set[object])
    """Those whose turn comes, in a callback that is scheduled. Threads add to it, which a set does in one step."""

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Budget:
        """Return the budget of a loop."""
        try:
            held: Budget = loop.__dict__[BUDGET]
        except KeyError:
            held = loop.__dict__.setdefault(BUDGET, cls())  # in one step, as `waiting` is
        except AttributeError:  # a loop that takes no attributes
            held = cls()
        return held

    def deadline(self) -> float:
        """Return when work that begins now is to end."""
        self.part = part = TURN / min(len(self.waiting) + 1, SHARES)
        return clock() + part

    def moment(self) -> float:
        """Return when work that begins in the middle of a turn is to end: with the turn, but not before it has had a moment.

        Without it what comes late in a turn would be cut into single elements, each with a turn of its own.
        """
        return max(self.until, clock() + SHORT)

    def begin(self, taker: object) -> float:
        """Begin a turn of one who may have waited for it, and return when it is to end; it ends by setting ``until`` back."""
        waiting = self.waiting
        waiting.discard(taker)
        self.part = part = TURN / min(len(waiting) + 1, SHARES) if waiting else TURN
        now = clock()
        self.short = now + min(part, SHORT)
        self.until = until = now + part
        return until
