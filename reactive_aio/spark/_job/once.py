"""Objects of the JVM that stay the same for a context, and are looked up once.

PySpark finds a class by a call for each part of its name. A flow of few rows would spend more on such calls than on its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")


def once_a_context(look_up: Callable[[SparkContext], T]) -> Callable[[SparkContext], T]:
    """Make a function that looks something up return the same for a context each time. It must not keep the context."""
    kept: WeakKeyDictionary[SparkContext, T] = WeakKeyDictionary()

    def found(context: SparkContext) -> T:
        if (known := kept.get(context)) is None:
            known = kept[context] = look_up(context)
        return known

    return found
