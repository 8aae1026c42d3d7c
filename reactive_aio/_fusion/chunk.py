"""A region applied to one chunk after another, by workers that know nothing of demand.

The region of an event loop is run by its driver. Workers in a pool of threads or processes get a *chunk work*
instead: a picklable value that makes a *chunk run* of each chunk. A run gives its results in parts, so that neither
a slow function nor one that makes many elements of one keeps a waiting reader from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from operator import length_hint
from typing import Any, Final

from attrs import define, field, frozen

from .._core import budgets
from .._core.containers import new_list
from .._core.guard import FAILURES, as_of_a_generator, close_all
from .fuse import Call, Pace, call, gathering
from .origin import Placed
from .passes import OVER
from .run import RegionRun
from .stage import Stage
from .writing import Unit

SLICE: Final = 5e-3
"""Seconds after which a run returns its results so far."""


@frozen
class ChunkWork:
    """The work on the chunks of one region; its stages don't depend on an element's place in the stream."""

    region: str
    """The input of the region, in words, for error notes."""
    stages: tuple[Placed[Stage[Any, Any]], ...]

    def begin(self, items: list[Any], index: int) -> ChunkRun | GatheringRun:
        """Begin on a chunk whose first element is number ``index`` of the input."""
        if self._gather is not None:
            return GatheringRun(self, self._gather, items, index)
        return ChunkRun(self.region_run(index + len(items)), items)

    def region_run(self, total: int, unit: Unit | None = None) -> RegionRun:
        """Return the region, for a chunk that ends at a number of elements of the input."""
        run = RegionRun(self.stages, self.region, counted=True, unit=unit)
        run.total = total
        return run

    @cached_property
    def _gathering(self) -> Unit | None:
        """The function from list to list, if the stages keep and add nothing, so that nothing else is needed."""
        operators = self._operators
        return gathering(tuple(map(type, operators)), hurried=False) if all(map(_is_plain, operators)) else None

    @cached_property
    def _gather(self) -> Call | None:
        return None if self._gathering is None else call(self._gathering, self._operators)

    @property
    def _operators(self) -> list[Stage[Any, Any]]:
        return [placed.operator for placed in self.stages]

    def locate(self, error: BaseException, total: int, pace: Pace) -> None:
        """Note where a gathering function has failed."""
        run = self.region_run(total, self._gathering)
        run.pace = pace
        run.locate(error)


def _is_plain(operator: Stage[Any, Any]) -> bool:
    """Return whether a stage has only its template."""
    base: type[Stage[Any, Any]] = Stage
    names = ("transform", "prelude", "finish", "close", "done", "pending")
    return all(getattr(type(operator), name) is getattr(base, name) for name in names)


@define(eq=False)
class GatheringRun:
    """The region at work on one chunk, where one function is all there is to it."""

    _work: ChunkWork
    _call: Call
    _chunk: list[Any]
    _index: int
    _items: Iterator[Any] = field(init=False)
    _pace: Pace = field(init=False, factory=Pace)
    over: bool = field(init=False, default=False)
    """Whether all results have been returned, or all up to the failure."""
    failure: BaseException | None = field(init=False, default=None)
    cleanup_failures: tuple[BaseException, ...] = field(init=False, default=())
    """Nothing is held, so nothing fails to be let go of."""

    def __attrs_post_init__(self) -> None:
        self._items = iter(self._chunk)

    @property
    def taken(self) -> int:
        """The elements of the chunk that have been worked on."""
        return len(self._chunk) - length_hint(self._items)

    @property
    def waited(self) -> float:
        """Seconds that went by waiting: none, since nothing is awaited beside the run."""
        return 0.0

    def part(self, most: int) -> list[Any]:
        """Return the next results: at most ``most``, and what there is when the time is up."""
        given: list[Any] = []
        self._pace.deadline = budgets.clock() + SLICE
        function, bound = self._call
        try:
            function(self._items, self._pace, given, most, *bound)
        except FAILURES as error:
            self.over = True
            self.failure = as_of_a_generator(error)
            self._work.locate(self.failure, self._index + len(self._chunk), self._pace)
        else:
            self.over = self._pace.ended
        return given

    def close(self) -> None:
        """Nothing is held."""


@define(eq=False)
class ChunkRun:
    """The region at work on one chunk."""

    _run: RegionRun
    _chunk: list[Any]
    _items: Iterator[Any] = field(init=False)
    over: bool = field(init=False, default=False)
    """Whether all results have been returned, or all up to the failure."""
    failure: BaseException | None = field(init=False, default=None)
    cleanup_failures: list[BaseException] = field(init=False, factory=new_list)
    """The errors of the cleanup, but for the failure itself."""

    def __attrs_post_init__(self) -> None:
        self._items = iter(self._chunk)

    @property
    def taken(self) -> int:
        """The elements of the chunk that have been worked on."""
        return len(self._chunk) - length_hint(self._items)

    @property
    def waited(self) -> float:
        """Seconds of waiting for functions that are awaited beside the run, in all parts."""
        return self._run.pace.waited

    def part(self, most: int) -> list[Any]:
        """Return the next results: at most ``most``, and what there is when the time is up."""
        until = budgets.clock() + SLICE
        given: list[Any] = []
        while not self.over and len(given) < most:
            self._step(given, most, until)
            if budgets.clock() >= until:
                break
        return given

    def _step(self, given: list[Any], most: int, until: float) -> None:
        """Run one pass, or the next part of it."""
        try:
            self._run.fill(given, self._items, most - len(given), until)
        except FAILURES as error:
            self._run.locate(error)
            self.failure = error
            self._end()
        else:
            if self._run.phase is OVER:
                self._end()

    def _end(self) -> None:
        self.over = True
        self.close()
        if self.failure is None and self.cleanup_failures:
            # It stands behind the results, where the end is.
            self.failure = self.cleanup_failures.pop(0)

    def close(self) -> None:
        """Let go of what the stages hold. A failure of that is kept."""
        items, self._run.current = self._run.current, None
        close = getattr(items, "close", None)
        closers = [self._run.close] if close is None else [close, self._run.close]
        self.cleanup_failures += close_all(closers)
