"""The stages that show each element to a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template

T = TypeVar("T")


@frozen
class DoOnNext(Stage[T, T]):
    """Stage of ``Flow.do_on_next``."""

    fn: Callable[[T], object]

    forwards = True
    template: ClassVar[Template | None] = Template("""
        $fn(item)
        $rest
    """)


@frozen
class LogNext(Stage[T, T]):
    """Stage of ``Flow.log``. It writes where the logger is, and so after the boundary of a cluster."""

    log: Callable[[T], object]

    forwards = True
    needs_whole_stream = True
    template: ClassVar[Template | None] = Template("""
        $log(item)
        $rest
    """)

    @property
    def name(self) -> str:
        """The method that it belongs to."""
        return "log"

    @property
    def arguments(self) -> str:
        """Nothing: they are shown with the other signals."""
        return ""
