"""Sorting in steps, so that the event loop never waits for a long list.

Elements are sorted as they come, a *run* of a few thousand at a time. At the end they are taken in *buckets*: of each run
the elements up to a bound, which are put together and sorted. The bound is chosen so that a bucket has about as many elements
as a run. So each call of ``sort`` has a few thousand elements. Only equal ones are never divided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final

from attrs import define, field

from ..._core.containers import new_list

RUN: Final = 4096
"""The elements of a run."""

_rank: Final = itemgetter(0)


@define(eq=False)
class Runs:
    """The runs of one sort. With a key each element stands behind its rank, by which it is sorted."""

    keyed: bool
    reverse: bool
    latest: list[Any] = field(init=False, factory=new_list)
    """The run that is not complete."""
    _complete: list[list[Any]] = field(init=False, factory=new_list)
    """Sorted runs. Those of a descending sort are read from their ends."""
    _bucket: list[Any] = field(init=False, factory=new_list)
    """The elements of the current bucket, the next one last."""

    def __bool__(self) -> bool:
        return bool(self.latest or self._bucket or self._complete)

    @property
    def _by(self) -> Callable[[Any], Any] | None:
        return _rank if self.keyed else None

    def end_run(self) -> int:
        """Sort the latest run, and begin another. Return the number of elements in complete runs."""
        run = self.latest[:]
        self.latest.clear()
        if self.reverse:
            run.reverse()  # so that of equal elements the first comes first when they are read from the end
        run.sort(key=self._by)
        self._complete.append(run)
        return RUN * len(self._complete)

    def in_order(self) -> Iterator[Any]:
        """Yield the elements in order, each when it is wanted. Of equal ones the first comes first, in either direction."""
        if self.latest:
            self.end_run()
        while self._complete:
            self._fill()
            bucket = self._bucket
            while bucket:
                yield bucket.pop()[1] if self.keyed else bucket.pop()

    def _fill(self) -> None:
        """Take the next bucket from all runs."""
        runs, bucket = self._complete, self._bucket
        counts = self._counts(max(1, RUN // len(runs)))
        if self.reverse:
            for run, count in zip(reversed(runs), reversed(counts), strict=True):
                bucket += run[len(run) - count :]
                del run[len(run) - count :]
        else:
            for run, count in zip(runs, counts, strict=True):
                bucket += run[:count]
                del run[:count]
        bucket.sort(key=self._by)
        if not self.reverse:
            bucket.reverse()
        self._complete = [run for run in runs if run]

    def _counts(self, ahead: int) -> list[int]:
        """Return how many elements of each run are in the next bucket: some ``ahead`` of one run, and no more of the others.

        Where runs hardly overlap that is too few, so it is tried with twice as many.
        """
        counts = self._up_to(ahead)
        while sum(counts) < RUN // 2 and ahead < RUN:
            ahead *= 2
            more = self._up_to(ahead)
            if sum(more) > 2 * RUN:
                break
            counts = more
        return counts

    def _up_to(self, ahead: int) -> list[int]:
        """Return how many elements of each run come up to a bound, which no run has more than so many before."""
        runs, by = self._complete, self._by
        rank: Any = by or _itself
        if self.reverse:
            bound = max(rank(run[-min(ahead, len(run))]) for run in runs)
            return [len(run) - bisect_left(run, bound, key=by) for run in runs]
        bound = min(rank(run[min(ahead, len(run)) - 1]) for run in runs)
        return [bisect_right(run, bound, key=by) for run in runs]

    def let_go(self) -> list[Any]:
        """Return the elements that have not been read, and keep none."""
        left = self._bucket[::-1]
        for some in (*self._complete, self.latest):
            left += some
        for some in (self._bucket, self._complete, self.latest):
            some.clear()
        return [element for _, element in left] if self.keyed else left


def _itself(element: Any) -> Any:
    return element
