"""Sources without elements that don't complete: one fails, one never ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from attrs import Factory, field, frozen

from ..._plan import Inlet, Pulled, Pushed
from ...spec import Subscription

T = TypeVar("T")


def _traceback_of(source: Error[Any]) -> TracebackType | None:
    """Return the traceback that an exception had before a flow of this kind raised it, perhaps in an attempt before this one."""
    if not isinstance(source.error, BaseException):
        return None
    raises = type(source).iterate.__code__
    found = entry = source.error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code is raises:
            found = entry.tb_next
        entry = entry.tb_next
    return found


@frozen
class Error(Pulled[T]):
    """Source of ``Flow.error``."""

    error: BaseException | Callable[[], BaseException]
    _traceback: TracebackType | None = field(
        init=False, repr=False, eq=False, default=Factory(_traceback_of, takes_self=True)
    )

    @property
    def plain(self) -> bool:
        """The failure needs no demand."""
        return True

    def iterate(self) -> Iterator[T]:
        """Fail."""
        if isinstance(self.error, BaseException):
            # Each raising would add to the traceback, so that the millionth retry would drag a million along.
            raise BaseException.with_traceback(self.error, self._traceback)  # whatever the class makes of it
        raise self.error()


@frozen
class _Silence:
    def request(self, n: int) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing."""


@frozen
class Never(Pushed[T]):
    """Source of ``Flow.never``."""

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Return a subscription that does nothing."""
        return _Silence()
