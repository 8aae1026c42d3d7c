"""The columns of a source that ``columns=`` names: Spark reads no others, and rows have no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
from attrs import evolve
from pyspark import RDD

from ...errors import UnsupportedOnSparkError
from .._job.asking import asking
from .._source.naming import chosen
from .._source.source import FromSpark
from .._task.batches import reading_of
from .planned import session_of

CALL: Final = "to_frame(columns=...)"


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Check that the argument is a list of different names. Return the names."""
    given: Any = columns
    names: list[Any] = [None] if isinstance(given, str) or not isinstance(given, Sequence) else list(columns)
    if not all(isinstance(each, str) for each in names):
        raise TypeError(f"to_frame(columns={given!r}): a list of the names of columns is needed")
    if len(set(names)) < len(names):
        raise ValueError(f"to_frame(columns={given!r}): a column is named twice")
    return tuple(names)


def with_columns(source: FromSpark, columns: tuple[str, ...]) -> FromSpark:
    """Return a source that has these columns only, in this order."""
    if source.reading is None or isinstance(source.data, RDD):
        raise UnsupportedOnSparkError(f"{CALL}: {source} has no columns. Leave the argument out")
    frame: Any = source.data
    with asking("to_frame", session_of(source)):
        _check(source, source.reading.kind, frame.schema.names, columns)
        frame = chosen(frame, columns)
        return evolve(source, data=frame, reading=reading_of(source.reading.kind, frame.schema))


def _check(source: FromSpark, kind: type[Any], known: list[str], columns: tuple[str, ...]) -> None:
    has = f"{source} has the columns {', '.join(known) or 'none'}"
    if unknown := [each for each in columns if each not in known]:
        raise ValueError(f"{CALL}: there is no column {', '.join(map(repr, unknown))}. {has}")
    if twice := [each for each in columns if known.count(each) > 1]:
        raise ValueError(f"{CALL}: there is more than one column {', '.join(map(repr, twice))}. {has}")
    if not attrs.has(kind):
        return
    fields = [each for each in attrs.fields(kind) if each.init]
    needed = [each.name for each in fields if each.default is attrs.NOTHING and each.name not in columns]
    unread = [each for each in columns if each not in {field.name for field in fields}]
    if needed or unread:
        wrong = f"needs {', '.join(needed)} too" if needed else f"has no field {', '.join(unread)}"
        raise ValueError(
            f"{CALL}: the class {kind.__name__} of {source} {wrong}. "
            "Spark reads the fields of the class alone, so leave the argument out, or choose another class"
        )
