"""Exceptions as data, between Spark's workers and the loop.

Spark itself reports a failed task as text. So a region catches what a user's function raises and sends the
exception, so that it arrives with its own type, arguments and notes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._core.notes import add_note
from ..._remote import failures, partial
from .pickling import dumps_by_value

if TYPE_CHECKING:
    from ..._remote.frames import Frame


def pack(error: BaseException, where: str, locate: Callable[[BaseException], object] | None = None) -> bytes:
    """Pack an exception caught by the caller. ``where`` is the place in words, ``locate`` adds the operator."""
    return failures.pack(error, where, locate, dumps_by_value)


def loaded(frame: Frame) -> tuple[list[Any], BaseException | None]:
    """Unpickle the elements of a frame, up to the first one that fails. A note on its error says where that was."""
    items, failure = partial.loaded(frame)
    if failure is not None:
        add_note(failure, "while elements that came from Spark were unpickled")
    return items, failure
