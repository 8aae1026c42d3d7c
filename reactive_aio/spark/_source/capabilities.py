"""The stages that Spark's workers can run, by the way in which elements travel.

The partitions of the data are the parts of the stream.
"""

from __future__ import annotations

from typing import Any, Final

from ..._fusion import AWAIT, ELEMENT, KEYED, OFFSET, PART, SORT, Stage
from ..._plan import Capabilities
from ...errors import UnsupportedOnSparkError
from ...operators.scheduling.repartition import Repartition
from ...operators.windowing.by_key import GroupByKey
from .portable import check_portable

_BEHIND_OFFSET: Final = frozenset({ELEMENT, AWAIT, PART})
"""A task reports how far one stage has come, and its partitions wait for each other, so they are not shuffled."""


def check_order(stage: Stage[Any, Any]) -> None:
    """Raise for operators that depend on the order of the elements of a key, if no order is given."""
    if isinstance(stage, GroupByKey) and (inner := stage.in_no_order) is not None:
        raise UnsupportedOnSparkError(
            f"{inner}, can't be run on Spark behind group_by_key() without order_by: it needs the elements of a "
            "key in order, and a shuffle changes the order. Set order_by=... of group_by_key(), or any_order=True of fold() or reduce(). "
            "Or run it in this process, with .publish_on(schedulers.current()) before group_by_key()"
        )


def check(placed: object, stage: Stage[Any, Any]) -> None:
    """Raise for a stage that can't run there, or can't be sent."""
    check_order(stage)
    check_portable(placed, stage)


ORDERED: Final = Capabilities(
    "Spark",
    frozenset({ELEMENT, AWAIT, PART, OFFSET, SORT, KEYED}),
    check,
    {PART: frozenset(), OFFSET: _BEHIND_OFFSET},
)
"""Elements come in the order of the partitions, by TCP."""

UNORDERED: Final = Capabilities(
    "Spark", frozenset({ELEMENT, AWAIT, PART, SORT, KEYED}), check, {PART: frozenset(), SORT: ORDERED.runs}
)
"""Partitions come as they are ready, until they are sorted."""


def check_unshuffled(placed: object, stage: Stage[Any, Any]) -> None:
    """Raise for a shuffle, and for a stage that can't be sent."""
    if isinstance(stage, Repartition):
        raise UnsupportedOnSparkError(
            f"{placed}, can't be run where elements travel by wire='results', as with Spark Connect. Call "
            f".repartition({stage.partitions}) of the frame before from_spark()"
        )
    check_portable(placed, stage)


RESULTS: Final = Capabilities("Spark", frozenset({ELEMENT, AWAIT, PART}), check_unshuffled, {PART: frozenset()})
"""Elements are results of jobs. A task reports too late for the next one, and Spark Connect has no shuffle."""
