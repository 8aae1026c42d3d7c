"""The stage that lets nothing through but the end."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from attrs import frozen

from ..._fusion import Stage, Template
from ...spec import UNBOUNDED


@frozen
class IgnoreElements(Stage[Any, NoReturn]):
    """Stage of ``Flow.ignore_elements``."""

    forwards = True
    template: ClassVar[Template | None] = Template("pass", plain=True)

    def demand(self, n: int) -> int:
        """Ask for all there is, since none of it counts."""
        return UNBOUNDED if n else 0
