"""The stages that put the time beside each element."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform

T = TypeVar("T")


def clock() -> float:
    """Return the time of the running event loop. Without a loop, return ``time.monotonic()``."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


@frozen
class Timestamp(Stage[T, tuple[float, T]]):
    """Stage of ``Flow.timestamp``."""

    needs_whole_stream = True  # so that it runs by the clock of the loop, not of a worker

    clock: ClassVar[Callable[[], float]] = staticmethod(clock)

    template: ClassVar[Template | None] = Template("""
        item = ($clock(), item)
        $rest
    """)


@frozen
class Elapsed(Stage[T, tuple[float, T]]):
    """Stage of ``Flow.elapsed``."""

    needs_whole_stream = True

    def transform(self) -> Transform[T, tuple[float, T]]:
        """Return a clock that has not been started."""
        return Stopwatch[T]()


@define
class Stopwatch(Transform[T, tuple[float, T]]):
    """When the last element of one subscription has come."""

    last: float = field(init=False, default=0.0)

    clock: ClassVar[Callable[[], float]] = staticmethod(clock)

    template: ClassVar[Template | None] = Template("""
        now = $clock()
        item = (now - $self.last, item)
        $self.last = now
        $rest
    """)

    def prelude(self) -> Iterable[tuple[float, T]]:
        """Begin with the first demand."""
        self.last = clock()
        return ()

    @property
    def pending(self) -> bool:
        """Return False: no element is still to come."""
        return False
