"""The stage that applies a function to each element and drops None."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template

T = TypeVar("T")
R = TypeVar("R")


@frozen
class MapNotNone(Stage[T, R]):
    """Stage of ``Flow.map_not_none``."""

    fn: Callable[[T], R | None]

    template: ClassVar[Template | None] = Template("""
        item = $fn(item)
        if item is not None:
            $rest
    """)
