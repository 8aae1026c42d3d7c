"""An exception of any class ends the flow, if a function of the recovering and flattening operators raises it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reactive_aio import Backoff, Flow, SourceCancelledError

Raising = Callable[..., Any]


class OwnError(BaseException):
    """As ``pytest.fail()`` raises it."""


class FalseError(Exception):
    """One that is false."""

    def __bool__(self) -> bool:
        return False


FAILURES: dict[str, Callable[[], BaseException]] = {
    "ValueError": ValueError,
    "OwnError": OwnError,
    "FalseError": FalseError,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "SystemExit": SystemExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("group", [OwnError()]),
}


class Dice(Random):
    """A generator of random numbers that raises."""

    def __init__(self, fails: Raising) -> None:
        super().__init__()
        self.fails = fails

    def uniform(self, a: float, b: float) -> Any:
        return self.fails()


class Undecided:
    """An answer that is neither true nor false."""

    def __init__(self, fails: Raising) -> None:
        self.fails = fails

    def __bool__(self) -> bool:
        return bool(self.fails())


def later(fn: Raising) -> Raising:
    async def awaited(*arguments: Any) -> Any:
        return fn(*arguments)

    return awaited


def broken() -> Flow[int]:
    return Flow.of(1).concat(Flow.error(OSError("down")))


PLACES: dict[str, Callable[[Raising], Flow[Any]]] = {
    "on_error_map": lambda fails: broken().on_error_map(fails),
    "on_error_resume_next": lambda fails: broken().on_error_resume_next(fails),
    "retry_if": lambda fails: broken().retry_if(fails),
    "retry_if, the answer": lambda fails: broken().retry_if(lambda *_: Undecided(fails)),
    "retry_when": lambda fails: broken().retry_when(later(fails)),
    "retry_when, the answer": lambda fails: broken().retry_when(later(lambda *_: Undecided(fails))),
    "retry_when, called": lambda fails: broken().retry_when(fails),
    "repeat_when": lambda fails: Flow.of(1).repeat_when(later(fails)),
    "retry by a Backoff, resume": lambda fails: broken().retry(Backoff(0.0, max_retries=1), resume=fails),
    "retry by a Backoff, random": lambda fails: broken().retry(
        Backoff(0.001, max_retries=1, jitter=0.5, random=Dice(fails))
    ),
    "flat_map": lambda fails: Flow.of(1).flat_map(fails),
    "concat_map": lambda fails: Flow.of(1).concat_map(fails),
    "concat_map_eager": lambda fails: Flow.of(1).concat_map_eager(fails),
    "switch_map": lambda fails: Flow.of(1).switch_map(fails),
    "exhaust_map": lambda fails: Flow.of(1).exhaust_map(fails),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("place", PLACES)
async def test_it_arrives_at_the_end_that_awaits(place: str, failure: str) -> None:
    error = FAILURES[failure]()

    def fails(*_: object) -> Any:
        raise error

    arriving = SourceCancelledError if failure == "CancelledError" else type(error)
    with pytest.raises(arriving) as failed:
        async with asyncio.timeout(60):
            await PLACES[place](fails).to_list()

    assert error in (failed.value, failed.value.__cause__)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("place", ["on_error_map", "on_error_resume_next", "retry_if", "retry_when"])
async def test_what_it_was_asked_about_is_its_context(place: str, failure: str) -> None:
    def fails(*_: object) -> Any:
        error = FAILURES[failure]()
        raise error

    with pytest.raises(BaseException) as failed:  # noqa: PT011 - of any class
        async with asyncio.timeout(60):
            await PLACES[place](fails).to_list()

    raised = failed.value.__cause__ if failure == "CancelledError" and place != "retry_when" else failed.value
    assert raised is not None
    assert "down" == str(raised.__context__)
