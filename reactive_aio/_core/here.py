"""Objects that belong to the process in which they were made."""

from __future__ import annotations

from typing import ClassVar, NoReturn


class Here:
    """An object that can't be sent to another process. Pickling it raises an error that names it, before its parts."""

    __slots__ = ()

    STAYS: ClassVar[str]
    """A name for it, the reason why it stays, and a way out."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(self.STAYS)
