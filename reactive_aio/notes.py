"""What is said beside an exception: notes on where it was raised, and which one led to it.

It must not come to replace the exception. There are classes of which nothing can be set, frozen dataclasses for one, and
Python's own ``add_note`` raises for them.
"""

from __future__ import annotations


def notes_of(error: BaseException) -> list[str]:
    """Give the notes of an exception."""
    notes: list[object] | None = getattr(error, "__notes__", None)  # or whatever somebody has set
    return list(map(str, notes)) if isinstance(notes, list) else []


def add_note(error: BaseException, note: str) -> None:
    """Add a note that is not there yet: one error may fail in one place any number of times, when a flow is retried."""
    notes = notes_of(error)
    if note not in notes:
        set_notes(error, [*notes, note])


def set_notes(error: BaseException, notes: list[str]) -> None:
    """Give an exception these notes and no others."""
    BaseException.__setattr__(error, "__notes__", notes)


def set_cause(error: BaseException, cause: BaseException) -> None:
    """Say which exception was the reason of this one."""
    BaseException.__setattr__(error, "__cause__", cause)


def set_context(error: BaseException, context: BaseException | None) -> None:
    """Say which exception was being handled when this one was raised."""
    BaseException.__setattr__(error, "__context__", context)
