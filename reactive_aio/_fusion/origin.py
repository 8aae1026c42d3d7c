"""The line of the user's code that an operator was chained on."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final, Generic, TypeVar

from attrs import frozen

O_co = TypeVar("O_co", covariant=True)

_PACKAGE: Final = __name__.partition(".")[0]


@frozen
class Origin:
    """A place in somebody's source: shown in plans and in the notes of errors."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@frozen
class Placed(Generic[O_co]):
    """An operator and the line it was chained on."""

    operator: O_co
    origin: Origin

    def __str__(self) -> str:
        return f"{self.operator}, chained at {self.origin}"


def calling_line() -> Origin:
    """Return the innermost line outside this package.

    This is all that error locations cost: a few frames looked at when an operator is chained, nothing for
    an element.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - inspect reads source files, this does not
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=512)
def _inside(module: object) -> bool:
    return isinstance(module, str) and (module == _PACKAGE or module.startswith(_PACKAGE + "."))
