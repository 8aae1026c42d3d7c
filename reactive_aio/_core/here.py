"""What belongs to the process in which it was made."""

from __future__ import annotations

from typing import ClassVar, NoReturn


class Here:
    """Something that another process can't be given: to pickle it is refused by name, before anything that it consists of is."""

    __slots__ = ()

    STAYS: ClassVar[str]
    """What it is, why it stays, and what to do about it."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(self.STAYS)
