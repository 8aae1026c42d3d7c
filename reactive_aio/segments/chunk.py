"""A region applied to one chunk after another, by workers that know nothing of demand.

The region of an event loop is run by its driver. Workers in a pool of threads or processes get a *chunk work*
instead: a picklable value that makes a *chunk run* of each chunk. A run gives its results in parts, so that neither
a slow function nor one that makes many elements of one keeps them from whoever waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from operator import length_hint
from time import perf_counter
from typing import Any, Final

from attrs import define, field, frozen

from .plan import Placed, Region
from .run import RegionRun
from .stage import Stage

SLICE: Final = 5e-3
"""Seconds after which a run gives what it has."""


@frozen
class ChunkWork:
    """What is done to the chunks of one region; its stages don't depend on an element's place in the stream."""

    region: str
    """What feeds the region, in words, for error notes."""
    stages: tuple[Placed[Stage[Any, Any]], ...]

    def begin(self, items: list[Any], index: int) -> ChunkRun:
        """Begin on a chunk whose first element is number ``index`` of the input."""
        run = RegionRun(Region(self.region, self.stages, None, None), counted=True)
        run.total = index + len(items)
        return ChunkRun(run, items)


@define(eq=False)
class ChunkRun:
    """The region at work on one chunk."""

    _run: RegionRun
    _chunk: list[Any]
    _items: Iterator[Any] = field(init=False)
    _pass: Iterator[Any] | None = field(init=False, default=None)
    _finishing: bool = field(init=False, default=False)
    over: bool = field(init=False, default=False)
    """Whether all has been given, or all up to the failure."""
    failure: BaseException | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._items = iter(self._chunk)

    @property
    def taken(self) -> int:
        """The elements of the chunk that have been worked on."""
        return len(self._chunk) - length_hint(self._items)

    @property
    def waited(self) -> float:
        """Seconds that went by waiting for what is awaited beside the run, in all parts."""
        return self._run.pace.waited

    def part(self, most: int) -> list[Any]:
        """Give the next results: at most ``most``, and what there is when the time is up."""
        until = perf_counter() + SLICE
        given: list[Any] = []
        while not self.over and len(given) < most:
            self._step(given, most, until)
            if perf_counter() >= until:
                break
        return given

    def _step(self, given: list[Any], most: int, until: float) -> None:
        """Run one pass, or the next part of it."""
        if self._pass is None:
            self._pass = self._run.finishing() if self._finishing else self._run.over(self._items, until)
        else:
            self._run.pace.deadline = until
        wanted = most - len(given)
        before = len(given)
        try:
            given.extend(islice(self._pass, wanted))
        except (Exception, asyncio.CancelledError) as error:
            self._run.locate(error)
            self._fail(error)
        except BaseException as error:
            # An exit or an interrupt is not for a worker to act upon; the subscriber is told of it.
            self._run.locate(error)
            failure = RuntimeError(f"a function of the flow raised {type(error).__name__} in a worker")
            failure.__cause__ = error
            self._fail(failure)
        else:
            if len(given) - before < wanted:
                self._pass_ended()

    def _pass_ended(self) -> None:
        self._pass = None
        if self._finishing:
            self._end()
        elif self._run.pace.ended or self._run.done:
            self._finishing = True

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self._end()

    def _end(self) -> None:
        self.over = True
        self.close()

    def close(self) -> None:
        """Let go of what the stages hold; a failure in that is the failure of the run, unless it has another."""
        items, self._pass = self._pass, None
        close = getattr(items, "close", None)
        try:
            if close is not None:
                close()
            self._run.close()
        except Exception as error:
            self.failure = self.failure or error
