"""The source that is an iterator which blocks, on a thread of its own for each subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template
from ...schedulers.base import Attachment
from ...schedulers.thread import ThreadScheduler
from .iterable import FromMade

T = TypeVar("T")


@frozen
class FromBlocking(FromMade[T]):
    """Source of ``Flow.from_blocking``."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_blocking"


@frozen
class WithoutNone(Stage[T | None, T]):
    """Drops None, with which a blocking source says that there is nothing yet. The region then notices a cancel."""

    forwards = True
    template: ClassVar[Template | None] = Template("""
        if item is not None:
            $rest
    """)


@frozen
class OwnThread:
    """A thread for each subscription: two sources that block would wait for each other on one."""

    label: str

    @property
    def name(self) -> str:
        """The name of the place in plans."""
        return f"thread({self.label!r})"

    def is_here(self) -> bool:
        """Return whether the place is the running event loop: never, as each region has another."""
        return False

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the loop of a new thread, which ends with the region."""
        return ThreadScheduler(self.label).attach(lost)
