"""Exceptions as data: packed in a worker, unpacked where the subscriber is.

Spark itself reports a failed task as text. So a region catches what a user's function raises and sends the
exception, so that it arrives with its own type, arguments and notes. What can't be pickled is stood in for.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable

from ..errors import RemoteError
from .pickling import dumps_by_value

Packed = tuple[bytes | None, str, list[str], str]
"""The pickled exception, its type and message in a line, its notes, the traceback in the worker."""


def pack(error: Exception, where: str, locate: Callable[[Exception], None]) -> bytes:
    """Pack an exception caught by the caller; ``where`` is the place in words, ``locate`` adds the operator."""
    trace = error.__traceback__
    below = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    text = "".join(traceback.format_exception(type(error), error, below)).rstrip()
    locate(error)
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    packed: Packed = (_pickled(error), _summary(error), notes, f"traceback in {where}:\n{text}")
    return pickle.dumps(packed)


def unpack(data: bytes) -> Exception:
    """Give the exception again, with the traceback in the worker as its last note."""
    packed: Packed = pickle.loads(data)
    pickled, summary, notes, trace = packed
    error: Exception | None = None
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


def _summary(error: Exception) -> str:
    text = str(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def _pickled(error: Exception) -> bytes | None:
    """Pickle an exception in the first of three ways by which it would come back; None if there is none."""
    for dumps in (pickle.dumps, dumps_by_value, _dumps_parts):
        try:
            data = dumps(error)
            if type(pickle.loads(data)) is type(error):
                return data
        except Exception:  # whatever a class does when it is pickled
            continue
    return None


def _dumps_parts(error: Exception) -> bytes:
    """Pickle by parts, for the many classes that can't be called with the arguments they pass on."""
    return dumps_by_value(_Parts(error))


class _Parts:
    """Becomes the exception when it is unpickled."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(
        self,
    ) -> tuple[Callable[..., Exception], tuple[type[Exception], tuple[object, ...], dict[str, object]]]:
        return _revived, (type(self.error), self.error.args, dict(vars(self.error)))


def _revived(kind: type[Exception], args: tuple[object, ...], state: dict[str, object]) -> Exception:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error
