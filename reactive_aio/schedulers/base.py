"""A scheduler is the place where a region runs.

A scheduler is a value in a flow. It is asked for an event loop each time the flow is subscribed to. It hears when that region has ended, so
that what it started for the region ends with it.

`Workers` are the other kind of place. They have no event loop: the region's function is applied to chunks, several at a
time. The event loop that reads the results keeps them in order and under demand.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, Protocol

from attrs import field, frozen
from attrs.converters import optional

from .._core.guard import as_failure


class Released(Protocol):
    """A callback for the end of what was started for a region. It is called once, from any thread."""

    def __call__(self, join: Callable[[], None] | None = None) -> None:
        """Take note of it; ``join``, where something is still in its last act, waits for the very end and takes no time."""
        ...


class Attachment(Protocol):
    """The hold that one region has on a scheduler."""

    @property
    def loop(self) -> AbstractEventLoop:
        """The event loop that the region runs on."""
        ...

    def detach(self, released: Released) -> None:
        """Let go. ``released`` is called when what was started for the region has ended."""


def nobody(_: BaseException) -> None:
    """Stand for who was to be told that a loop has ended, once that does not matter any more."""


def not_started(name: str, error: RuntimeError | OSError) -> RuntimeError | OSError:
    """Return the error of a place that could not be started for want of threads or sockets.

    ``error`` is what was said.
    """
    kind = OSError if isinstance(error, OSError) else RuntimeError
    failure = kind(
        f"{name} could not be started: {error}. On a platform without threads or sockets, such as WebAssembly, "
        "use schedulers.current()"
    )
    failure.__cause__ = error
    return failure


class Scheduler(Protocol):
    """Where a region runs; implement these three to run regions elsewhere."""

    @property
    def name(self) -> str:
        """How plans show the place."""
        ...

    def is_here(self) -> bool:
        """Return whether the place is the running event loop."""
        ...

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Take a region in, called in the subscriber's thread.

        ``lost(error)`` is to be called, from any thread, if the loop ends before the region has detached. Call it when
        the loop is about to end and still runs, or when it has ended, or both.
        Raises SchedulerClosedError when there is no loop to run on.
        """
        ...


class Run(Protocol):
    """The region's function at work on one chunk."""

    @property
    def over(self) -> bool:
        """Whether all results have been given."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """An error of a user's function, behind the results before it."""
        ...

    @property
    def cleanup_failures(self) -> Sequence[BaseException]:
        """The errors of the cleanup, but for the ``failure``; to be looked at when it is over or closed."""
        ...

    @property
    def taken(self) -> int:
        """The elements of the chunk that have been worked on."""
        ...

    def part(self, most: int) -> list[Any]:
        """Return the next results, at most ``most`` of them; fewer, or none, when some milliseconds have passed."""
        ...

    def close(self) -> None:
        """Let go of what is held, if the run is not over."""


class Work(Protocol):
    """The function of a region. It can be pickled if the user's functions can."""

    @property
    def region(self) -> str:
        """The region in words."""
        ...

    def begin(self, items: list[Any], index: int, /) -> Run:
        """Begin on a chunk whose first element is number ``index`` of the region's input."""
        ...


@frozen
class Report:
    """The results of a chunk since the report before."""

    chunk: int
    items: list[Any]
    taken: int
    """The elements of the chunk that have been worked on so far."""
    seconds: float
    """How long these results took to make."""
    over: bool
    failure: BaseException | None = field(default=None, converter=optional(as_failure))
    size: int = field(default=0, kw_only=True)
    """Bytes of these results, as they have travelled; 0 where they have not."""


class Reports(Protocol):
    """Who hears from the workers, on any thread."""

    def reported(self, report: Report) -> None:
        """Take what has come of a chunk. The reports on one chunk come in order."""

    def sent(self, chunk: int, size: int) -> None:
        """Take the size of a chunk's elements, as they travel, when they leave; on the loop. Who shares memory need not say it."""

    def cleanup_failed(self, error: BaseException) -> None:
        """Take what the letting go of a chunk has raised. Nothing of the kind comes behind ``released``."""

    def lost(self, error: BaseException) -> None:
        """Take note that no more reports will come."""


class WorkerRegion(Protocol):
    """A region on workers, as the event loop that reads it sees it; to be used on one thread."""

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        """Submit a chunk, with the number under which it is to be reported. Later ones have to wait for it."""

    def go_on(self, chunk: int) -> None:
        """Let a chunk give as many results again as it has given since the last call.

        It has given as many as it may, or so many bytes, and waits.
        """

    def leave(self, released: Released) -> None:
        """Let go, and drop what is not over. ``released`` is called when nothing of the region is left."""


class Workers(Protocol):
    """Where a region runs that is applied to chunks. Implement these four to have regions run elsewhere."""

    @property
    def name(self) -> str:
        """How plans show the place."""
        ...

    @property
    def count(self) -> int:
        """The chunks that are worked on at the same time."""
        ...

    def check(self, stage: object) -> None:
        """Raise TypeError, while the flow is built, for a stage that can't be taken there."""

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> WorkerRegion:
        """Take a region in, called on the event loop that reads it.

        ``most`` is the number of results that a chunk may give until it may go on. ``context`` is the
        subscriber's, to be current in the user's functions as far as it can be.
        Raises SchedulerClosedError when there is nobody to work.
        """
        ...
