"""The tape on which a trace is written, and the event loop whose turns it counts."""

from __future__ import annotations

import asyncio
import functools
import re
import selectors
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

from attrs import define, field

from reactive_aio import Completed, Failed, Flow, Next

MOST_TURNS: Final = 500
"""How many turns a program gets."""
OUTSIDE: Final[ContextVar[str]] = ContextVar("OUTSIDE", default="-")
"""Set by who reads the flow."""
INSIDE: Final[ContextVar[str]] = ContextVar("INSIDE", default="-")
"""Set by the sources."""


class EndlessError(Exception):
    """A program takes more turns than any should."""


class _Selector(selectors.SelectSelector):
    """Hands every wait to the loop, and looks at no socket."""

    def __init__(self) -> None:
        super().__init__()
        self.wait: Callable[[float | None], None] = lambda _: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.wait(timeout)
        return []


class TurnLoop(asyncio.SelectorEventLoop):
    """An event loop that counts its turns, and whose clock jumps to the next timer when nothing can run.

    It stands on nothing of the library, whose own loop of this kind may change.
    """

    # Those of asyncio.BaseEventLoop.
    _scheduled: list[asyncio.TimerHandle]
    _run_once: Callable[[], None]

    def __init__(self) -> None:
        self.turn = 0
        self.at_turn: dict[int, Callable[[], object]] = {}
        """The function that is called before a turn."""
        self._now = 0.0
        self._resting: list[asyncio.Future[None]] = []
        selector = _Selector()
        super().__init__(selector)
        selector.wait = self._wait
        one_turn = super()._run_once  # type: ignore[misc] # typeshed leaves out what is private

        def run_once() -> None:
            self.turn += 1
            if self.turn > MOST_TURNS:
                raise EndlessError
            if self.turn in self.at_turn:
                self.at_turn.pop(self.turn)()
            one_turn()

        self._run_once = run_once

    def time(self) -> float:
        """Return the time of the loop's clock."""
        return self._now

    async def rest(self) -> None:
        """Wait until nothing can run before time passes."""
        future: asyncio.Future[None] = self.create_future()
        self._resting.append(future)
        await future

    def _wait(self, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            return
        if self._resting:
            self._resting.pop().set_result(None)
        elif timeout is None:
            raise EndlessError
        else:
            self._now = max(self._now, self._scheduled[0].when())


@define(eq=False)
class Tape:
    """The lines of one trace, each with its turn, its task and its context."""

    loop: TurnLoop
    lines: list[str] = field(factory=list[str])
    open: bool = True
    _tasks: WeakKeyDictionary[Any, int] = field(init=False, factory=WeakKeyDictionary[Any, int])
    _numbers: Iterator[int] = field(init=False, factory=count)
    """Of the tasks. A number is used once, since Pythons differ in when they free a task that has ended."""

    def say(self, text: str) -> None:
        """Write a line."""
        if self.open:
            self.lines.append(f"{self.loop.turn} {self._task()} {OUTSIDE.get()}/{INSIDE.get()} {text}")

    def _task(self) -> str:
        task = asyncio.current_task(self.loop)
        if task is None:
            return "-"
        if task not in self._tasks:
            self._tasks[task] = next(self._numbers)
        return f"t{self._tasks[task]}"

    def handle(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Write a report to the loop's exception handler."""
        # The rest names what is inside of the library.
        message = str(context.get("message")).partition(" callback ")[0]
        error = context.get("exception")
        self.say(f"handler: {message}{'' if error is None else f': {told(error)}'}")

    def unraisable(self, unraisable: Any) -> None:
        """Write an error that Python could not raise."""
        self.say(f"unraisable: {told(unraisable.exc_value)}")


_PLACES: Final = re.compile(r"(?:<[\w ]+>|[^\s,:()]*[/\\][^\s,:()]*):\d+|\b0x[0-9a-f]+")
"""Files with their lines, and addresses."""


def clean(text: str) -> str:
    """Leave out what differs from one machine to another, and from one version of this file to the next."""
    return _PLACES.sub("…", text).replace("\n", " ")


def told(error: BaseException) -> str:
    """Show an error with its notes and its causes."""
    shown = f"{type(error).__name__}({clean(str(error))})"
    notes: list[str] = getattr(error, "__notes__", [])
    shown += "".join(f" [{clean(note)}]" for note in notes)
    if isinstance(error, BaseExceptionGroup):
        shown += " of " + ", ".join(told(each) for each in error.exceptions)
    return shown if error.__cause__ is None else f"{shown} from {type(error.__cause__).__name__}"


def show(value: Any) -> str:
    """Show an element, or what an end gives."""
    match value:
        case BaseException():
            return told(value)
        case Next():
            return f"Next({show(value.item)})"
        case Failed():
            return f"Failed({told(value.error)})"
        case Completed():
            return "Completed"
        case list() | tuple():
            return f"[{', '.join(map(show, value))}]"
        case int() | float() | str() | None:
            return repr(value)
        case Flow():
            return "a flow"
        case _:
            return type(value).__name__


def number(value: Any) -> int:
    """Make a small number of any element, so that any operator can follow any other."""
    match value:
        case int() | float():
            return int(value) % 97
        case list() | tuple():
            return sum(map(number, value)) % 97
        case Next():
            return number(value.item)
        case _:
            return 1


# -- the clock of the engine


def _still() -> float:
    """Stand still."""
    return 1000.0


@contextmanager
def still() -> Generator[None]:
    """Have the clock stand by which the engine measures its turns; wherever the library has its name."""
    real = time.perf_counter
    # A module that the library imports in the meantime takes the clock from there.
    time.perf_counter = _still
    _replace(real, _still)
    try:
        yield
    finally:
        time.perf_counter = real
        _replace(_still, real)


def _replace(old: Callable[[], float], new: Callable[[], float]) -> None:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "reactive_aio":
            continue
        for key, value in list(vars(module).items()):
            if value is old:
                setattr(module, key, new)
            elif isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()  # it may hold code that was generated with the other clock
