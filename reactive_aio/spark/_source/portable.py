"""Check that a stage can be sent to Spark's workers: when the flow is built, with the operator and its line."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import JavaClass, JavaGateway, JavaObject, JavaPackage, JVMView
from pyspark import RDD, Broadcast, SparkContext
from pyspark import cloudpickle as _untyped
from pyspark.sql import DataFrame, SparkSession

from ..._remote.pickling import MAIN
from ..._remote.variables import Variable
from ...errors import UnsupportedOnSparkError
from .._job.told import text_of
from .._task.main_classes import MainClasses

if TYPE_CHECKING:
    from .source import FromSpark

    # The real one is a C class that takes these as methods.
    class _Pickler:
        def __init__(self, file: io.BytesIO) -> None: ...
        def dump(self, obj: object) -> None: ...

else:
    _Pickler = _untyped.Pickler

Kinds = tuple[tuple[str, tuple[type[Any], ...]], ...]

# Some of these can be pickled, and would be something of their own in each worker.
BOUND_HERE: Final[Kinds] = (
    ("an event loop", (asyncio.AbstractEventLoop,)),
    ("a task or future", (asyncio.Future,)),
    ("a queue of an event loop", (asyncio.Queue,)),
    (
        "a lock of an event loop",
        (asyncio.Lock, asyncio.Event, asyncio.Condition, asyncio.Semaphore, asyncio.Barrier),
    ),
    (
        "a lock",
        (
            type(threading.Lock()),
            type(threading.RLock()),
            threading.Event,
            threading.Condition,
            threading.Semaphore,
            threading.Barrier,
        ),
    ),
    # Its number would be that of another file there, which it closes in the end.
    ("a connection between processes", (Connection,)),
    ("a Spark session", (SparkSession, SparkContext)),
    ("a DataFrame or RDD, which only the driver can use", (DataFrame, RDD)),
    (
        "an object of Spark's JVM, which only the driver can use",
        (JavaObject, JavaClass, JavaPackage, JVMView, JavaGateway),
    ),
)
WITH_A_JOB: Final[Kinds] = (
    ("a broadcast variable, which only Spark's own jobs have: pass its value instead", (Broadcast,)),
)
"""The types that workers have only of the job in which they were pickled."""


class _Checker(_Pickler):
    """Pickles by value, refuses objects that only make sense in this process, and keeps the main module's classes."""

    def __init__(self, refused: Kinds) -> None:
        super().__init__(io.BytesIO())
        self.refused = refused
        self.main_classes: dict[type[Any], None] = {}

    def persistent_id(self, value: object) -> str | None:
        """Look at each thing that is about to be pickled."""
        for words, kinds in self.refused:
            if isinstance(value, kinds):
                raise TypeError(f"it captures {words} ({type(value).__qualname__})")
        if isinstance(value, type) and value.__module__ == MAIN:
            self.main_classes[value] = None
        # Pickled in earnest it would go along with the next job of this thread, whosoever that is.
        return "a broadcast variable" if isinstance(value, Broadcast) else None


def check_portable(stage: object, travels: object, *, resident: bool = False) -> dict[type[Any], None]:
    """Raise for a stage that can't be sent to Spark's workers. ``resident`` workers get stages without a job.

    Return the classes of the main module that are among the parts.
    """
    checker = _Checker(BOUND_HERE + WITH_A_JOB if resident else BOUND_HERE)
    try:
        checker.dump(travels)
    except Exception as error:
        raise UnsupportedOnSparkError(
            f"{stage}, can't be sent to Spark's workers: {text_of(error) or type(error).__name__}. Remove the object that can't be pickled from its "
            "function, or run it in this process, with .publish_on(schedulers.current()) before it"
        ) from error
    return checker.main_classes


def main_classes(sources: Iterable[FromSpark]) -> MainClasses:
    """Return the classes of the main module that come with the stages of sources; raises where they can't be sent."""
    found: dict[type[Any], None] = {}
    for source in sources:
        for stage in (*source.stages, source.reading):
            found |= check_portable(stage, stage)
    return MainClasses(tuple(found))


def check_importable(method: str, variables: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Raise for context variables of the main module, which is another one in the workers."""
    for each in variables:
        if each.place[0] in {"__main__", "__mp_main__"}:
            raise UnsupportedOnSparkError(
                f"{method}(context=...): {each.variable.name!r} is a global of the main module, which Spark's workers "
                "can't import. Define it in another module"
            )
    return variables
