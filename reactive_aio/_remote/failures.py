"""Exceptions as data: packed where they were raised, unpacked where the subscriber is.

So an exception arrives with its own type, arguments and notes, with the members of its group, and with the one that led
to it. An exception that can't be pickled is replaced by another that names it.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from .._core.guard import FAILURES, brief
from .._core.notes import notes_of, set_cause, set_context, set_notes
from ..errors import RemoteError
from .pickling import dumps_by_value

Packed = tuple[bytes | None, str, list[str], str]
"""The pickled exception, its type and message in a line, its notes, the traceback where it was raised, or an empty text."""

AnyGroup = BaseExceptionGroup[BaseException]
ByValue = Callable[[Any], bytes]

DEEPEST: Final = 8
"""The number of chained exceptions, or members of a group, that are sent. The traceback has all."""
TEXT: Final = 2000
"""Characters of a text of an exception that is too large to be sent."""


def pack(
    error: BaseException,
    where: str,
    locate: Callable[[BaseException], object] | None = None,
    by_value: ByValue = dumps_by_value,
) -> bytes:
    """Pack an exception caught by the caller. ``where`` is the place in words, ``locate`` adds the operator."""
    try:
        if locate is not None:
            locate(error)
        return _packed(error, by_value, DEEPEST, f"traceback in {where}:\n{_trace(error)}")
    except FAILURES:  # whatever a class does when it is looked at
        packed: Packed = (None, type(error).__qualname__, [], f"raised in {where}")
        return pickle.dumps(packed)


def unpack(data: bytes | bytearray) -> BaseException:
    """Restore the exception. Its last note is the traceback of where it was raised."""
    packed: Packed = pickle.loads(data)
    pickled, summary, notes, trace = packed
    error: object = None
    if pickled is not None:
        try:
            error = pickle.loads(pickled)
        except FAILURES as failure:
            notes.append(f"it could not be unpickled here: {brief(failure)}")
    if not isinstance(error, BaseException):
        error = RemoteError(summary)
    # Set anew: a class with a __reduce__ of its own loses its notes on the way.
    set_notes(error, [*notes, trace] if trace else notes)
    return error


def is_whole(data: bytes) -> bool:
    """Return whether the exception itself is packed, and not only its text."""
    packed: Packed = pickle.loads(data)
    return packed[0] is not None


def in_words(data: bytes, why: str) -> bytes:
    """Return a packed exception without the exception itself, and only the beginnings of its texts. A note says why."""
    packed: Packed = pickle.loads(data)
    _, summary, notes, trace = packed
    short: Packed = None, summary[:TEXT], [*(note[:TEXT] for note in notes[-DEEPEST:]), why], trace[:TEXT]
    return pickle.dumps(short)


def _trace(error: BaseException) -> str:
    """Return the traceback below the frame that caught the exception, in words."""
    trace = error.__traceback__
    below = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    try:
        lines = traceback.format_exception(type(error), error, below)
    except FAILURES:  # whatever a class does when it is looked at: Python asks whether it is true
        lines = [*traceback.format_tb(below), brief(error)]
    return "".join(lines).rstrip()


def _packed(error: BaseException, by_value: ByValue, deep: int, trace: str = "") -> bytes:
    packed: Packed = (_pickled(error, by_value, deep), brief(error), notes_of(error), trace)
    return pickle.dumps(packed)


def _pickled(error: BaseException, by_value: ByValue, deep: int) -> bytes | None:
    """Pickle an exception, and the cause that Python would show. Return None if that is impossible."""
    data = _alone(error, by_value, deep)
    is_cause = error.__suppress_context__
    by = error.__cause__ if is_cause else error.__context__
    if data is None or by is None or not deep:
        return data
    return pickle.dumps(_Made(_led, data, _packed(by, by_value, deep - 1), is_cause))


def _alone(error: BaseException, by_value: ByValue, deep: int) -> bytes | None:
    """Pickle an exception in the first of several ways by which it can be restored, or return None."""
    # Many can't be called with what they keep, so they are also taken apart.
    forms: tuple[object, ...] = (error, _Made(_revived, type(error), error.args, vars(error)))
    if _is_group(error):
        # Not as it is: each of its exceptions may be stood in for.
        members = [_packed(each, by_value, deep - 1) for each in error.exceptions if deep]
        forms = (_Made(_grouped, type(error), error.message, members, vars(error)),)
    for form in forms:
        for way in (pickle.dumps, by_value):
            try:
                data = way(form)
                if type(pickle.loads(data)) is type(error):
                    return data
            except FAILURES:  # whatever a class does when it is pickled
                continue
    return None


def _is_group(error: BaseException) -> TypeGuard[AnyGroup]:
    return isinstance(error, BaseExceptionGroup)


class _Made:
    """Becomes what a function makes of its arguments, when it is unpickled."""

    def __init__(self, make: Callable[..., BaseException], *args: object) -> None:
        self.parts = make, args

    def __reduce__(self) -> tuple[Callable[..., BaseException], tuple[object, ...]]:
        return self.parts


def _revived(kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    BaseException.__setattr__(error, "args", args)
    vars(error).update(state)
    return error


def _grouped(kind: type[AnyGroup], message: str, members: list[bytes], state: dict[str, object]) -> BaseException:
    error = BaseExceptionGroup.__new__(kind, message, [unpack(each) for each in members])
    vars(error).update(state)
    return error


def _led(pickled: bytes, packed: bytes, is_cause: bool) -> BaseException:
    error: BaseException = pickle.loads(pickled)
    (set_cause if is_cause else set_context)(error, unpack(packed))
    return error
