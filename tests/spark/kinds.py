"""Exceptions of every kind that a user's function may raise, and functions that raise them in Spark's workers."""

from __future__ import annotations

import asyncio
import dataclasses
import pickle
from collections.abc import Awaitable, Iterator
from typing import Any, Final, NoReturn

from reactive_aio import SourceCancelledError


class OwnError(BaseException):
    """Is no Exception."""


class FalseError(Exception):
    """Is false."""

    def __bool__(self) -> bool:
        return False


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """Allows no attribute to be set."""

    code: int


class SilentError(Exception):
    """Can't be shown."""

    def __str__(self) -> str:
        raise ValueError("not to be shown")

    __repr__ = __str__


KINDS: Final[tuple[BaseException, ...]] = (
    ValueError("wrong", 1),
    OwnError("own"),
    GeneratorExit("closed"),
    asyncio.CancelledError("cancelled"),
    SystemExit(3),
    KeyboardInterrupt("now"),
    BaseExceptionGroup("several", [OwnError("own"), ValueError("wrong")]),
    FalseError("false"),
    FrozenError(7),
    SilentError("silent"),
)
ALL: Final = range(len(KINDS))


def raised(kind: int) -> NoReturn:
    """Raise a new exception of a kind."""
    raised = KINDS[kind]
    if isinstance(raised, BaseExceptionGroup):
        raise raised.derive(raised.exceptions)
    raise type(raised)(*raised.args)


def raised_at_3(kind: int, n: int) -> int:
    """Let all elements pass but one."""
    return raised(kind) if n == 3 else n


async def raised_in_time(kind: int, n: int) -> int:
    """The same, as it is awaited."""
    await asyncio.sleep(0)
    return raised_at_3(kind, n)


async def itself(n: int) -> int:
    """Let all elements pass."""
    return n


def lingering(kind: int, n: int) -> Iterator[int]:
    """Yield an element again and again, and raise when it is left."""
    try:
        while True:
            yield n
    finally:
        raised(kind)


def unpicklable_at_3(kind: int, n: int) -> Any:
    """Return what can be pickled, but for one."""
    return Unpicklable(kind) if n == 3 else n


class Unpicklable:
    """Raises when it is pickled."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __reduce__(self) -> NoReturn:
        raised(self.kind)


class Unloadable:
    """Raises when it is unpickled."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __reduce__(self) -> Any:
        return raised, (self.kind,)


def unloadable_at_3(kind: int, n: int) -> Any:
    """Return what can be unpickled, but for one."""
    return Unloadable(kind) if n == 3 else n


class Flaky:
    """Can be pickled when the flow is built, and not when it begins."""

    broken = False

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __call__(self, n: int) -> int:
        return n

    def __reduce__(self) -> Any:
        if Flaky.broken:
            raised(self.kind)
        return Flaky, (self.kind,)


async def failure(end: Awaitable[object]) -> BaseException | None:
    """Wait for an end, and give what it raises."""
    try:
        await end
    except BaseException as error:
        return error
    return None


def arrives_as(kind: int, *, of_pickle: bool = False) -> type[BaseException]:
    """Return the class of the exception that the end raises.

    From 3.14 on ``pickle`` adds a note to what it passes on, and raises what a class does that lets no attribute be set.
    """
    raised = KINDS[kind]
    if of_pickle:
        try:
            pickle.dumps([Unpicklable(kind)])
        except BaseException as error:
            raised = error
    return SourceCancelledError if isinstance(raised, asyncio.CancelledError) else type(raised)
