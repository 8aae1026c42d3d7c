"""The kinds of exceptions that a user's code may raise, odd ones among them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from attrs import frozen

from reactive_aio import SourceCancelledError


class PlainError(Exception):
    """As most are."""


class Own(BaseException):
    """As ``pytest.fail()`` and trio's Cancelled are."""


class FalsyError(Exception):
    """One that counts as false."""

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0


class UnsettableError(Exception):
    """An exception whose attributes can't be set."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} can't be set")


@dataclass(frozen=True)
class FrozenError(Exception):
    """A frozen dataclass, which Python's own contextlib can't let pass."""

    text: str


class NotelessError(Exception):
    """One with notes that can't be set, as some bridges to other languages have."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override] # it is what this is about
        return []


class UnspeakableError(Exception):
    """One that can't be shown."""

    def __repr__(self) -> str:
        raise ArithmeticError("no repr")

    def __str__(self) -> str:
        raise ArithmeticError("no str")


KINDS: Final[dict[str, Callable[[], BaseException]]] = {
    "Exception": lambda: PlainError("raised"),
    "BaseException": lambda: Own("raised"),
    "GeneratorExit": lambda: GeneratorExit("raised"),
    "CancelledError": lambda: asyncio.CancelledError("raised"),
    "SystemExit": lambda: SystemExit("raised"),
    "KeyboardInterrupt": lambda: KeyboardInterrupt("raised"),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("raised", [Own("within")]),
    "falsy": lambda: FalsyError("raised"),
    "unsettable": lambda: UnsettableError("raised"),
    "frozen": lambda: FrozenError("raised"),
    "noteless": lambda: NotelessError("raised"),
    "unspeakable": lambda: UnspeakableError("raised"),
    "StopIteration": lambda: StopIteration("raised"),
    "StopAsyncIteration": lambda: StopAsyncIteration("raised"),
}


def shown(error: object) -> str:
    """Return the text of an error that may have no repr."""
    try:
        return repr(error)[:90]
    except BaseException as broken:
        return f"{type(error).__name__} (its repr raises {type(broken).__name__})"


def stands_for(arrived: object, raised: BaseException) -> bool:
    """Return whether what has arrived is what was raised, or what stands for it by the rule."""
    if isinstance(raised, asyncio.CancelledError):
        return arrived is raised or (isinstance(arrived, SourceCancelledError) and arrived.__cause__ is raised)
    if isinstance(raised, (StopIteration, StopAsyncIteration)):
        # Python's own: out of a generator it comes as a RuntimeError.
        return arrived is raised or (isinstance(arrived, RuntimeError) and arrived.__cause__ is raised)
    return arrived is raised


@frozen
class Kind:
    """One kind of exceptions."""

    name: str

    def make(self) -> BaseException:
        """Make one."""
        return KINDS[self.name]()

    @property
    def is_exception(self) -> bool:
        """Whether an ``except Exception`` catches it."""
        return isinstance(self.make(), Exception)


ALL_KINDS: Final = [Kind(name) for name in KINDS]
