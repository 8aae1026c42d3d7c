"""The stages that show each element to a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template
from .._fluent import refuse_coroutine

T = TypeVar("T")


@frozen
class DoOnNext(Stage[T, T]):
    """Stage of ``Flow.do_on_next``."""

    fn: Callable[[T], object]

    forwards = True
    template: ClassVar[Template | None] = Template("""
        if (returned := $fn(item)) is not None: $check($fn, returned)
        $rest
    """)

    @staticmethod
    def check(fn: Callable[[Any], object], given: object) -> None:
        """Refuse a function that returns a coroutine."""
        refuse_coroutine(fn, given, "use map_async(), or await in flow.for_each(fn)")


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
