"""How a stage that depends on the whole stream still runs on parts of it.

Such a stage *in parts* is two stages. One runs on each part, wherever the part is stored. The other combines the results
of the parts, in their order. Both together give the result of the stage for any division into parts, with empty parts
and without any. So an engine may work on the parts of a stream side by side, each near its data.

So a part that needs no more decides the whole: the elements behind it might as well have been the rest of that part.

A stage *in turn* is one stage: it is run on one part after another, each told where in the whole it begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from attrs import frozen

from .requirement import OFFSET, PART, Requirement
from .stage import Stage, Transform

T = TypeVar("T")
R = TypeVar("R")


@frozen
class Parts:
    """A stage in parts: ``combine``, over the results of ``partial`` for each part, is the stage over the whole."""

    partial: Stage[Any, Any]
    combine: Stage[Any, Any]
    at_end: bool = True
    """Whether ``partial`` emits nothing before its part has ended or needs no more. Then the result of a part takes
    almost no memory, and an engine may process the part before its turn."""
    rounds: bool = False
    """Whether floats of the result have other last digits where the parts are divided in another way."""


@frozen
class Partial(Stage[T, R]):
    """The stage that is run on each part, shown by the name of the whole one; for sources that know of parts."""

    whole: str
    share: Stage[T, R]
    at_end: bool
    rounds: bool = False

    needs_whole_stream = True

    @property
    def requirement(self) -> Requirement:
        """A part of the stream."""
        return PART

    def transform(self) -> Transform[T, R]:
        """Return that of the share."""
        return self.share.transform()

    def __str__(self) -> str:
        return f"{self.whole} in parts"


@frozen
class Combine(Stage[T, R]):
    """The stage that combines the results of the parts. It is shown by the name of the whole stage."""

    whole: str
    share: Stage[T, R]

    needs_whole_stream = True

    def transform(self) -> Transform[T, R]:
        """Return that of the share."""
        return self.share.transform()

    def __str__(self) -> str:
        return f"{self.whole} combined"


class Placing(Transform[T, R], ABC):
    """A transform that keeps no state from element to element but their number."""

    __slots__ = ()

    @property
    @abstractmethod
    def place(self) -> int:
        """The number of elements of the whole before the next one. Set it at the start of a part, read it at the end."""

    @place.setter
    @abstractmethod
    def place(self, value: int) -> None: ...


class InTurn(Stage[T, R], ABC):
    """A stage that depends on the place of each element in the whole, and on nothing else that is not in its part.

    So it may be run on the parts of a stream, wherever they lie, one after another. Each part has to know how many elements have come to the
    stage in those before.
    """

    __slots__ = ()

    needs_whole_stream = True

    @property
    def requirement(self) -> Requirement:
        """The number of elements before its part."""
        return OFFSET

    @abstractmethod
    def transform(self) -> Placing[T, R]:
        """Return the transform for one part, by default the first."""


def divided(stage: Stage[Any, Any]) -> tuple[Partial[Any, Any], Combine[Any, Any]] | None:
    """Return the two stages by which a stage is done in parts."""
    parts = stage.in_parts()
    if parts is None:
        return None
    whole = str(stage)
    return Partial(whole, parts.partial, parts.at_end, parts.rounds), Combine(whole, parts.combine)
