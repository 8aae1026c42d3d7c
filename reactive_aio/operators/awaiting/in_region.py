"""The same operators as stages, for regions that no event loop runs: they await on an event loop of the worker's own.

A worker runs the function of a region over an iterator, on its main thread. Beside it, on a thread of its own, the
machine of `in_flight` awaits. So what is awaited goes on while the worker computes, waits for input, or for demand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import copy_context
from inspect import isawaitable
from itertools import islice
from math import inf
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._core import budgets
from ..._core.guard import FAILURES
from ..._fusion import AWAIT, InputBroken, Pace, Requirement, Stage, Transform, label
from ...hooks import drop_error
from ._queues import queue_for
from .in_flight import InFlight, not_awaitable
from .worker_loop import Side, WorkerLoop

T = TypeVar("T")
U = TypeVar("U")

PATIENCE: Final = 0.02
"""Seconds to wait for a first result before the worker looks whether anybody still wants one."""


class Gate:
    """Lets ``n`` at a time await, in all chunks that a worker has in hand. Each worker has its own."""

    def __init__(self) -> None:
        self._semaphore: asyncio.Semaphore | None = None

    def __reduce__(self) -> tuple[type[Gate], tuple[()]]:
        return Gate, ()

    def of(self, n: int) -> asyncio.Semaphore:
        """Return the semaphore."""
        if self._semaphore is None:
            self._semaphore = asyncio.Semaphore(n)
        return self._semaphore


@frozen
class InRegion(Stage[T, U]):
    """A stage that awaits ``fn`` for up to ``max_concurrency`` elements at a time, and emits results in their order."""

    fn: Callable[[Any], Awaitable[Any]]
    max_concurrency: int
    gate: Gate = field(init=False, repr=False, eq=False, factory=Gate)

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return f"{label(self.fn)}, {self.max_concurrency}"

    @property
    def requirement(self) -> Requirement:
        """An event loop."""
        return AWAIT

    def transform(self) -> Transform[T, U]:
        """Return a place for the elements of one subscription."""
        return Awaiting(self)

    def gives(self, item: Any, result: Any) -> Iterable[Any]:
        """Return the elements to emit for an element and its result."""
        return (result,)


@frozen
class MapAsyncInRegion(InRegion[T, U]):
    """Stage of ``Flow.map_async``, where its flow is not read on an event loop."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return "map_async"


@frozen
class FilterWhenInRegion(InRegion[T, T]):
    """Stage of ``Flow.filter_when``, where its flow is not read on an event loop."""

    forwards = True

    @property
    def name(self) -> str:
        """The name of the method."""
        return "filter_when"

    def gives(self, item: Any, result: Any) -> Iterable[Any]:
        """Let an element through."""
        return (item,) if result else ()


def _pair(item: Any, result: Any) -> tuple[Any, Any]:
    return item, result


@define(eq=False)
class Awaiting(Transform[Any, Any]):
    """The elements of one subscription that are awaited; never more than ``max_concurrency`` without a result handed on."""

    stage: InRegion[Any, Any]
    _side: Side | None = field(init=False, default=None)
    _machine: InFlight | None = field(init=False, default=None)
    _under_way: int = field(init=False, default=0)
    """Elements that were taken and whose results have not been handed on."""
    _late: BaseException | None = field(init=False, default=None)
    """The failure of the input, which comes after all results."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        """Take a stretch of input. Results that are pending at its end come with `finish`, or with the next stretch."""
        return self.paced(items, Pace())

    def paced(self, items: Iterator[Any], pace: Pace) -> Iterator[Any]:
        """Await as many elements as allowed, and emit ready results, until the time is up."""
        given = False
        while True:
            for item, result in self._results():
                given = True
                yield from self.stage.gives(item, result)
            more = self._take_up(items)
            # Elements under way when the input has stopped for a while are given in the next pass. At its very end they
            # are given here, in as many passes as it takes, or by `finish` where there are no more passes.
            ended = pace.ended or self._late is not None
            if not more and not (self._under_way and pace.resumes and ended):
                return
            came = self._wait(pace, pace.deadline - budgets.clock() if given else PATIENCE)
            if pace.resumes and not came:
                pace.ended = False
                return

    def finish(self) -> Iterable[Any]:
        """Yield the results that are still to come."""
        while self._under_way:
            self._wait(None, inf)
            for item, result in self._results():
                yield from self.stage.gives(item, result)

    def close(self) -> None:
        """Cancel the running calls, and wait until they have ended."""
        late, self._late = self._late, None
        if late is not None:
            drop_error(late)  # another one has come before it, or nobody wants to know
        side, machine, self._side = self._side, self._machine, None
        if side is not None and machine is not None:
            side.close(machine.cancel)

    @property
    def pending(self) -> bool:
        """Return whether results are still to come."""
        return self._under_way > 0

    def _results(self) -> Iterator[tuple[Any, Any]]:
        """Yield the results that are there, and after the last one raise the failure, if there is one."""
        side = self._side
        if side is not None:
            error = side.error  # first, for it comes behind the last result
            while side.results:
                self._under_way -= 1
                yield side.results.popleft()
            if error is not None:
                raise error
        if self._late is not None and not self._under_way:
            late, self._late = self._late, None
            raise late

    def _take_up(self, items: Iterator[Any]) -> bool:
        """Begin with further elements; False if the input has stopped."""
        if self._late is not None:
            return False
        room = self.stage.max_concurrency - self._under_way
        taken: list[Any] = []
        try:
            taken.extend(islice(items, room))
        except InputBroken:
            raise
        except FAILURES as error:
            self._late = error
        if taken:
            self._under_way += len(taken)
            self._begun().give(taken)
        return len(taken) == room

    def _begun(self) -> Side:
        """Return the other side, which begins with the first element."""
        if self._side is None:
            stage = self.stage
            side = self._side = Side(WorkerLoop.of_process(), f"{stage} in this part of the stream", copy_context())
            fn = gated(stage.fn, stage.gate.of(stage.max_concurrency))
            self._machine = InFlight(side, fn, stage.max_concurrency, queue_for("input"), _pair)
            side.begin(self._machine)
        return self._side

    def _wait(self, pace: Pace | None, seconds: float) -> bool:
        """Wait until there is something to emit. Return whether there is, or may be."""
        side = self._side
        assert side is not None
        if pace is None or not pace.resumes:
            seconds = inf
        before = budgets.clock()
        came = side.wait(seconds)
        if pace is not None:
            pace.waited += budgets.clock() - before
        return came


def gated(fn: Callable[[Any], Awaitable[Any]], gate: asyncio.Semaphore) -> Callable[[Any], Awaitable[Any]]:
    """Return a function that begins when the gate lets it."""

    async def call(item: Any) -> Any:
        async with gate:
            awaitable: object = fn(item)
            if not isawaitable(awaitable):
                raise not_awaitable(fn, awaitable)
            return await awaitable

    call.__name__ = label(fn)
    return call
