"""The stages of `Batches`: they keep some elements of each batch, and a batch stays a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import compress
from typing import Any, ClassVar, TypeVar, cast

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform, label

B = TypeVar("B")
C = TypeVar("C")

FILTERS: frozenset[str] = frozenset({"pyarrow", "polars"})
"""Packages whose batches have a method ``filter`` for a mask. The others are indexed by it."""

BOOLS: frozenset[str] = frozenset({"bool", "bool_", "BooleanScalar"})
"""The names of the types of bools, of Python, numpy and Arrow."""


def length(batch: object, method: str) -> int:
    """Return the number of elements of a batch. Raise if it is not a batch."""
    kind = type(batch)
    if issubclass(kind, (str, dict)) or not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__")):
        raise TypeError(
            f"Batches.{method}() takes batches with len() and slices, such as a list, a numpy array, an Arrow RecordBatch or a "
            f"DataFrame. The flow emitted {label(batch)}, of type {kind.__name__}"
        )
    return len(cast("Sized", batch))


def part(batch: Any, places: slice) -> Any:
    """Return the elements of a batch at some places. A frame of pandas needs `iloc`: it may take a slice for one of labels."""
    return batch.iloc[places] if hasattr(type(cast("object", batch)), "iloc") else batch[places]


def where(batch: Any, mask: Any) -> Any:
    """Return the elements of a batch for which a mask is true, as a batch of the same kind."""
    # The base classes count too: a user's class may extend an array of Arrow.
    if any(kind.__module__.partition(".")[0] in FILTERS for kind in type(batch).__mro__):
        return batch.filter(mask)
    listed = isinstance(batch, (list, tuple))
    if listed and isinstance(mask, Iterable):
        mask = list(cast("Iterable[object]", mask))
    if not _is_mask(mask):
        raise TypeError(
            f"Batches.filter(): the predicate returned {label(mask)}, but a mask has one bool for each element of the batch"
        )
    if not listed:
        return batch[mask]
    kept = _compressed(cast("Sequence[object]", batch), mask)
    return kept if isinstance(batch, list) else tuple(kept)


def _is_mask(given: Any) -> bool:
    """Return whether an array takes it for a mask, and not for the numbers of elements or the names of columns.

    An empty list is both, and numpy lets an empty mask pass for any array.
    """
    if isinstance(given, list):
        listed = cast("list[object]", given)
        return bool(listed) and {type(each).__name__ for each in listed} <= BOOLS
    if isinstance(given, (str, tuple)) or not hasattr(given, "__len__"):
        return False
    if getattr(given, "ndim", 1) != 1:
        return False
    # Arrays without a type of their elements, such as awkward's, see for themselves what fits.
    kind = str(getattr(given, "dtype", ""))
    if kind == "object":
        return _is_mask(list(cast("Iterable[object]", given)))
    return not kind or ("bool" in kind and len(given) > 0)


def _compressed(batch: Sequence[object], mask: Sequence[object]) -> list[object]:
    if len(mask) != len(batch):
        raise ValueError(f"Batches.filter(): the mask has {len(mask)} values, but the batch has {len(batch)} elements")
    return list(compress(batch, mask))


class _OfBatches(Stage[B, B]):
    """A stage that passes on parts of batches, and no empty ones."""

    __slots__ = ()

    method: ClassVar[str]

    @property
    def name(self) -> str:
        """The name of the method of `Batches`."""
        return f"Batches.{self.method}"


@frozen
class MapOfBatches(Stage[B, C]):
    """Stage of ``Batches.map``."""

    fn: Callable[[B], C]

    @property
    def name(self) -> str:
        """The name of the method of `Batches`."""
        return "Batches.map"

    def transform(self) -> Transform[B, C]:
        """Return what holds the latest batch."""
        return Mapping(self.fn)


@define(eq=False)
class _Holding(Transform[B, C]):
    """Holds the latest batch until the next one is there, as the variable of a loop does.

    If all arrays were free while the source makes the next one, glibc would give their memory back to the system, which
    clears each page before it lends it again. That takes longer than the work on the array.
    """

    held: Any = field(init=False, default=None)

    def close(self) -> None:
        """Let go of it."""
        self.held = None


@define(eq=False)
class Mapping(_Holding[B, C]):
    """The function, and the latest batch that it was called with."""

    fn: Callable[[B], C]

    template: ClassVar[Template | None] = Template("""
        $self.held = item
        item = $fn(item)
        $rest
    """)


@frozen
class FilterBatches(_OfBatches[B]):
    """Stage of ``Batches.filter``."""

    predicate: Callable[[B], Any]

    method = "filter"

    def transform(self) -> Transform[B, B]:
        """Return what holds the latest batch."""
        return Filtering(self.predicate)


@define(eq=False)
class Filtering(_Holding[B, B]):
    """The predicate, and the latest batch that it was called with."""

    predicate: Callable[[B], Any]

    template: ClassVar[Template | None] = Template("""
        $self.held = item
        item = $kept(item)
        if item is not None:
            $rest
    """)

    def kept(self, batch: Any) -> Any:
        """Return the rest of a batch, or None."""
        if not length(batch, "filter"):
            return None
        left = where(batch, self.predicate(batch))
        return left if length(left, "filter") else None


@frozen
class TakeOfBatches(_OfBatches[B]):
    """Stage of ``Batches.take``."""

    n: int

    method = "take"
    needs_whole_stream = True

    def transform(self) -> Transform[B, B]:
        """Return a countdown."""
        return Taking(self.n)


@define
class Taking(Transform[B, B]):
    """The countdown of one subscription."""

    left: int

    template: ClassVar[Template | None] = Template("""
        item = $head(item)
        if item is not None:
            $rest
        if not $self.left:
            $stop
    """)

    def head(self, batch: Any) -> Any:
        """Return the beginning of a batch, or None."""
        size, left = length(batch, "take"), self.left
        self.left -= min(size, left)
        if size > left:
            batch = part(batch, slice(left))
        return batch if size else None

    def demand(self, n: int) -> int:
        """Ask for no more batches than there are elements to take."""
        return min(n, self.left)

    @property
    def done(self) -> bool:
        """Whether all have been taken."""
        return not self.left


@frozen
class SkipOfBatches(_OfBatches[B]):
    """Stage of ``Batches.skip``."""

    n: int

    method = "skip"
    needs_whole_stream = True

    def transform(self) -> Transform[B, B]:
        """Return a countdown."""
        return Skipping(self.n)


@define
class Skipping(Transform[B, B]):
    """The countdown of one subscription."""

    left: int

    template: ClassVar[Template | None] = Template("""
        item = $tail(item)
        if item is not None:
            $rest
    """)

    def tail(self, batch: Any) -> Any:
        """Return the end of a batch, or None."""
        size, left = length(batch, "skip"), self.left
        self.left -= min(size, left)
        if size <= left:
            return None
        return part(batch, slice(left, None)) if left else batch
