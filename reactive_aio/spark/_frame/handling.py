"""The stage of ``handle`` in the tasks of a frame, where one partition can't end the others."""

from __future__ import annotations

from typing import ClassVar, NoReturn, TypeVar

from attrs import define, frozen

from ..._fusion import Template, Transform
from ...errors import UnsupportedOnSparkError
from ...operators.transforming.handle import Handle, Handling

T = TypeVar("T")
R = TypeVar("R")


@frozen
class HandleOfPart(Handle[T, R]):
    """Runs on one partition after another, since its function never completes the flow."""

    needs_whole_stream = False

    @property
    def name(self) -> str:
        """The name of the method."""
        return "handle"

    def transform(self) -> Transform[T, R]:
        """Return a sink."""
        return HandlingOfPart[T, R](self.fn)


@define
class HandlingOfPart(Handling[T, R]):
    """The sink of one partition."""

    template: ClassVar[Template | None] = Template("""
        $fn(item, $sink)
        item = $sink.take()
        if $sink.over:
            $refuse()
        if item is not $missing:
            $rest
    """)

    def refuse(self) -> NoReturn:
        """Fail, since the function has done what it must not."""
        raise UnsupportedOnSparkError(
            "sink.complete() can't end the whole flow, because each Spark task runs only a part of it. Chain "
            ".limit(n) to the frame, or run the flow on an event loop and write it with to_spark()"
        )

    @property
    def done(self) -> bool:
        """Return False: it always needs more."""
        return False
