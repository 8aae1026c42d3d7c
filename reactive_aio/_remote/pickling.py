"""Pickling for another process: by reference if it can import the object, else by value.

Functions at the top level of a module travel by name. Lambdas, local functions and what was defined in an interactive
session can't be imported anywhere else. They travel by value, by cloudpickle, where that is installed (PySpark brings
it too).
"""

from __future__ import annotations

import copyreg
import pickle
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from attrs import define

from .._core.guard import FAILURES
from .columns import reducers

LARGE: Final = 16_384
"""Bytes of an array, or of an Arrow buffer, that travel beside the pickle rather than in it."""

MAIN: Final = "__main__"
ARROW: Final = "pyarrow"

Buffers = list[pickle.PickleBuffer]
Pieces = list[bytes]
"""A pickle as it was written, in pieces. Python writes large bytes uncopied, each as its own piece."""
Dumps = Callable[[object, Buffers], Pieces]


def dumps(value: object, buffers: Buffers | None = None) -> bytes:
    """Pickle a value in one piece.

    Large buffers in it, such as those of numpy and Arrow, are appended to ``buffers``.
    """
    return b"".join(dumps_in_pieces(value, buffers))


def dumps_in_pieces(value: object, buffers: Buffers | None = None) -> Pieces:
    """Pickle a value without copying its large parts."""
    first = len(buffers) if buffers is not None else 0
    by_value = None
    try:
        # A name of an interactive session can't be imported anywhere.
        return by_reference(value, buffers, main=has_main())
    except NotImportableError:
        if (by_value := by_value_dumps()) is None:
            return by_reference(value, buffers)
    except Exception:  # whatever a class does when it is pickled
        by_value = by_value_dumps()
        if by_value is None:
            raise
    if buffers is None:
        return [by_value(value, protocol=5)]
    del buffers[first:]
    return [by_value(value, protocol=5, buffer_callback=aside(buffers))]


def by_reference(value: object, buffers: Buffers | None, *, main: bool = True) -> Pieces:
    """Pickle a value whose classes can all be imported; objects of Arrow's as it pickles columns.

    Raises NotImportableError if something is of the main module, unless the other side has that (``main``).
    """
    written = _Written()
    callback = None if buffers is None else aside(buffers)
    pickler = pickle.Pickler(written, 5, buffer_callback=callback)
    if not main:
        pickler = _NoMain(written, 5, buffer_callback=callback)
        pickler.has = _has_none
    # Where nobody has imported it, nothing is Arrow's.
    if buffers is not None and sys.modules.get(ARROW) is not None:
        pickler.dispatch_table = {**copyreg.dispatch_table, **reducers()}
    pickler.dump(value)
    return written


class ByReference:
    """Pickles small values one after another, and refuses what belongs to the main module, but for some classes."""

    __slots__ = ("_pickler", "_written")

    def __init__(self, has: Callable[[type[Any]], bool]) -> None:
        self._written = _Written()
        self._pickler = _NoMain(self._written, 5)
        self._pickler.has = has

    def __call__(self, value: object) -> bytes:
        """Pickle a value, or raise what `by_reference` raises. A pickler that is there already takes a fraction of the time."""
        self._written.clear()
        self._pickler.clear_memo()
        self._pickler.dump(value)
        return b"".join(self._written)


class _Written(list[bytes]):
    """The file of a pickler, which keeps the written pieces as they are."""

    def write(self, data: Any) -> None:
        self.append(bytes(data))  # which copies what may change


class NotImportableError(TypeError):
    """There is something of the main module, which the other side can't import."""

    def __init__(self) -> None:
        super().__init__("it was defined in an interactive session, which no other process can import")


class _NoMain(pickle.Pickler):
    """Refuses what belongs to the main module, but for classes that the other side has."""

    has: Callable[[type[Any]], bool]

    def reducer_override(self, value: Any) -> Any:
        if getattr(value, "__module__", None) == MAIN and not self.has(
            value if isinstance(value, type) else type(value)
        ):
            raise NotImportableError
        return NotImplemented


def _has_none(_: type[Any]) -> bool:
    return False


def aside(buffers: Buffers) -> Callable[[pickle.PickleBuffer], bool]:
    """Return the buffer callback of a pickler: it appends large buffers to ``buffers``, and keeps small ones inside."""

    def keep(buffer: pickle.PickleBuffer) -> bool:
        try:
            large = buffer.raw().nbytes >= LARGE
        except BufferError:  # not contiguous
            return True
        if large:
            buffers.append(buffer)
        return not large

    return keep


@define(eq=False)
class Parcel:
    """A list of elements, pickled as far as that can be."""

    count: int
    """The elements that are in it."""
    pickled: bytes
    more: Pieces
    """The rest of the pickle, where it comes in several pieces."""
    buffers: Buffers
    failure: BaseException | None
    """The error of pickling the next one."""

    @staticmethod
    def of(items: list[Any], dumps: Dumps) -> Parcel:
        """Pickle all, or else those before the first that can't be pickled."""
        buffers: Buffers = []
        try:
            pickled, *more = dumps(items, buffers)
        except FAILURES as error:
            return _before(items, dumps, error)
        return Parcel(len(items), pickled, more, buffers, None)


def _before(items: list[Any], dumps: Dumps, failure: BaseException) -> Parcel:
    """Pickle the elements before the first that can't be pickled."""
    items, buffers = picklable(items, dumps), Buffers()
    try:
        pickled, *more = dumps(items, buffers)
    except FAILURES:  # of what can be pickled now and then; the first failure is as good as this one
        items, buffers, (pickled, *more) = [], [], dumps([], [])
    return Parcel(len(items), pickled, more, buffers, failure)


def picklable(items: list[Any], dumps: Dumps) -> list[Any]:
    """Return the elements before the first that can't be pickled."""
    for at, item in enumerate(items):
        try:
            dumps([item], [])
        except FAILURES:
            return items[:at]
    return items


def dumps_by_value(value: object) -> bytes:
    """Pickle a value, and by value the objects in it that can't be imported. Raise if nothing can do that."""
    by_value = by_value_dumps()
    if by_value is None:
        raise pickle.PicklingError("cloudpickle is not installed")
    return by_value(value)


@cache
def by_value_dumps() -> Callable[..., bytes] | None:
    """Return ``cloudpickle.dumps``, or None if cloudpickle is not installed."""
    for package in ("cloudpickle", "pyspark"):
        if find_spec(package) is not None:
            found: Any = import_module("cloudpickle" if package == "cloudpickle" else "pyspark.cloudpickle")
            found_dumps: Callable[..., bytes] = found.dumps
            return found_dumps
    return None


def has_main() -> bool:
    """Return whether other processes can import the main module."""
    main = sys.modules.get(MAIN)
    return _is_module(getattr(getattr(main, "__spec__", None), "name", None), getattr(main, "__file__", None))


@cache
def _is_module(name: str | None, path: str | None) -> bool:
    """Cache the answer of the file system, because it is needed for each chunk."""
    return main_module() != ("", "")


def main_module() -> tuple[str, str]:
    """Return the name of the main module, if it was run as a module, or else its path.

    Without a main module they are two empty strings.
    """
    main = sys.modules.get(MAIN)
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != MAIN:
        return (spec.name, "")
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        return ("", "")
    return ("", str(Path(path).absolute()))
