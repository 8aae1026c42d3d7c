"""The stage that applies a function to each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template

T = TypeVar("T")
R = TypeVar("R")


@frozen
class Map(Stage[T, R]):
    """Stage of ``Flow.map``."""

    fn: Callable[[T], R]

    template: ClassVar[Template | None] = Template("""
        item = $fn(item)
        $rest
    """)
