"""Exceptions as data, between Spark's workers and the loop.

Spark itself reports a failed task as text. So a region catches what a user's function raises and sends the
exception, so that it arrives with its own type, arguments and notes.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import RemoteError
from ..remote import failures
from .pickling import dumps_by_value


def pack(error: BaseException, where: str, locate: Callable[[Exception], None]) -> bytes:
    """Pack an exception caught by the caller; ``where`` is the place in words, ``locate`` adds the operator."""
    return failures.pack(error, where, locate, dumps_by_value)


def unpack(data: bytes) -> Exception:
    """Give the exception again, with the traceback in the worker as its last note."""
    error = failures.unpack(data)
    if isinstance(error, Exception):
        return error
    stands_in = RemoteError(repr(error))  # it would end the loop, or cancel the subscriber
    stands_in.__notes__ = error.__notes__
    return stands_in
