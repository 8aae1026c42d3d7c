"""Notes beside an exception: where it was raised, and which one led to it.

It must not come to replace the exception, so nothing here raises. Some classes let no attribute be set, as frozen
dataclasses and the exceptions of Java. Others raise when an attribute is read. Such an exception arrives without what
could not be said.
"""

from __future__ import annotations

from typing import Any, Final

# As Python itself keeps them, whatever the class makes of these names.
_CAUSE: Final[Any] = vars(BaseException)["__cause__"]
_CONTEXT: Final[Any] = vars(BaseException)["__context__"]


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an exception."""
    try:
        notes: list[object] | None = getattr(error, "__notes__", None)  # or whatever somebody has set
        return [_text(note) for note in notes] if isinstance(notes, list) else []
    except BaseException:
        return []


def _text(note: object) -> str:
    try:
        return str(note)
    except BaseException:
        return "<note str() failed>"  # as Python shows it


def add_note(error: BaseException, note: str) -> None:
    """Add a note that is not there yet: one error may fail in one place any number of times, when a flow is retried."""
    notes = notes_of(error)
    if note not in notes:
        set_notes(error, [*notes, note])


def set_notes(error: BaseException, notes: list[str]) -> None:
    """Set the notes of an exception to these."""
    try:
        BaseException.__setattr__(error, "__notes__", notes)
    except BaseException:
        return  # of a class that lets no attribute be set


def set_cause(error: BaseException, cause: BaseException) -> None:
    """Set the reason of this exception, unless it has one or that would make a circle."""
    _link(_CAUSE, error, cause)


def set_context(error: BaseException, context: BaseException) -> None:
    """Set the exception that was being handled when this one was raised, on the same terms as `set_cause`."""
    _link(_CONTEXT, error, context)


def root_of(error: BaseException) -> BaseException:
    """Return the first exception of those that led to this one: itself if none did."""
    before = next((each for slot in (_CAUSE, _CONTEXT) if (each := slot.__get__(error)) is not None), None)
    return error if before is None else root_of(before)


def _link(slot: Any, error: BaseException, before: BaseException) -> None:
    if slot.__get__(error) is None and not _leads_to(before, error):
        slot.__set__(error, before)


def _leads_to(start: BaseException, error: BaseException) -> bool:
    """Return whether the causes and contexts of ``start`` lead back to ``error``."""
    seen: set[int] = set()
    ahead = [start]
    while ahead:
        each = ahead.pop()
        if each is error:
            return True
        if id(each) not in seen:
            seen.add(id(each))
            ahead.extend(before for slot in (_CAUSE, _CONTEXT) if (before := slot.__get__(each)) is not None)
    return False
