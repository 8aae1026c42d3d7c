"""Stateless stages of a flow that a combinator reads, as in ``flat_map(lambda id: Flow.from_awaitable(lambda: fetch(id)).map(parse))``.

Such stages keep nothing between two elements, and hold nothing at the end. So they need no region: the subscription
to the source runs their pass. There is one for async iterators, one for given elements, and one for other combinators.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import Context
from itertools import islice
from operator import length_hint
from typing import Any

from attrs import define

from .._core import budgets
from .._core.budgets import Budget
from .._core.containers import new_list
from .._core.guard import FAILURES, Failed, as_failure, as_of_a_generator
from .._core.missing import NOTHING
from .._fusion import BARE, Placed, RegionRun, Stage
from .._plan import Awaited, Receiver, Region
from ..hooks import discard
from ..spec import MOST_AT_ONCE
from .awaited import AwaitedInput
from .driver import RegionDriver
from .emission import LONGEST_LIST, MANY
from .given import Given
from .lifetime import Lifetime
from .passage import Passage


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
        if passing is None and (demand < MANY or run.current is not None):
            return self._few(demand)
        if passing is None:
            items, gather = self.stretch(), run.gather(self._budget.moment())
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

    def _few(self, demand: int) -> list[Any]:
        """As `listed`, by a pass that waits for demand in the middle."""
        run, made = self._run, new_list()
        items = _suspended(run, self.stretch, self._budget.moment())
        try:
            made.extend(islice(items, demand))
        except FAILURES as error:
            run.locate(error)
            self.broken = error
        else:
            if len(made) < demand:
                run.ended(input_ended=False)
                if run.pace.ended:
                    self.used_up()
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
        run, most = self._run, min(self.demand, LONGEST_LIST)
        if most < MANY or run.current is not None:
            made = new_list()
            items = _suspended(run, lambda: self._items, until)
            failed = _called(run, self._context, made.extend, islice(items, most))
            if failed is None and len(made) < most:
                run.ended(input_ended=False)
        else:
            made, failed = _passed(run, self._context, self._items, most, until)
        if failed is not None:
            self._broken = failed.take()
        return made


class StagedPassage(Passage):
    """A combinator that is read without a region, and the stages that its elements pass."""

    __slots__ = ("_ending", "_functions", "_items", "_run", "_waiting")

    def __init__(
        self, outer: RegionDriver | Passage, region: Region, receiver: Receiver[Any], lifetime: Lifetime
    ) -> None:
        super().__init__(outer, region, receiver, lifetime)
        self._run = RegionRun(region.stages, region.feed, counted=True)
        self._functions = self.context.copy()
        """The context of the functions. That of the combinator may be entered already."""
        self._items: Iterator[Any] | None = None
        """The elements that are passed through the stages, as long as there are some."""
        self._waiting: list[Any] = []  # bounded by what was requested
        """Those that follow."""
        self._ending: tuple[BaseException | None] | None = None
        """The end that follows these."""

    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements through the stages, behind those that wait."""
        if self.closed:
            discard(items)
        elif self._items is not None:
            self._waiting += items
        else:
            self._take(items)
            self._work(None)

    def on_complete(self) -> None:
        """Pass the end on, behind the elements."""
        if self._items is None:
            super().on_complete()
        else:
            self._ending = (None,)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on, behind the elements."""
        if self._items is None or self.closed:
            super().on_error(error)
        else:
            self._ending = (error,)

    def _take(self, items: list[Any]) -> None:
        self._run.total += len(items)
        self._items = iter(items)

    def _work(self, _: None) -> None:
        """Pass elements on as long as there is time, and then the end."""
        until = self.budget.moment()
        while (items := self._items) is not None and not self.closed:
            before = length_hint(items)
            made, failed = _passed(self._run, self._functions, items, LONGEST_LIST, until)
            dropped = before - length_hint(items) - len(made)
            if made:
                super().on_chunk(made)
            if failed is not None:
                self._break(failed)
                return
            if dropped and self._upstream is not None:
                self._upstream.request(dropped)
            if length_hint(items):
                if budgets.clock() >= until:
                    self.post(self._work, None)
                    return
            elif self._waiting:
                self._take(self._waiting)
                self._waiting = []
            else:
                self._items = None
        ending, self._ending = self._ending, None
        if ending is not None and not self.closed:
            self._end_with(*ending)

    def _end_with(self, error: BaseException | None) -> None:
        if error is None:
            super().on_complete()
        else:
            super().on_error(error)

    def _break(self, failed: Failed) -> None:
        """Fail with the failure of a stage, unless the receiver has cancelled in the meantime."""
        if self.closed:
            self.host.dropped(failed.take())
        else:
            self._fail(failed.take())

    def _fail(self, error: BaseException) -> None:
        self._drop()
        super()._fail(error)

    def _let_go(self) -> None:
        self._drop()
        super()._let_go()

    def _drop(self) -> None:
        """Report to the hooks the elements that wait, and a failure behind them."""
        items, self._items = self._items, None
        waiting, self._waiting = self._waiting, []
        ending, self._ending = self._ending, None
        if items is not None:
            discard([*items, *waiting])
        if ending is not None and ending[0] is not None:
            self.host.dropped(ending[0])


def _passed(
    run: RegionRun, context: Context, items: Iterator[Any], most: int, until: float
) -> tuple[list[Any], Failed | None]:
    """Return what stages make of elements, as far as there is time, and the failure of a function."""
    made, gather = new_list(), run.gather(until)
    assert gather is not None
    return made, _called(run, context, gather[0], items, run.pace, made, most, *gather[1])


def _called(run: RegionRun, context: Context, call: Callable[..., object], *args: Any) -> Failed | None:
    """Call something that runs stages, and return the failure of a function."""
    try:
        context.run(call, *args)
    except FAILURES as error:
        failure = as_of_a_generator(error)
        run.locate(failure)
        failed = Failed(as_failure(failure))
        del failure  # a traceback leads back to here
        return failed
    return None


def _suspended(run: RegionRun, source: Callable[[], Iterator[Any] | None], until: float) -> Iterator[Any]:
    """Return the pass that is suspended, or begin one over a source. It takes long strides through elements that are dropped."""
    items = run.current
    if items is None:
        items = run.begin(source(), until)
        assert items is not None
    run.pace.deadline = until
    return items
