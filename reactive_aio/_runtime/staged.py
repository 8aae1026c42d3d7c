"""Stateless stages of a flow that a combinator reads, as in ``flat_map(lambda id: Flow.from_awaitable(lambda: fetch(id)).map(parse))``.

Such stages keep nothing between two elements, and hold nothing at the end. So they need no region: the subscription
to the source runs their pass.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextvars import Context
from operator import length_hint
from typing import Any

from attrs import define

from .._core import budgets
from .._core.budgets import Budget
from .._core.containers import new_list
from .._core.guard import FAILURES, as_failure, as_of_a_generator
from .._core.missing import NOTHING
from .._fusion import BARE, Placed, RegionRun, Stage
from .._plan import Awaited
from ..spec import MOST_AT_ONCE
from .awaited import AwaitedInput
from .emission import LONGEST_LIST
from .given import Given


class StagedInput(AwaitedInput):
    """An async iterator, and the stages that its elements pass. It lists what they make."""

    __slots__ = ("_out", "_pass", "_run", "_taken")

    def __init__(self, source: Placed[Awaited[Any]], stages: Sequence[Placed[Stage[Any, Any]]], budget: Budget) -> None:
        self._run = run = RegionRun(stages, source, counted=False, awaited=True)
        run.pace.budget = budget
        super().__init__(source.operator, run.pace, source, budget)
        self._pass: Generator[Any, int | None, None] | None = None
        """The pass that gathers, while the iterator suspends in the middle of it."""
        self._out: list[Any] = []  # the same one for ever, since the pass appends to it
        self._taken: int | None = None
        """The number of elements that have been taken from the pass while it waits. It gets the number when it goes on."""

    def listed(self, demand: int) -> list[Any]:
        """List what the stages make, until it is enough, the time is up, a function fails, or the iterator suspends or ends."""
        run, out, passing, self._pass = self._run, self._out, self._pass, None
        if passing is None:
            until = self._budget.until or budgets.clock() + self._budget.part
            items, gather = self.stretch(), run.gather(until)
            assert items is not None
            assert gather is not None
            passing = gather[0](items, run.pace, out, min(demand, MOST_AT_ONCE), *gather[1])
            self._taken = None
        try:
            awaited = passing.send(self._taken)
        except StopIteration:
            if run.pace.ended:
                self.used_up()
        except FAILURES as error:
            run.locate(error)
            self.broken = error
        else:
            self._pass = passing
            run.pace.awaiting = BARE if awaited is None else (awaited,)
        made = out.copy()
        out.clear()
        self._taken = len(made)
        return made

    def break_off(self) -> None:
        """Drop the pass."""
        passing, self._pass = self._pass, None
        if passing is not None:
            passing.close()

    def close(self) -> None:
        """Drop the pass, and the elements that have come."""
        self.break_off()
        super().close()


@define(eq=False)
class StagedGiven(Given):
    """The subscription to given elements that pass stages."""

    _run: RegionRun
    _context: Context
    """That of the functions."""

    def __attrs_post_init__(self) -> None:
        self._run.total = length_hint(self._items)

    def pull(self) -> Any:
        """Return NOTHING: its elements are signalled."""
        return NOTHING

    def _chunk(self, until: float) -> list[Any]:
        run, made = self._run, new_list()
        gather = run.gather(until)
        assert gather is not None
        most = min(self._demand, LONGEST_LIST)
        try:
            self._context.run(gather[0], self._items, run.pace, made, most, *gather[1])
        except FAILURES as error:
            failure = as_of_a_generator(error)
            run.locate(failure)
            self._broken = as_failure(failure)
            del failure  # a traceback leads back to here
        return made
