"""One run of a program: what its functions share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from attrs import define, field

from reactive_aio import Flow, schedulers
from tests.traces.programs import Program, Step
from tests.traces.tape import Tape, number, show

AnyFlow = Flow[Any]
Fn = Callable[..., Any]


class BoomError(Exception):
    """How programs fail."""


class OwnBaseError(BaseException):
    """How they fail seldom."""


ERRORS: dict[str, type[BaseException]] = {
    each.__name__: each for each in (BoomError, OwnBaseError, asyncio.CancelledError)
}


@define(eq=False)
class Run:
    """The state of a run."""

    program: Program
    tape: Tape
    bounded: bool
    """Whether there is a boundary behind each operator."""
    calls: Counter[str] = field(factory=Counter[str])
    """How often each function has been called, and each source subscribed to."""

    def via(self, flow: AnyFlow) -> AnyFlow:
        """Put a boundary behind an operator, or nothing."""
        return flow.publish_on(schedulers.current(), prefetch=1) if self.bounded else flow

    def say(self, text: str) -> None:
        """Write a line of the trace."""
        self.tape.say(text)

    def count(self, label: str) -> int:
        """Count a call; give the number of those before."""
        self.calls[label] += 1
        return self.calls[label] - 1

    def fail(self, where: str) -> None:
        """Raise an error of the program's."""
        self.say(f"{where} raises")
        raise ERRORS[self.program.error](f"boom {where}")

    def called(self, step: Step, *args: Any) -> None:
        """Note the call of a function of the user's, and fail if it is the one that fails."""
        self.say(f"{step.label} {step.name}({', '.join(map(show, args))})")
        if self.count(step.label) == step.fails_at:
            self.fail(step.label)

    def fn(self, step: Step, plain: Fn) -> Fn:
        """Make the function of a step."""

        def function(*args: Any) -> Any:
            self.called(step, *args)
            return plain(*args)

        return function

    def later(self, step: Step, plain: Fn) -> Fn:
        """Make the async function of a step, which waits for a while, for a turn, or not at all."""

        async def function(*args: Any) -> Any:
            self.called(step, *args)
            try:
                await pause(number(args[0]))
            finally:
                self.say(f"{step.label} returns from {show(args[0])}")
            return plain(*args)

        return function


async def pause(how: int) -> None:
    """Wait for a while, for a turn, or not at all."""
    if how % 3 == 1:
        await asyncio.sleep(0)
    elif how % 3 == 2:
        await asyncio.sleep(0.3 + how / 10)
