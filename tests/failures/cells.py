"""A cell of the matrix: one place, one kind of exception, one end, one placement, one situation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from attrs import frozen

from reactive_aio.testing import settle
from tests.conftest import LOOPS
from tests.failures.code import AnyFlow, Code
from tests.failures.ends import EARLY, ENDS, PLACEMENTS, SUBSCRIBERS
from tests.failures.kinds import Kind, shown, stands_for
from tests.failures.places import Place
from tests.failures.running import Bench, HangError, Leaks, Outcome, outcome_of

SITUATIONS: Final = {
    "plain": "the flow runs to its end",
    "early": "the flow is left by an operator behind its first element, and would have more",
    "left": "the flow is left by the end behind its first element, and would have more",
    "failing": "the flow has failed already",
    "cancel": "the end is cancelled while it waits",
}


@frozen(eq=False)
class Case:
    """A cell that says by itself what is to happen."""

    name: str
    kind: Kind
    check: Callable[[Code, Bench, list[BaseException]], Awaitable[list[str]]]
    """Runs it, and tells what is wrong, or sooner that all is well than that it hangs."""
    loop_name: str = "asyncio"
    quiet: bool = True
    """Whether the loop's exception handler is to hear nothing."""

    @property
    def loop(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """Makes its loop."""
        return LOOPS[self.loop_name]

    def __str__(self) -> str:
        return f"{self.name} | {self.kind.name} | plain | its own end | fused | {self.loop_name}"

    async def run(self, bench: Bench) -> list[str]:
        """Run the cell, and tell what is wrong."""
        code, leaks, dropped = Code(self.kind.make()), Leaks(), list[BaseException]()
        leaks.begin()
        with bench.dropped(dropped):
            task = asyncio.create_task(outcome_of(lambda: self.check(code, bench, dropped), code))
        outcome = await bench.finish(task)
        left = await leaks.told(bench)
        if code.open:
            left.append(f"{code.open} generators or resources are left open")
        told = [str(outcome)] if outcome.error is not None else outcome.value
        return [*told, *left, *([f"told to the loop: {each}" for each in bench.handled] if self.quiet else [])]


@frozen(eq=False)
class PlaceCell:
    """One cell of the matrix."""

    place: Place
    kind: Kind
    end: str = "to_list"
    placement: str = "fused"
    situation: str = "plain"
    loop_name: str = "asyncio"

    @property
    def loop(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """Makes its loop."""
        return LOOPS[self.loop_name]

    def __str__(self) -> str:
        end = self.end if self.place.build is not None else "its own end"
        return f"{self.place} | {self.kind.name} | {self.situation} | {end} | {self.placement} | {self.loop_name}"

    @property
    def makes_sense(self) -> bool:
        """Whether the place can have the kind, and is what it is with this placement."""
        by_workers = self.place.not_by_workers and self.placement == "publish_on(threads) before"
        return not by_workers and self.kind.name not in self.place.not_kinds

    # -- running

    async def run(self, bench: Bench) -> list[str]:
        """Run the cell, and tell what is wrong."""
        before, behind = PLACEMENTS[self.placement]
        code = Code(
            self.kind.make(),
            armed=self.situation != "cancel" or self.place.cleanup,
            endless=self.situation in {"early", "left", "cancel"},
            before=before,
        )
        leaks, dropped = Leaks(), list[BaseException]()
        leaks.begin()
        with bench.dropped(dropped):
            task = asyncio.create_task(outcome_of(lambda: self._end(code, behind), code))
        if self.situation == "cancel":
            await self._cancel(task, bench)
        outcome = await bench.finish(task)
        left = await leaks.told(bench)
        if code.open:
            left.append(f"{code.open} generators or resources are left open")
        elif (
            outcome.open
            and self.end not in SUBSCRIBERS
            and not (self.end == "async for" and self.situation == "cancel")
        ):
            left.append(f"{outcome.open} generators or resources are open still when the end returns")
        return [*self._judge(code, outcome, dropped), *left, *self._unexpected(bench)]

    def _end(self, code: Code, behind: Callable[[AnyFlow], AnyFlow]) -> Awaitable[Any]:
        place = self.place
        if place.build is None:
            assert place.end is not None
            return place.end(code)
        build = place.build
        if self.situation == "cancel" and place.lasting is not None:
            build = place.lasting
        flow = build(code)
        if self.situation == "early":
            flow = flow.take(1)
        if self.situation == "failing":
            flow = flow.map(code.fails)
        return ENDS[self.end](behind(flow))

    async def _cancel(self, task: asyncio.Task[Outcome], bench: Bench) -> None:
        try:
            await settle(within=max(1.0, bench.patience))
        except TimeoutError:
            bench.hangs += 1
            raise HangError("is never at rest, though it should wait") from None
        if not task.done():
            task.cancel()

    # -- judging

    def _unexpected(self, bench: Bench) -> list[str]:
        return [f"told to the loop: {each}" for each in bench.handled]

    def _judge(self, code: Code, outcome: Outcome, dropped: list[BaseException]) -> list[str]:
        if (self.end in EARLY and outcome.error is None) or self.placement == "publish_on(threads) before":
            # It was read ahead, or another worker has failed in the same way.
            dropped = [each for each in dropped if each is not code.first]
        wrong = [
            f"the hook was told of another error: {shown(each)}" for each in dropped if not stands_for(each, code.error)
        ]
        rule = getattr(self, f"_judge_{self.situation}")
        return [*wrong, *rule(code, outcome, len(dropped))]

    def _judge_plain(self, code: Code, outcome: Outcome, dropped: int) -> list[str]:
        hears = self.place.hears
        if not code.raised and hears != "first":
            early = self.end in EARLY and outcome.error is None
            return [] if early else [f"was never called; the end {outcome}"]
        if hears == "end":
            if self.end in EARLY and outcome.error is None:  # what was read ahead has failed
                return [] if dropped <= code.raised else [f"the hook was told {dropped} times"]
            return self._arrived(code, outcome, dropped)
        wrong = (
            []
            if outcome.error is code.first or (self.end in EARLY and outcome.error is None)
            else [f"the end {outcome}, not the first failure"]
        )
        if hears == "first":
            return wrong + ([f"the hook was told {dropped} times"] if dropped else [])
        if not dropped and self._python_says_nothing():
            return wrong
        return wrong + self._heard_by_hook(code, dropped)

    def _judge_early(self, code: Code, outcome: Outcome, dropped: int) -> list[str]:
        if not code.raised:
            return [f"was never called; the end {outcome}"]
        if outcome.error is None and self._python_says_nothing():
            return [] if dropped <= 1 else [f"the hook was told {dropped} times"]
        return self._arrived(code, outcome, dropped)

    _judge_left = _judge_early

    def _judge_failing(self, code: Code, outcome: Outcome, dropped: int) -> list[str]:
        if not code.raised:
            return [f"was never called; the end {outcome}"]
        if outcome.error is not code.first:
            return [f"the end {outcome}, not the first failure"]
        if not dropped and self._python_says_nothing():
            return []
        notes = " ".join(map(str, getattr(code.first, "__notes__", [])))
        # Nobody waits with the signal until the cleanup has ended, where a subscriber hears it.
        noted = self.end in SUBSCRIBERS or self.place.foreign or type(code.error).__name__ in notes
        wrong = [] if noted else ["the first failure has no note of the second"]
        return wrong + self._heard_by_hook(code, dropped)

    def _judge_cancel(self, code: Code, outcome: Outcome, dropped: int) -> list[str]:
        if not isinstance(outcome.error, asyncio.CancelledError):
            return [f"was to be cancelled, and {outcome}"]
        if not self.place.cleanup:
            return [f"the hook was told {dropped} times"] if dropped else []
        if not code.raised:
            return ["was never called"]
        return [] if not dropped and self._python_says_nothing() else self._heard_by_hook(code, dropped)

    def _python_says_nothing(self) -> bool:
        """Return whether the failure ends a generator or a task in the way in which Python itself ends one."""
        return self.kind.name in self.place.python_swallows or (
            self.place.in_task and self.kind.name == "CancelledError"
        )

    def _arrived(self, code: Code, outcome: Outcome, dropped: int) -> list[str]:
        by_hook = self.place.foreign or (self.end in SUBSCRIBERS and self.place.cleanup)
        if by_hook and outcome.error is None:
            return self._heard_by_hook(code, dropped)
        if outcome.error is None or not stands_for(outcome.error, code.error):
            return [f"the end {outcome}; the hook was told {dropped} times"]
        # Workers, and flows side by side, may fail several times before the first is heard of.
        return [f"the hook was told {dropped} times, though the end has raised it"] if dropped >= code.raised else []

    def _heard_by_hook(self, code: Code, dropped: int) -> list[str]:
        return (
            []
            if dropped == code.raised
            else [f"the hook was told {dropped} times, and it was raised {code.raised} times"]
        )
