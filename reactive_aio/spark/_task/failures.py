"""Exceptions as data, between Spark's workers and the loop.

Spark itself reports a failed task as text. So a region catches what a user's function raises and sends the
exception, so that it arrives with its own type, arguments and notes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._remote import failures
from .pickling import dumps_by_value

if TYPE_CHECKING:
    from ..._remote.frames import Frame


def pack(error: BaseException, where: str, locate: Callable[[BaseException], object] | None = None) -> bytes:
    """Pack an exception caught by the caller; ``where`` is the place in words, ``locate`` adds the operator."""
    return failures.pack(error, where, locate, dumps_by_value)


def loaded(frame: Frame) -> list[Any]:
    """Unpickle the elements of a frame; what their classes raise there says where it was."""
    try:
        items: list[Any] = frame.loads()
    except FAILURES as error:
        add_note(error, "while elements that came from Spark were unpickled")
        raise
    return items
