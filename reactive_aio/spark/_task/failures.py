"""Exceptions as data, between Spark's workers and the loop.

Spark itself reports a failed task as text. So a region catches what a user's function raises and sends the
exception, so that it arrives with its own type, arguments and notes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..._core.notes import add_note
from ..._remote import failures, partial
from .pickling import dumps_by_value

if TYPE_CHECKING:
    from ..._remote.frames import Frame


ADVICE: Final = (
    "Spark's workers run a Python that lacks this module. By default that is the `python3` that the shell finds, and not the one of the driver. "
    "Set PYSPARK_PYTHON to a Python that has the module, before the session starts. A module of your own you can send by addPyFile()"
)


def not_unpickled(error: BaseException, what: str) -> None:
    """Note that a task could not unpickle something, and what to do about it if a module is missing."""
    add_note(error, f"while {what} was unpickled in a worker")
    if isinstance(error, ModuleNotFoundError):
        add_note(error, ADVICE)


def pack(error: BaseException, where: str, locate: Callable[[BaseException], object] | None = None) -> bytes:
    """Pack an exception caught by the caller. ``where`` is the place in words, ``locate`` adds the operator."""
    return failures.pack(error, where, locate, dumps_by_value)


def loaded(frame: Frame) -> tuple[list[Any], BaseException | None]:
    """Unpickle the elements of a frame, up to the first one that fails. A note on its error says where that was."""
    items, failure = partial.loaded(frame)
    if failure is not None:
        add_note(failure, "while elements that came from Spark were unpickled")
    return items, failure
