"""The stage that keeps the elements of a type."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template

S = TypeVar("S")


@frozen
class OfType(Stage[Any, S]):
    """Stage of ``Flow.of_type``."""

    kind: type[S]

    forwards = True
    template: ClassVar[Template | None] = Template("""
        if isinstance(item, $kind):
            $rest
    """)
