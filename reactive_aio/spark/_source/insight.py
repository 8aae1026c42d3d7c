"""The part of a plan about a region on Spark. It makes calls into the JVM, so it is made only for a shown plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import RDD, SparkContext

from ..._remote.limit import MOST_BYTES
from .._delivery.at_end import DeliveryAtEnd
from .._delivery.in_turn import DeliveryInTurn
from .._delivery.ordered import MOST_AHEAD, OrderedDelivery

if TYPE_CHECKING:
    from .source import FromSpark


def details(source: FromSpark) -> tuple[str, ...]:
    """Return the lines on how the partitions run, how elements travel, and where to see that."""
    return (f"{partitions_of(source)}, {_order(source)}", _wire(source), *ui_of(source.context))


def bounds(source: FromSpark) -> str:
    """Return the text of how many elements may be in flight or wait here."""
    return f"prefetch {source.prefetch}, at most {MOST_BYTES >> 20} MiB"


def ui_of(context: SparkContext) -> tuple[str, ...]:
    """Return where Spark shows its jobs."""
    try:
        link = context.uiWebUrl
    except Exception:  # the session has ended; the plan is to be seen all the same
        return ()
    return (f"Spark UI {link}" if link else "the Spark UI is off",)


def partitions_of(source: FromSpark) -> str:
    """Count the partitions of an RDD. Those of a frame are known when it runs, and counting earlier may run it."""
    if not isinstance(source.data, RDD):
        return "partitions as Spark plans them"
    try:
        count: int = source.data.getNumPartitions()
    except Exception:  # it reads the data's metadata, which may not be there
        return "partitions not known"
    return f"{count} partition{'s' * (count != 1)}"


def _order(source: FromSpark) -> str:
    if source.delivery is DeliveryAtEnd:
        return "side by side, combined in order"
    if source.delivery is DeliveryInTurn:
        return f"one after the other, numbered in turn, up to {MOST_AHEAD} wait ahead"
    if source.delivery is OrderedDelivery:
        return f"one after the other, up to {MOST_AHEAD} ahead"
    return "side by side"


def _wire(source: FromSpark) -> str:
    return f"{source.carried} over TCP to this process; where workers can't connect to it, wire='results'"
