"""Streams of batches that stay batches: arrays, Arrow tables and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from attrs import field, frozen

from ..operators._fluent import check_count, check_flow, check_function
from .flow import Flow


class Batch(Protocol):
    """An element of a flow of batches: it has a length and can be sliced."""

    def __len__(self) -> int:
        """Return the number of elements."""
        ...

    def __getitem__(self, index: slice, /) -> object:
        """Return a slice, as a batch of the same kind."""
        ...


B_co = TypeVar("B_co", bound=Batch, covariant=True)
C = TypeVar("C", bound=Batch)


def _check_flow(_: object, __: object, flow: object) -> None:
    check_flow("Batches", flow)


@frozen(eq=False)
class Batches(Generic[B_co]):
    """A flow of batches whose operators count elements: a batch is never taken apart.

    An element of ``flow`` is a batch: a list, a numpy array, an Arrow ``RecordBatch`` or ``Table``, a pandas or polars
    ``DataFrame``. A function is called once for a batch, so that numpy or Arrow can do the work on its elements.

    Demand: counts batches, and so do ``prefetch`` and the boundaries of the flow. `take` and `skip` count elements. `map`
    and `filter` hold their latest batch until the next one comes. Empty batches are dropped. Errors: TypeError for an
    element without ``len()`` or slices. For all other operators, use ``flow``. (Arrow: ``RecordBatchReader``; polars:
    ``collect_batches``; Spark: ``mapInArrow``.)

    >>> import numpy
    >>> from reactive_aio import Batches, Flow
    >>> arrays = Flow.range(0, 10, 5).map(lambda start: numpy.arange(start, start + 5))
    >>> even_squares = Batches(arrays).map(numpy.square).filter(lambda squares: squares % 2 == 0)
    >>> even_squares.take(4).flow.run_sync()
    [array([ 0,  4, 16]), array([36])]
    >>> even_squares.flow.map(lambda squares: int(squares.sum())).run_sync()
    [20, 100]
    """

    flow: Flow[B_co] = field(validator=_check_flow)
    """The flow of the batches."""

    def map(self, fn: Callable[[B_co], C]) -> Batches[C]:
        """Emit ``fn(batch)`` for each batch. The result may be of any length and kind.

        Demand: one for one. Errors: what ``fn`` raises.
        (As ``Flow.map``.)

        >>> from reactive_aio import Batches, Flow
        >>> Batches(Flow.of([1, 2], [3])).map(lambda batch: [2 * n for n in batch]).flow.run_sync()
        [[2, 4], [6]]
        """
        from ..operators.filtering.in_batches import MapOfBatches

        check_function("Batches.map", fn, "an ordinary function is needed")
        return Batches(self.flow.then(MapOfBatches[B_co, C](fn)))

    def filter(self, predicate: Callable[[B_co], Any]) -> Batches[B_co]:
        """Keep the elements for which the mask is true. ``predicate(batch)`` returns the mask.

        A mask has one value for each element of the batch: a boolean array or column, or a list of bools for a list.
        Demand: one for one, and another if nothing of a batch is left.
        Errors: exceptions of ``predicate``, and those of the batch's package for a mask that does not fit. Numbers, or the
        names of columns, are no mask: TypeError.
        (As ``Flow.filter``; numpy: a boolean index; Arrow: ``RecordBatch.filter``.)

        >>> from reactive_aio import Batches, Flow
        >>> Batches(Flow.of([1, 2], [3, 5])).filter(lambda batch: [n % 2 == 1 for n in batch]).flow.run_sync()
        [[1], [3, 5]]
        """
        from ..operators.filtering.in_batches import FilterBatches

        check_function("Batches.filter", predicate, "an ordinary function is needed")
        return Batches(self.flow.then(FilterBatches[B_co](predicate)))

    def take(self, n: int) -> Batches[B_co]:
        """Emit the first ``n`` elements. The batch with the last of them is cut there.

        Demand: at most ``n`` batches are requested. Completes with the ``n``-th element, and cancels the source.
        Errors: an ``n`` below 0 is refused with ValueError when the flow is built.
        (As ``Flow.take``.)

        >>> from reactive_aio import Batches, Flow
        >>> Batches(Flow.of([1, 2], [3, 4], [5])).take(3).flow.run_sync()
        [[1, 2], [3]]
        """
        from ..operators.filtering.in_batches import TakeOfBatches

        check_count("Batches.take", "n", n, 0)
        return Batches(self.flow.then(TakeOfBatches[B_co](n)))

    def skip(self, n: int) -> Batches[B_co]:
        """Drop the first ``n`` elements. The batch with the last of them is cut there.

        Demand: one for one, and another for each batch that is dropped as a whole.
        Errors: an ``n`` below 0 is refused with ValueError when the flow is built.
        (As ``Flow.skip``.)

        >>> from reactive_aio import Batches, Flow
        >>> Batches(Flow.of([1, 2], [3, 4], [5])).skip(3).flow.run_sync()
        [[4], [5]]
        """
        from ..operators.filtering.in_batches import SkipOfBatches

        check_count("Batches.skip", "n", n, 0)
        return Batches(self.flow.then(SkipOfBatches[B_co](n)))
