"""Pickling for Spark's workers and in them: neither side imports the other's main module.

PySpark's cloudpickle does it by value. A class that comes back is recognized and stays the class it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from pyspark import cloudpickle as _untyped

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._remote.pickling import Buffers, Pieces, aside, by_reference
from ..._remote.variables import Values

_cloudpickle: Any = _untyped

P = ParamSpec("P")
T = TypeVar("T")


def dumps(value: object, buffers: Buffers) -> Pieces:
    """Pickle elements: by value what belongs to the main module, or can't be imported at all."""
    first = len(buffers)
    try:
        return by_reference(value, buffers, main=False)
    except FAILURES:  # it is of the main module, or whatever a class does when it is pickled
        del buffers[first:]
    return [_cloudpickle.dumps(value, protocol=5, buffer_callback=aside(buffers))]


class NotPickled(Exception):  # noqa: N818 - it stands for one of the user's
    """Marks, among the failures of Spark's own calls, an exception of pickling a user's value."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def of_user(pickle: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Pickle objects of the user. Raise NotPickled from an exception of that."""
    try:
        return pickle(*args, **kwargs)
    except FAILURES as error:
        raise NotPickled(error) from error


def dumps_by_value(value: object) -> bytes:
    """Pickle a value, and by value what it refers to and can't be imported."""
    data: bytes = _cloudpickle.dumps(value)
    return data


class WithBroadcasts(bytes):
    """Pickled work of the user, with the broadcast variables that it refers to.

    Spark passes to a task the variables that are pickled with its function. They go along here as objects, so that each
    function with this work has them, and not only the first one.
    """

    shared: tuple[Any, ...]

    @classmethod
    def of(cls, data: bytes, shared: tuple[Any, ...]) -> Self:
        """Add variables to a pickle."""
        made = cls(data)
        made.shared = shared
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (bytes(self), self.shared)


def dumps_for_jobs(value: object) -> bytes:
    """Pickle by value, on the driver, what any number of jobs of this thread are to have."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # pyright: ignore[reportPrivateUsage] - where pickled variables register
    if context is None:  # a session of Spark Connect, which has no broadcast variables
        return dumps_by_value(value)
    known = context._pickled_broadcast_vars  # pyright: ignore[reportPrivateUsage] - of this thread
    others = tuple(known)
    known.clear()
    try:
        data = dumps_by_value(value)
        found = tuple(known)
    finally:
        known.clear()
        for each in others:
            known.add(each)
    return WithBroadcasts.of(data, found) if found else data


def note_values(error: BaseException, values: Values) -> None:
    """Note on a failure of pickling which context variables have a value that can't be pickled."""
    for place, value in values:
        try:
            dumps_for_jobs(value)
        except FAILURES:
            kind = type(value).__name__
            add_note(
                error, f"the context variable {'.'.join(place)} has a value of type {kind}, which can't be pickled"
            )
