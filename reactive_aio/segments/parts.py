"""How a stage that depends on the whole stream is run on parts of it all the same.

Such a stage *in parts* is two stages: one is run on each part, wherever that lies, and the other combines what comes of the
parts, in their order. Both together are the stage, whatever the parts are; empty ones and none at all included. So
that an engine may have the parts of a stream worked on side by side, each near its data.
"""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import frozen

from .stage import Stage, Transform

T = TypeVar("T")
R = TypeVar("R")


@frozen
class Parts:
    """A stage in parts: ``combine``, over what ``partial`` gives for each part, is the stage over the whole."""

    partial: Stage[Any, Any]
    combine: Stage[Any, Any]
    at_end: bool = True
    """Whether ``partial`` gives nothing before its part has ended or needs no more, so that a part may be worked on
    before its turn for next to no room."""


@frozen
class Partial(Stage[T, R]):
    """The stage that is run on each part, shown by the name of the whole one; for sources that know of parts."""

    whole: str
    share: Stage[T, R]
    at_end: bool

    positional = True

    def transform(self) -> Transform[T, R]:
        """Give that of the share."""
        return self.share.transform()

    def __str__(self) -> str:
        return f"{self.whole} in parts"


@frozen
class Combine(Stage[T, R]):
    """The stage that combines what comes of the parts, shown by the name of the whole one."""

    whole: str
    share: Stage[T, R]

    positional = True

    def transform(self) -> Transform[T, R]:
        """Give that of the share."""
        return self.share.transform()

    def __str__(self) -> str:
        return f"{self.whole} combined"


def in_any_part(operator: object) -> bool:
    """Tell whether an operator is a stage that may be run on any part of a stream by itself."""
    return isinstance(operator, Stage) and (not operator.positional or isinstance(operator, Partial))


def divided(stage: Stage[Any, Any]) -> tuple[Partial[Any, Any], Combine[Any, Any]] | None:
    """Give the two stages by which a stage is done in parts."""
    parts = stage.in_parts()
    if parts is None:
        return None
    whole = str(stage)
    return Partial(whole, parts.partial, parts.at_end), Combine(whole, parts.combine)
