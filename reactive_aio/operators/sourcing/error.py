"""Sources without elements that don't complete: one fails, one never ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from attrs import frozen

from ...segments import Inlet, Pulled, Pushed
from ...spec import Subscription

T = TypeVar("T")


@frozen
class Error(Pulled[T]):
    """Source of ``Flow.error``."""

    error: BaseException | Callable[[], BaseException]

    @property
    def plain(self) -> bool:
        """The failure needs no demand."""
        return True

    def iterate(self) -> Iterator[T]:
        """Fail."""
        raise self.error if isinstance(self.error, BaseException) else self.error()


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
        """Give a subscription to which nothing happens."""
        return _Silence()
