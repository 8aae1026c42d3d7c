"""Objects that belong to the process in which they were made."""

from __future__ import annotations

from typing import ClassVar, NoReturn


class Here:
    """Something that another process can't be given: to pickle it is refused by name, before anything that it consists of is."""

    __slots__ = ()

    STAYS: ClassVar[str]
    """A name for it, the reason why it stays, and a way out."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(self.STAYS)
