"""The line of the user's code where an operator was chained."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final, Generic, TypeVar

from attrs import define, frozen

O_co = TypeVar("O_co", covariant=True)

MOST_FILES: Final = 512
"""The number of remembered files. A notebook has new ones without end."""

_PACKAGE: Final = __name__.partition(".")[0]


@frozen
class Origin:
    """A place in a source file, shown in plans and in the notes of errors."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@define(unsafe_hash=True)
class Placed(Generic[O_co]):
    """An operator and the line it was chained on; never changed, but not frozen, which would double the time it takes to make one."""

    operator: O_co
    origin: Origin

    def __str__(self) -> str:
        return f"{self.operator}, chained at {self.origin}"


def calling_line(within: int = 1) -> Origin:
    """Return the innermost line outside this package, whose ``within`` innermost calls are known to be inside it.

    This is all that error locations cost: a few frames looked at when an operator is chained, nothing for
    an element.
    """
    frame = sys._getframe(within)  # pyright: ignore[reportPrivateUsage] - inspect reads source files, this does not
    while (known := _outside.get(frame.f_code.co_filename)) is None:
        if frame.f_back is None or not _inside(frame.f_globals.get("__name__")):
            known = _lines_of(frame.f_code.co_filename)
            break
        frame = frame.f_back
    line = frame.f_lineno
    origin = known.get(line)
    if origin is None:
        origin = known[line] = Origin(frame.f_code.co_filename, line)
    return origin


_outside: Final[dict[str, dict[int, Origin]]] = {}
"""The lines outside this package that operators have been chained on, by their files: a service chains on few, and often."""


def _lines_of(file: str) -> dict[int, Origin]:
    if len(_outside) == MOST_FILES:
        _outside.clear()
    return _outside.setdefault(file, {})


@lru_cache(maxsize=512)
def _inside(module: object) -> bool:
    return isinstance(module, str) and (module == _PACKAGE or module.startswith(_PACKAGE + "."))
