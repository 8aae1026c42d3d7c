"""Emission: what a region makes of its input, under demand.

A turn works until demand or input is used up, or for its part of the loop's time. Then the loop has its turn. These are
the few lines that every chunk comes through, so they are written with an eye to the number of calls.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextvars import Context
from itertools import islice
from types import FunctionType
from typing import Any, Final

from .._core import budgets
from .._core.guard import FAILURES, as_of_a_generator
from .._core.missing import NOTHING
from .._fusion import FINISHING, OVER, READING, STARTING, Call, RegionRun
from .._plan import Receiver
from ..spec import UNBOUNDED
from .handover import Handover
from .inputs import Input, PushedInput
from .life import BEGUN, CLOSED, MADE, OPEN, Life
from .turns import Turns

MANY: Final = 8
"""From how much demand on a list is filled by a call. Fewer are taken of a generator, which can be suspended."""
LONGEST_LIST: Final = 512
"""The most elements that go to the next region at once. The garbage collector runs when 700 more objects are held than before."""


def _fill(out: list[Any], items: Iterator[Any], handover: Handover) -> None:
    idle, arm = handover.idle, handover.arm
    for item in items:
        out.append(item)
        if idle:
            arm()


def _bound(function: Any, values: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a fused function with the values of its last parameters, so that they need not be passed for each list."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, values, function.__closure__)


class Emission(Turns):
    """Runs the passes of a region and passes the results to the region's receiver."""

    __slots__ = (
        "_demand", "_draining", "_gather", "_input", "_passes", "_refills", "_served", "_straight",
        "cancelled", "delivered", "each", "handover", "life", "receiver", "run",
    )  # fmt: skip

    awaits = False
    """Whether making an element needs other code: `poll` may then begin something that ends later."""

    def __init__(
        self,
        run: RegionRun,
        source: Input,
        loop: asyncio.AbstractEventLoop,
        context: Context,
        receiver: Receiver[Any],
    ) -> None:
        super().__init__(loop, context)
        self.run = run
        self._input: Input = source
        self._refills = isinstance(source, PushedInput)
        self._passes = self._refills and run.empty
        """Whether what arrives is passed on as it is, so that there is nothing to do while nothing has arrived."""
        self._served = False
        """Whether an open combinator feeds the region that may deliver inside a request."""
        self.receiver: Receiver[Any] | None = receiver
        self._demand: int = 0
        self._draining = False
        self._gather: Call | None = None
        self._straight: Callable[..., Any] | None = None
        """The function that takes all that arrives, where nothing is passed on before the end."""
        self.each = False
        self.handover: Handover | None = None
        """Hands a list over in parts while a function blocks the thread, if the next region is on another one."""
        self.life: Life = MADE
        self.cancelled = False
        """Whether downstream has cancelled, which any thread may say."""
        self.delivered: int = 0

    @property
    def closed(self) -> bool:
        """Whether the region has ended and let go of everything."""
        return self.life is CLOSED

    @abstractmethod
    def _open(self) -> None:
        """Open the source, in the first turn."""

    @abstractmethod
    def _complete(self) -> None:
        """End well."""

    @abstractmethod
    def _fail(self, error: BaseException, *, locate: bool = False) -> None:
        """End with a failure. With ``locate`` it is one of the region's own functions."""

    @abstractmethod
    def _close(self) -> None:
        """End without a word, having been cancelled."""

    def _work(self) -> bool:
        """Pass on what demand and input allow; True if the time is up before they are."""
        life = self.life
        if self._draining or life is CLOSED or life is MADE:
            return False
        if self.cancelled:
            self._close()
            return False
        self._draining = True
        budget = self.budget
        outer = budget.until
        run = self.run
        try:
            if life is BEGUN:
                self.life = OPEN
                self._open()
            if self._demand and not (self._passes and self._input.idle):
                if not outer:  # called by a task or timer
                    budget.until = budgets.clock() + budget.part
                until = budget.until
                while self._step(until):
                    if not self._demand:
                        break
                    # Where a stage needs no more, the turn also takes the first finishing step. Until then upstream reads on.
                    if budgets.clock() >= until and (
                        run.phase is not FINISHING or run.paused or run.current is not None
                    ):
                        return True
            # A flag that was false above may be true by now, which mypy does not see.
            if self.life is OPEN and not self.cancelled:
                source = self._input
                if (
                    run.phase is FINISHING
                    or run.phase is OVER
                    or (run.may_stop and run.done)
                    or not source.more(self._demand)
                ):
                    self._end_if_due()
        finally:
            self._draining = False
            budget.until = outer
        if self.cancelled and self.life is OPEN:
            self._close()
        return False

    def _end_if_due(self) -> None:
        """End the stream if nothing that needs demand is left, now that no more input comes or is needed."""
        source, run = self._input, self.run
        amid = run.current is not None or run.phase is STARTING
        if amid and run.reticent:
            return
        if source.error is None or run.phase is FINISHING or run.phase is OVER or (run.may_stop and run.done):
            if run.phase is OVER or not run.pending:
                self._complete()
        elif source.at_end and not (amid and run.owing):
            # Signalled from here, it is not the input's to report any more.
            error, source.error = source.error, None
            self._fail(error)

    def _step(self, until: float) -> bool:
        """Emit the results of one pass. Return False if there are none for now."""
        if self.cancelled:
            return False
        run = self.run
        items = run.current
        if items is None:
            # A list of one that has arrived is passed on as it is, since that is one by one. From an iterator it would have to be made.
            whole = run.empty and (not self.each or (self._refills and self._demand == 1))
            if whole and (chunk := self._input.whole_chunk(self._demand)) is not None:
                self._deliver(chunk)
                return self.life is OPEN and not self._input.idle
            items = self._begin_pass(until)
            if items is None:
                return False
        else:
            run.pace.deadline = until
        ended = self._emit_each(items) if self.each else self._emit_chunk(items)
        if not ended or self.life is not OPEN:
            return self.life is OPEN
        read = run.phase is READING
        if read and not (run.may_stop or run.made):
            run.current = None  # as `ended` has it, without a call: most passes are such
        else:
            run.ended(input_ended=False)
        if run.phase is OVER:
            self._complete()
            return False
        # Where time was up with the last element, the pass has not seen that it was the last, unless a stage has more of that.
        used = run.current is None and (run.pace.ended or (self._input.spent and not run.owing))
        return not read or not used or self._input.used_up() or run.phase is FINISHING

    def _begin_pass(self, until: float) -> Iterator[Any] | None:
        run = self.run
        if run.phase is not READING:
            return run.begin(None, until)
        if not (run.may_stop and run.done):
            try:
                stretch = self._input.stretch()
            except FAILURES as error:
                self._fail(error, locate=True)
                return None
            if stretch is not None:
                if (self._demand >= MANY or run.mute) and not self.each:
                    self._gather = run.gather(until)
                    if run.mute and self._refills and not run.may_stop:
                        self._straight = self._gather and _bound(*self._gather)
                if self._gather is None:
                    return run.begin(stretch, until)
                run.current = stretch
                return stretch
            if not self._input.ended or self._input.error is not None:
                return None
        run.finish()
        return run.begin(None, until)

    def _emit_chunk(self, items: Iterator[Any]) -> bool:
        """Emit a list of the pass's results. Return True when the pass has ended."""
        demand, gather = self._demand, self._gather
        demand = min(demand, LONGEST_LIST)
        handover = self.handover
        out: list[Any] = [] if handover is None else handover.begin()
        try:
            if gather is None:
                if handover is None:
                    out.extend(islice(items, demand))
                else:
                    _fill(out, islice(items, demand), handover)
            else:
                self._gather = None
                gather[0](items, self.run.pace, out, demand, *gather[1])
        except FAILURES as error:
            # The elements before the failure are in `out`, and goes first.
            if out:
                self._deliver(out)
            self._fail(as_of_a_generator(error), locate=True)
            return True
        ended = gather is not None or len(out) < demand
        if out:
            self._deliver(out)
        return ended

    def _deliver(self, out: list[Any]) -> None:
        count = len(out)
        self.delivered += count
        if self._demand != UNBOUNDED:
            self._demand -= count
        if self.handover is not None:
            out = self.handover.rest(out)
        if self.receiver is not None and out:
            self.receiver.on_chunk(out)

    def _emit_each(self, items: Iterator[Any]) -> bool:
        """Emit one by one, each before the next is made; True when the pass has ended."""
        while self._demand and not self.cancelled and self.receiver is not None:
            try:
                item = next(items, NOTHING)
            except FAILURES as error:
                self._fail(error, locate=True)
                return True
            if item is NOTHING:
                return True
            self._deliver([item])
        return False

    def pull(self, n: int) -> None:
        """Take demand, and the turn that sees to it, which comes later only where one is due already.

        For a consumer on the same loop that takes one element at a time, when all that it has asked for has come.
        """
        self._demand += n
        if not self._awake:
            self._awake = True
            company = self.company
            run = self.run
            # If the stages read on, and all that has arrived is used up, a turn would do no more than this.
            if (
                self._served
                and company is not None
                and run.phase is READING
                and (self._passes or self._input.idle)
                and not (run.may_stop and run.done)
            ):
                company.serve(self, self._ask, n)
            else:
                self.come()

    def _ask(self, n: int) -> bool:
        """Request elements of a combinator, which may deliver them before this returns. Return whether a turn is to follow."""
        fed: Any = self._input
        try:
            fed.serve(n if self._passes else self.run.demand(n))
        except FAILURES as error:
            self._awake = False
            self.caught(error)
            return False
        # In this order, as in `take_turn`.
        self._awake = False
        # Stages that need no more input may hold elements, which wait for a turn if the time is up.
        if not self._posted and (not self._demand or (fed.idle and self.run.phase is READING)):
            return False
        self._awake = True
        return True

    @property
    def bare(self) -> bool:
        """Whether the consumer can wait for the next element itself, by `let_turn`."""
        return False

    def let_turn(self) -> Awaitable[None]:
        """Let the event loop have a turn in the task of a consumer. Then `poll` goes on."""
        return asyncio.sleep(0)

    def poll(self) -> Any:
        """Return the next element of the current pass, or NOTHING: demand for one, met without a detour.

        For a consumer on the same loop that takes one element at a time.
        """
        run = self.run
        items = run.current
        if items is None or self._draining or self.cancelled:
            return NOTHING
        try:
            item = self.context.run(next, items, NOTHING)
        except FAILURES as error:
            self._fail(error, locate=True)
            return NOTHING
        if item is NOTHING:
            read = run.phase is READING
            run.ended(input_ended=False)
            if read and run.pace.ended and run.current is None:
                self._input.used_up()
            return NOTHING
        self.delivered += 1
        if self._refills:
            self._input.more(0)
        return item
