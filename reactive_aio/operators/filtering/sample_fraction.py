"""The stage that lets a random fraction of the elements through."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, ClassVar, Final, TypeVar

from attrs import Factory, define, field, frozen

from ..._fusion import Stage, Template, Transform

T = TypeVar("T")

PLAIN: Final = (str, bytes, int, float, type(None))
ADDRESS: Final = re.compile(" at 0x[0-9a-fA-F]+>")


@frozen
class SampleFraction(Stage[T, T]):
    """Stage of ``Flow.sample_fraction``."""

    fraction: float
    seed: int
    key: Callable[[Any], Any] | None

    forwards = True

    def transform(self) -> Transform[T, T]:
        """Return a transform that draws."""
        return Drawing(self)


@define
class Drawing(Transform[T, T]):
    """Draws a number for each element, which depends on nothing but the element and the seed."""

    stage: SampleFraction[T]
    key: Callable[[Any], Any] | None = field(init=False, default=Factory(lambda it: it.stage.key, takes_self=True))
    limit: int = field(init=False, default=Factory(lambda it: int(it.stage.fraction * 2**64), takes_self=True))
    seeded: Any = field(init=False, default=Factory(lambda it: _seeded(it.stage.seed), takes_self=True))

    template: ClassVar[Template | None] = Template("""
        if $draws(item):
            $rest
    """)

    def draws(self, item: T) -> bool:
        """Return whether an element is one of the sample."""
        hashed = self.seeded.copy()
        hashed.update(bits(item if self.key is None else self.key(item)))
        return int.from_bytes(hashed.digest()) < self.limit


def _seeded(seed: int) -> Any:
    return blake2b(f"{seed} ".encode(), digest_size=8)


def bits(value: object) -> bytes:
    """Return the bytes that identify a value: the same in every process."""
    text, kind = repr(value), type(value)
    if not issubclass(kind, PLAIN) and (issubclass(kind, (set, frozenset)) or ADDRESS.search(text)):
        raise TypeError(
            f"sample_fraction() can't identify a {kind.__name__}, because its repr() differs from process to process. "
            "Set key=..., such as a function that returns its id"
        )
    return text.encode()
