"""Turns on an event loop: the regions of one subscription that share a loop take theirs in one callback."""

from __future__ import annotations

import asyncio
import itertools
from contextvars import Context
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._core import budgets
from reactive_aio._runtime import turns
from reactive_aio._runtime.turns import Company, Turns


class Scripted(Turns):
    """A member that wakes another, or is interrupted."""

    def __init__(self, company: Company, log: list[Any], wakes: Scripted | None, raises: BaseException | None) -> None:
        super().__init__(asyncio.get_running_loop(), Context())
        self.company = company
        self.log = log
        self.wakes = wakes
        self.raises = raises
        self.post(self._begin, None)

    def _begin(self, _: None) -> None:
        self._ident = turns.get_ident()

    def _work(self) -> bool:
        self.log.append(self)
        wakes, self.wakes = self.wakes, None
        if wakes is not None:
            wakes.post(lambda _: None, None)
        if self.raises is not None:
            raise self.raises
        return False

    def broken(self, error: BaseException) -> None:
        self.log.append(error)

    def lost(self, error: BaseException) -> None:
        raise error


@pytest.mark.usefixtures("still")
async def test_who_is_woken_by_a_member_has_its_turn_in_the_same_callback() -> None:
    log: list[Any] = []
    company = Company(asyncio.get_running_loop())
    second = Scripted(company, log, None, None)
    first = Scripted(company, log, None, None)
    await asyncio.sleep(0)
    first.wakes = second
    log.clear()

    first.post(lambda _: None, None)
    asyncio.get_running_loop().call_soon(log.append, "the loop")
    await asyncio.sleep(0)

    assert log == [first, second, "the loop"]


@pytest.mark.usefixtures("still")
async def test_who_is_woken_has_its_turn_though_the_member_before_it_is_interrupted() -> None:
    log: list[Any] = []
    company = Company(asyncio.get_running_loop())
    second = Scripted(company, log, None, None)
    first = Scripted(company, log, None, None)
    await asyncio.sleep(0)
    interrupt = KeyboardInterrupt()
    first.wakes, first.raises = second, interrupt
    log.clear()

    company.meet(first)
    await asyncio.sleep(0)

    assert log == [first, interrupt, second]


async def test_regions_on_one_loop_let_it_have_its_turn_when_their_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.count(step=budgets.TURN / 8).__next__)
    seen: list[int] = []
    at_turn: list[int] = []
    loop = asyncio.get_running_loop()

    def turn() -> None:
        at_turn.append(len(seen))
        loop.call_soon(turn)

    loop.call_soon(turn)
    await Flow.range(1_000).publish_on(schedulers.current(), prefetch=1).for_each(seen.append)

    assert len(seen) == 1_000
    assert max(after - before for before, after in itertools.pairwise(at_turn)) <= 3
    assert budgets.TURN < 0.01
