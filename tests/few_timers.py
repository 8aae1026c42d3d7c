"""A loop with virtual time that notices when the same timer is set again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple, Unpack

from reactive_aio.testing import VirtualTimeLoop

Ts = TypeVarTuple("Ts")


class FewTimers(VirtualTimeLoop):
    """A loop on which few timers may be set."""

    few: int = 20

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.few -= 1
        assert self.few, "the same timer is set for ever"
        return super().call_at(when, callback, *args, context=context)
