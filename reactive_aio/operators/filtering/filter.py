"""The stage that keeps the elements that pass a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template

T = TypeVar("T")


@frozen
class Filter(Stage[T, T]):
    """Stage of ``Flow.filter``."""

    predicate: Callable[[T], object]

    forwards = True
    template: ClassVar[Template | None] = Template("""
        if $predicate(item):
            $rest
    """)
