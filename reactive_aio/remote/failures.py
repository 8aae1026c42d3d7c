"""Exceptions as data: packed where they were raised, unpacked where the subscriber is.

So an exception arrives with its own type, arguments and notes. What can't be pickled is stood in for.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

from ..errors import RemoteError
from .pickling import dumps_by_value

Packed = tuple[bytes | None, str, list[str], str]
"""The pickled exception, its type and message in a line, its notes, the traceback where it was raised."""

ByValue = Callable[[Any], bytes]


def pack(
    error: BaseException,
    where: str,
    locate: Callable[[Exception], None] | None = None,
    by_value: ByValue = dumps_by_value,
) -> bytes:
    """Pack an exception caught by the caller; ``where`` is the place in words, ``locate`` adds the operator."""
    trace = error.__traceback__
    below = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    text = "".join(traceback.format_exception(type(error), error, below)).rstrip()
    if locate is not None and isinstance(error, Exception):
        locate(error)
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    packed: Packed = (_pickled(error, by_value), _summary(error), notes, f"traceback in {where}:\n{text}")
    return pickle.dumps(packed)


def unpack(data: bytes | bytearray) -> BaseException:
    """Give the exception again, with the traceback where it was raised as its last note."""
    packed: Packed = pickle.loads(data)
    pickled, summary, notes, trace = packed
    error: BaseException | None = None
    if pickled is not None:
        try:
            error = pickle.loads(pickled)
        except Exception as failure:
            notes.append(f"it could not be unpickled here: {failure!r}")
    if error is None:
        error = RemoteError(summary)
    # Set anew: a class with a __reduce__ of its own loses its notes on the way.
    error.__notes__ = [*notes, trace]
    return error


def _summary(error: BaseException) -> str:
    text = str(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def _pickled(error: BaseException, by_value: ByValue) -> bytes | None:
    """Pickle an exception in the first of four ways by which it would come back; None if there is none."""

    def in_parts(dumps: ByValue) -> ByValue:
        return lambda error: dumps(_Parts(error))

    ways: tuple[ByValue, ...] = (pickle.dumps, by_value, in_parts(pickle.dumps), in_parts(by_value))
    for way in ways:
        try:
            data = way(error)
            if type(pickle.loads(data)) is type(error):
                return data
        except Exception:  # whatever a class does when it is pickled
            continue
    return None


class _Parts:
    """Becomes the exception when it is unpickled: by parts, for the many that can't be called with what they keep."""

    def __init__(self, error: Any) -> None:
        self.error: BaseException = error

    def __reduce__(
        self,
    ) -> tuple[Callable[..., BaseException], tuple[type[BaseException], tuple[object, ...], dict[str, object]]]:
        return _revived, (type(self.error), self.error.args, dict(vars(self.error)))


def _revived(kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error
