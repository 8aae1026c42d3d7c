"""Calls into the JVM from a coroutine, on one thread of their own, that a cancellation stops."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from attrs import define, field, frozen

from ..._core.guard import Failed, as_failure, as_of_a_generator, guarded
from .hush import PREFIX, hush
from .local_properties import NO_PROPERTIES, LocalProperties, activate
from .once import scala_context

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

P = ParamSpec("P")
R = TypeVar("R")

AGAIN: Final = 0.25
"""Seconds after which jobs are cancelled once more: one may have been submitted just then."""


def cancel_group(context: Any, name: str) -> None:
    """Cancel the jobs of a group, those that are still to be submitted too; without a word in the log."""
    hush(context, name)
    scala_context(context).cancelJobGroupAndFutureJobs(name)


def is_connect(data: object) -> bool:
    """Return whether a frame or session is of Spark Connect, whose classes need packages that may be missing."""
    return type(data).__module__.startswith("pyspark.sql.connect.")


def group_name() -> str:
    """Make up a name for jobs, by which they are known among all."""
    return f"{PREFIX}{secrets.token_hex(8)}"


class Jobs(Protocol):
    """The jobs that the calls start."""

    def enter(self) -> None:
        """Group the jobs of the calling thread under one tag."""

    def cancel(self) -> None:
        """Cancel them; from another thread."""


@frozen(eq=False)
class JobGroup:
    """The jobs of a thread in a classic session."""

    context: SparkContext
    description: str
    properties: LocalProperties = NO_PROPERTIES
    """Of the thread that made the flow or the writer."""
    session: SparkSession | None = None
    """The session in which the jobs run; None for those of an RDD, and for queries, which know theirs."""
    name: str = field(factory=group_name)

    def enter(self) -> None:
        """Set their local properties and session, and put them into a group."""
        if self.session is None:
            self.properties.enter(self.context)
        else:
            self.properties.with_settings(self.session).enter(self.context)
            activate(self.session)
        self.context.setJobGroup(self.name, self.description)

    def cancel(self) -> None:
        """Cancel the group. Tags would be of no use, which belong to a thread here."""
        cancel_group(self.context, self.name)


@frozen(eq=False)
class JobTag:
    """The jobs of a thread in a session of Spark Connect, which knows no groups."""

    session: Any  # its class needs packages that may not be there
    name: str = field(factory=group_name)

    def enter(self) -> None:
        """Tag what the thread runs."""
        self.session.addTag(self.name)

    def cancel(self) -> None:
        """Interrupt the jobs with the tag."""
        self.session.interruptTag(self.name)


def jobs_of(session: Any, description: str, properties: LocalProperties) -> Jobs:
    """Return the jobs that a thread is to start in a session."""
    return JobTag(session) if is_connect(session) else JobGroup(session.sparkContext, description, properties)


@define(eq=False)
class Calls:
    """A thread for calls into the JVM, whose jobs are of one group; an asynchronous context manager."""

    jobs: Jobs
    _thread: ThreadPoolExecutor = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reactive_aio-spark-calls", initializer=self._enter)

    def _enter(self) -> None:
        with suppress(Exception):  # the JVM is gone, and the call will say so
            self.jobs.enter()

    async def __call__(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call. When this is cancelled, its jobs are, and the cancellation is raised when it has ended."""
        # As an outcome: a future takes no StopIteration, and takes a CancelledError for a cancellation of its own.
        context = copy_context()
        call = asyncio.wrap_future(self._thread.submit(lambda: guarded(context, fn, *args, **kwargs)))
        cancelled: asyncio.CancelledError | None = None
        while not call.done():
            try:
                await asyncio.wait([call], timeout=None if cancelled is None else AGAIN)
            except asyncio.CancelledError as error:
                cancelled = error
            if cancelled is not None and not call.done():
                await self._cancel()
        if cancelled is not None:
            call.exception()  # looked at, so that asyncio does not report it as never retrieved
            raise cancelled
        outcome = call.result()
        if isinstance(outcome, Failed):
            raise as_of_a_generator(as_failure(outcome.take()), "a function on Spark's thread")
        return outcome

    async def _cancel(self) -> None:
        def cancel() -> None:
            with suppress(Exception):  # the JVM is gone, and the call will end
                self.jobs.cancel()

        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().run_in_executor(None, cancel)

    async def __aenter__(self) -> Calls:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._thread.shutdown()  # it has nothing to do: every call has been waited for
