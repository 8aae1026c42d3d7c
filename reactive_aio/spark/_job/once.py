"""Objects of the JVM that stay the same for a context or a session, and are looked up once.

PySpark finds a class by a call for each part of its name. A flow of few rows would spend more on such calls than on its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    Owner = TypeVar("Owner", SparkContext, SparkSession)

T = TypeVar("T")


def once_for_each(look_up: Callable[[Owner], T]) -> Callable[[Owner], T]:
    """Make a function that looks something up return the same for a context or a session each time. It must not keep its argument."""
    kept: WeakKeyDictionary[Owner, T] = WeakKeyDictionary()

    @wraps(look_up)
    def found(owner: Owner) -> T:
        with suppress(KeyError):
            return kept[owner]
        known = kept[owner] = look_up(owner)
        return known

    return found


# `Any` stands for what lies in the JVM.


@once_for_each
def scala_context(context: SparkContext) -> Any:
    """Look up Spark's own context, which the one of PySpark wraps."""
    own: Any = context
    return own._jsc.sc()


@once_for_each
def settings(session: SparkSession) -> Any:
    """Look up the settings of a session. They follow what is set later."""
    own: Any = session
    return own._jsparkSession.sessionState().conf()


@once_for_each
def caches(session: SparkSession) -> Any:
    """Look up the frames that a session has cached."""
    own: Any = session
    return own._jsparkSession.sharedState().cacheManager()
