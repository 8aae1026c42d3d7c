"""Ranges of keys, into which the workers cut what they have sorted, and merge it again.

Elements are sampled, and not keys, for those need not be picklable (as of `functools.cmp_to_key`). A failure before
anything is read travels in place of the elements, and is the first that the flow hears of.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from operator import itemgetter
from typing import Any, Final

from attrs import define, evolve, field, frozen

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._remote.frames import FAILED, Decoder, Frame
from ..._remote.variables import Tokens, Values, reset, set_values
from ...operators._itself import itself
from ...operators.transforming.sort_by import SortBy
from .._results.task import Kept
from .._task.connecting import Address
from .._task.failures import pack
from .._task.watch import WhileWanted
from .._task.worker import InputFailed, watched

SMALLEST: Final = 50_000
"""Elements below which a range is not worth a job of its own."""
SAMPLES: Final = 32
"""Elements of each chunk, and twice as many of each partition, by which ranges are chosen."""

Piece = tuple[int, int, bytes]
"""The partition that it comes from, its place there, and a frame."""


@frozen
class Ranges:
    """The ranges of one ``sort_by``."""

    sort: bytes = field(repr=False)
    """The stage, and the values of context variables; unpickled only where there is something to compare."""
    where: str
    """The stage in words."""
    starts: tuple[Any, ...] = ()
    """The least element of each range but the first, in ascending order."""
    failure: bytes | None = None
    """A frame, where a partition has failed, or its elements can't be compared, or are more than there may be."""
    lifeline: Address | None = None
    """The address that listens as long as the ranges are needed."""

    @property
    def keys(self) -> Keys:
        """Return the function that makes the keys."""
        return Keys(*pickle.loads(self.sort))

    def by(self, samples: list[bytes], most: int, keys: Keys) -> Ranges:
        """Choose ranges of about as many elements each, no more than ``most``.

        The keys are those of the driver, where pickled broadcast variables can't be had.
        """
        runs = [_frame(each) for each in samples]
        failed = (data for data, run in zip(samples, runs, strict=True) if run.kind == FAILED)
        if (failure := next(failed, None)) is not None:
            return evolve(self, failure=failure)
        total = sum(run.place for run in runs)
        try:
            with keys.known() as key:
                if total > keys.stage.max_size:
                    keys.stage.refuse()
                weighed = [(key(item), run.place / run.count, item) for run in runs for item in run.loads()]
                return evolve(self, starts=tuple(_starts(weighed, max(SMALLEST, total / most))))
        except FAILURES as error:
            return evolve(self, failure=self._failure(error, "samples of the partitions"))

    def cut(self, run: int, records: Iterable[Any]) -> Iterator[tuple[int, Piece]]:
        """Cut the sorted partition number ``run``. Yield the number of a range, and the elements in it."""
        with WhileWanted(self.lifeline):
            yield from self._cut(run, records)

    def _cut(self, run: int, records: Iterable[Any]) -> Iterator[tuple[int, Piece]]:
        if self.failure is not None:
            if run == 0:
                yield 0, (run, 0, self.failure)
            return
        cuts: Cuts | None = None
        for place, data in enumerate(map(_data, watched(iter(records)))):
            try:
                items: list[Any] = _frame(data).loads()
                cuts = cuts or Cuts.of(self)
                parts = list(cuts.parts(items))
            except FAILURES as error:
                yield 0, (run, place, self._failure(error, f"partition {run}"))
                return
            for number, part in parts:
                yield number, (run, place, data if len(part) == len(items) else b"".join(_packed(part).encoded()))

    def _failure(self, error: BaseException, where: str) -> bytes:
        packed = pack(error, where, lambda error: add_note(error, f"in {self.where}"))
        return b"".join(Frame(FAILED, pickled=packed).encoded())


@frozen
class Keys:
    """The stage and the values of context variables, where elements are compared."""

    stage: SortBy[Any]
    values: Values

    def known(self) -> Known:
        """Return the function of the keys, for a block in which the variables are set."""
        return Known(self)


@define
class Known(AbstractContextManager[Callable[[Any], Any]]):
    """The block; no generator, which would set the traceback of what leaves it, and not all let that be set."""

    keys: Keys
    _tokens: Tokens = field(init=False)

    def __enter__(self) -> Callable[[Any], Any]:
        self._tokens = set_values(self.keys.values)
        return self.keys.stage.key or itself

    def __exit__(self, *exc_info: object) -> None:
        reset(self._tokens)


@frozen
class Cuts:
    """The places to cut the many lists of a task."""

    keys: Keys
    starts: list[Any]
    """The key of the least element of each range but the first."""

    @staticmethod
    def of(ranges: Ranges) -> Cuts:
        """Return the keys at which ranges start."""
        keys = ranges.keys
        with keys.known() as key:
            return Cuts(keys, [key(start) for start in ranges.starts])

    def parts(self, items: list[Any]) -> Iterator[tuple[int, list[Any]]]:
        """Cut a sorted list. With ``reverse`` the greatest range is the first."""
        way = -1 if self.keys.stage.reverse else 1
        ascending, begin = items[::way], 0
        with self.keys.known() as key:
            ends = [begin := bisect_left(ascending, start, begin, key=key) for start in self.starts]
        for number, (start, end) in enumerate(zip([0, *ends], [*ends, len(items)], strict=True)):
            if start < end:
                yield number if way > 0 else len(ends) - number, ascending[start:end][::way]


def _starts(weighed: list[tuple[Any, float, Any]], quota: float) -> Iterator[Any]:
    """Yield the least element of each range but the first. ``weighed`` has key, weight and element of each sample."""
    weighed.sort(key=itemgetter(0))
    seen, due = 0.0, quota
    for at, (key, weight, item) in enumerate(weighed):
        if seen >= due and weighed[at - 1][0] < key:
            yield item
            due = seen + quota
        seen += weight


# -- what the workers do


def sample(records: Iterable[Any]) -> Iterator[bytes]:
    """Choose some elements of a sorted partition, evenly spaced, and count all. An empty partition yields nothing."""
    count, some = 0, list[Any]()
    for data in map(_data, watched(iter(records))):
        frame = _frame(data)
        if frame.kind == FAILED:
            yield data
            return
        items = frame.loads()
        count += len(items)
        some += _spaced(items, SAMPLES)
    if some:
        told = _packed(_spaced(some, 2 * SAMPLES))
        told.place = count
        yield b"".join(told.encoded())


def merged(records: Iterable[tuple[int, Piece]]) -> Iterator[Any]:
    """Yield the elements of a range in the order of the partitions, which ``sort_by`` has to put into order."""
    pieces = sorted((piece for _, piece in watched(iter(records))), reverse=True)
    while pieces:
        frame = _frame(pieces.pop()[2])
        if frame.kind == FAILED:
            raise InputFailed(bytes(frame.pickled))
        yield from frame.loads()


def _spaced(items: list[Any], most: int) -> list[Any]:
    """Return at most ``most`` elements, from the middles of equal stretches."""
    step = max(1, -(-len(items) // most))
    return items[(step - 1) // 2 :: step]


def _data(record: Any) -> bytes:
    """Return the bytes of an RDD, or of a column of a frame."""
    return record if isinstance(record, bytes) else bytes(record[0])


def _frame(data: bytes) -> Frame:
    return next(Decoder().feed(data))


def _packed(items: list[Any]) -> Frame:
    kept = Kept(0)
    kept.send(items)
    return kept.frames[0]
