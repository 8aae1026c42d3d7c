"""A scheduler is the place where a region runs.

A scheduler is a value in a flow. At each subscription the flow asks it for an event loop. When the region ends, it
detaches, and the scheduler ends what it started for the region.

`Workers` are the other kind of place. They have no event loop. They apply the region's function to chunks, several at a
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
    """A callback for the end of the resources of a region. It is called once, on any thread."""

    def __call__(self, join: Callable[[], None] | None = None) -> None:
        """Note the end. ``join``, if given, waits for the very end of something in its last act. This takes no time."""
        ...


class Attachment(Protocol):
    """The hold that one region has on a scheduler."""

    @property
    def loop(self) -> AbstractEventLoop:
        """The event loop that the region runs on."""
        ...

    def detach(self, released: Released) -> None:
        """Let go. ``released`` is called when everything that was started for the region has ended."""


def nobody(_: BaseException) -> None:
    """Do nothing. It replaces the callback for the end of a loop when that does not matter any more."""


def not_started(name: str, error: RuntimeError | OSError) -> RuntimeError | OSError:
    """Return the error of a place that lacks the threads or sockets to start. ``error`` is the cause."""
    kind = OSError if isinstance(error, OSError) else RuntimeError
    failure = kind(
        f"{name} could not be started: {error}. On a platform without threads or sockets, such as WebAssembly, "
        "use schedulers.current()"
    )
    failure.__cause__ = error
    return failure


class Scheduler(Protocol):
    """The place where a region runs. Implement these three to run regions elsewhere."""

    @property
    def name(self) -> str:
        """The name of the place in plans."""
        ...

    def is_here(self) -> bool:
        """Return whether the place is the running event loop."""
        ...

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return an event loop for a region; called on the subscriber's thread.

        Call ``lost(error)``, on any thread, if the loop ends before the region has detached. Call it when the loop is
        about to end and still runs, or when it has ended, or both.
        Raises SchedulerClosedError when there is no loop to run on.
        """
        ...


class Run(Protocol):
    """A run of the region's function on one chunk."""

    @property
    def over(self) -> bool:
        """Whether all results have been returned."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """An error of a user's function, after the results before it."""
        ...

    @property
    def cleanup_failures(self) -> Sequence[BaseException]:
        """The errors of the cleanup, without the ``failure``. Read it when the run is over or closed."""
        ...

    @property
    def taken(self) -> int:
        """The number of elements of the chunk that have been processed."""
        ...

    def part(self, most: int) -> list[Any]:
        """Return the next results, at most ``most``. Return fewer, or none, after some milliseconds."""
        ...

    def close(self) -> None:
        """Drop the held elements, if the run is not over."""


class Work(Protocol):
    """The function of a region. It can be pickled if the user's functions can."""

    @property
    def region(self) -> str:
        """The operators of the region, as text."""
        ...

    def begin(self, items: list[Any], index: int, /) -> Run:
        """Begin on a chunk whose first element is number ``index`` of the region's input."""
        ...


@frozen
class Report:
    """The results of a chunk since the last report."""

    chunk: int
    items: list[Any]
    taken: int
    """The number of elements of the chunk that have been processed so far."""
    seconds: float
    """How long these results took to make."""
    over: bool
    failure: BaseException | None = field(default=None, converter=optional(as_failure))
    size: int = field(default=0, kw_only=True)
    """Bytes of these results, as they were sent; 0 if they were not sent."""


class Reports(Protocol):
    """The receiver of the workers' reports, on any thread."""

    def reported(self, report: Report) -> None:
        """Take a report on a chunk. The reports on one chunk come in order."""

    def sent(self, chunk: int, size: int) -> None:
        """Take the size of a chunk, in bytes, when it is sent; on the loop. Workers that share memory may omit it."""

    def cleanup_failed(self, error: BaseException) -> None:
        """Take the error of a chunk's cleanup. None comes after ``released``."""

    def lost(self, error: BaseException) -> None:
        """Take note that no more reports will come."""


class WorkerRegion(Protocol):
    """A region on workers, for the event loop that reads it. Use it on one thread."""

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        """Submit a chunk, with the number for its reports. Later chunks wait for it."""

    def go_on(self, chunk: int) -> None:
        """Let a waiting chunk go on. It may make the same number of results again as since the last call.

        A chunk waits when it has made the maximum number of results or bytes.
        """

    def leave(self, released: Released) -> None:
        """Let go, and drop unfinished chunks. ``released`` is called when nothing of the region is left."""


class Workers(Protocol):
    """The place where a region's function is applied to chunks. Implement these four to run regions elsewhere."""

    @property
    def name(self) -> str:
        """The name of the place in plans."""
        ...

    @property
    def count(self) -> int:
        """The number of chunks that are processed at the same time."""
        ...

    def check(self, stage: object) -> None:
        """Raise TypeError, while the flow is built, for a stage that can't run there."""

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> WorkerRegion:
        """Return the workers' side of a region; called on the event loop that reads it.

        ``most`` is the number of results that a chunk may make before it waits. ``context`` is the subscriber's. It is
        current in the user's functions as far as possible.
        Raises SchedulerClosedError when there are no workers.
        """
        ...
