"""Exceptions as data, between Spark's workers and the loop.

Spark itself reports a failed task as text. So a region catches what a user's function raises and sends the
exception, so that it arrives with its own type, arguments and notes.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable

from ..errors import SourceCancelledError
from ..notes import notes_of, set_notes
from ..remote import failures
from .pickling import dumps_by_value


def pack(error: BaseException, where: str, locate: Callable[[BaseException], object]) -> bytes:
    """Pack an exception caught by the caller; ``where`` is the place in words, ``locate`` adds the operator."""
    return failures.pack(error, where, locate, dumps_by_value)


def unpack(data: bytes) -> Exception:
    """Give the exception again, with the traceback in the worker as its last note."""
    error = failures.unpack(data)
    if isinstance(error, Exception):
        return error
    # It would end the loop, or cancel the subscriber.
    kind = SourceCancelledError if isinstance(error, CancelledError) else RuntimeError
    failure = kind(f"a function of the flow raised {type(error).__name__} in a worker")
    failure.__cause__ = error
    set_notes(failure, notes_of(error))
    return failure
