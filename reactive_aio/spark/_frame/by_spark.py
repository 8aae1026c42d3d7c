"""Stages that Spark runs by a method of its frames, if that has the same result.

It is so only where nobody relies on an order (``ordered=False``). Else the first n rows are those of the first partitions, and
Spark gives any: it brings rows together as they come over the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import Row

from ..._fusion import Placed
from ...operators.filtering.distinct import Distinct
from ...operators.filtering.skip import Skip
from ...operators.filtering.take import Take
from .._source.source import FromSpark

ALIKE: Final = frozenset({"tinyint", "smallint", "int", "bigint", "boolean", "string", "binary", "date"})
"""Types whose values are equal to Spark where they are equal to Python. A NaN equals itself to Spark alone, and of times
that come twice when clocks are set back Python sees one."""


def whatever_the_order(step: Placed[Any]) -> bool:
    """Return whether a step means any n elements, or all but any n, of elements in no order."""
    return isinstance(step.operator, (Take, Skip))


def told_apart(step: Placed[Any], source: FromSpark) -> bool:
    """Return whether a step drops duplicate rows, and Spark finds the same rows equal. Asks for the schema."""
    operator: Any = step.operator
    if not isinstance(step.operator, Distinct) or operator.key is not None or operator.evict:
        return False
    if source.reading is None or source.reading.kind not in {Row, tuple}:
        return False
    data: Any = source.data
    fields = data.schema.fields
    return bool(fields) and all(each.dataType.simpleString() in ALIKE for each in fields)


def applied(frame: Any, steps: Iterable[Placed[Any]]) -> Any:
    """Return a frame with steps done by Spark."""
    for step in steps:
        operator: Any = step.operator
        if isinstance(operator, Take):
            frame = frame.limit(operator.n)
        elif isinstance(operator, Skip):
            frame = frame.offset(operator.n)
        else:
            frame = frame.dropDuplicates()
    return frame
