"""Sorting in steps, so that the event loop never waits for a long list.

Elements are sorted as they come, a *run* of a few thousand at a time. At the end they are taken in *buckets*: of each run
the elements up to a bound, which are put together and sorted. The bound is chosen so that a bucket has about as many elements
as a run. So each call of ``sort`` has a few thousand elements. Only equal ones are never divided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

from attrs import Factory, define, field

from ..._core.containers import new_list

RUN: Final = 4096
"""The elements of a run."""


@define(eq=False)
class Run:
    """Some elements and their ranks, by which they are sorted. Without a key, elements and ranks are one list."""

    items: list[Any]
    ranks: list[Any]
    first: int = field(init=False, default=0)
    """The place of the first element that has not been taken. None is deleted, which would move all others."""
    last: int = field(init=False, default=0)
    """The place behind the last one."""

    def sort(self) -> None:
        """Sort it. Of equal elements the first stays first."""
        items, ranks = self.items, self.ranks
        self.last = len(items)
        if ranks is items:
            items.sort()
            return
        # Not a list of pairs, whose garbage collection would take longer than the sort.
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        self.items, self.ranks = [items[at] for at in order], [ranks[at] for at in order]

    def reverse(self) -> None:
        """Reverse it."""
        self.items.reverse()
        if self.ranks is not self.items:
            self.ranks.reverse()

    def move(self, first: int, last: int, bucket: Run) -> None:
        """Put the elements between two places into a bucket."""
        bucket.items += self.items[first:last]
        if self.ranks is not self.items:
            bucket.ranks += self.ranks[first:last]


@define(eq=False)
class Runs:
    """The runs of one sort."""

    keyed: bool
    reverse: bool
    latest: Run = field(init=False, default=Factory(lambda self: self._none(), takes_self=True))
    """The run that is not complete."""
    _complete: list[Run] = field(init=False, factory=new_list)
    """Sorted runs. Those of a descending sort are read from their ends."""
    _bucket: list[Any] = field(init=False, factory=new_list)
    """The elements of the current bucket, the next one last."""

    def __bool__(self) -> bool:
        return bool(self.latest.items or self._bucket or self._complete)

    @property
    def several(self) -> bool:
        """Whether there is a complete run before the latest."""
        return bool(self._complete)

    def _none(self) -> Run:
        items: list[Any] = []
        return Run(items, [] if self.keyed else items)

    def end_run(self) -> int:
        """Sort the latest run, and begin another. Return the number of elements in complete runs."""
        run, latest = self._none(), self.latest
        latest.move(0, len(latest.items), run)
        latest.items.clear()  # the lists stay the same
        latest.ranks.clear()
        if self.reverse:
            run.reverse()  # so that of equal elements the first comes first when they are read from the end
        self._complete.append(run)
        run.sort()
        return RUN * len(self._complete)

    def in_order(self) -> Iterator[Any]:
        """Yield the elements in order, each when it is wanted. Of equal ones the first comes first, in either direction."""
        while self._fill():
            bucket = self._bucket
            while bucket:
                yield bucket.pop()

    def in_lists(self) -> Iterator[list[Any]]:
        """Yield the elements in the same order, a bucket at a time."""
        while self._fill():
            bucket, self._bucket = self._bucket, []
            bucket.reverse()
            yield bucket

    def _fill(self) -> bool:
        """Take the next bucket from all runs. Return whether there is one."""
        if self.latest.items:
            self.end_run()
        if not self._complete:
            return False
        if len(self._complete) == 1 and not self._complete[0].first:
            bucket = self._complete.pop()
            del bucket.items[bucket.last :]
        else:
            bucket = self._none()
            self._bucket = bucket.items  # where they are found if they can't be compared
            self._take_from_all(bucket)
            bucket.sort()
        self._bucket = bucket.items
        if not self.reverse:
            self._bucket.reverse()
        return True

    def _take_from_all(self, bucket: Run) -> None:
        """Move elements from the beginning of each run, or from its end, to the bucket."""
        runs = self._complete
        places = self._places(max(1, RUN // len(runs)))
        if self.reverse:
            for run, place in zip(reversed(runs), reversed(places), strict=True):
                run.move(place, run.last, bucket)
                run.last = place
        else:
            for run, place in zip(runs, places, strict=True):
                run.move(run.first, place, bucket)
                run.first = place
        self._complete = [run for run in runs if run.first < run.last]

    def _places(self, ahead: int) -> list[int]:
        """Return where the next bucket ends in each run: some ``ahead`` of one run, and no more of the others.

        Where runs hardly overlap that is too few, so it is tried with twice as many.
        """
        places = self._up_to(ahead)
        while self._size(places) < RUN // 2 and ahead < RUN:
            ahead *= 2
            more = self._up_to(ahead)
            if self._size(more) > 2 * RUN:
                break
            places = more
        return places

    def _size(self, places: list[int]) -> int:
        ends = sum([run.last if self.reverse else run.first for run in self._complete])
        return abs(sum(places) - ends)

    def _up_to(self, ahead: int) -> list[int]:
        """Return the place in each run of a bound, which no run has more than so many elements before."""
        runs = self._complete
        if self.reverse:
            bound = max(run.ranks[max(run.last - ahead, run.first)] for run in runs)
            return [bisect_left(run.ranks, bound, run.first, run.last) for run in runs]
        bound = min(run.ranks[min(run.first + ahead, run.last) - 1] for run in runs)
        return [bisect_right(run.ranks, bound, run.first, run.last) for run in runs]

    def let_go(self) -> list[Any]:
        """Return the elements that have not been read, and keep none."""
        left = self._bucket[::-1]
        for run in self._complete:
            left += run.items[run.first : run.last]
        left += self.latest.items
        self._bucket = []
        self._complete.clear()
        self.latest.items.clear()
        self.latest.ranks.clear()
        return left
