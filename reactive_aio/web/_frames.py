"""The frames of the protocol ``reactive-streams.v1``: JSON texts, checked before anything is done with them."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from attrs import frozen

PROTOCOL: Final = "reactive-streams.v1"
LARGEST: Final = 2**53 - 1
"""The largest number of a frame, which is the largest whole number of JavaScript."""

FIELDS: Final[dict[str, dict[str, type[object]]]] = {
    "subscribe": {"id": int, "stream": str, "n": int},
    "request": {"id": int, "n": int},
    "cancel": {"id": int},
    "next": {"id": int, "item": object},
    "complete": {"id": int},
    "error": {"id": int, "message": str},
}
"""The fields that each type of frame has to have, and what they are; an object stands for any JSON value."""


class FrameError(ValueError):
    """A frame that is none of the protocol's: the connection is closed."""


@frozen
class Frame:
    """One frame, of either side."""

    type: str
    id: int
    """Which subscription it is about, by the number that the subscriber has given it."""
    n: int = 0
    stream: str = ""
    args: Any = None
    item: Any = None
    message: str = ""


def read_frame(text: str) -> Frame:
    """Return the frame that a text stands for; raise FrameError for one that is none."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("a frame is a JSON object") from None
    if not isinstance(value, dict):
        raise FrameError("a frame is a JSON object")
    found = cast("dict[str, Any]", value)
    kind = found.get("type")
    wanted = FIELDS.get(kind) if isinstance(kind, str) else None
    if not isinstance(kind, str) or wanted is None:
        raise FrameError(f"the type of a frame is one of {', '.join(FIELDS)}")
    for name, what in wanted.items():
        if name not in found or (what is not object and type(found[name]) is not what):  # a bool is no number here
            raise FrameError(f"a frame of type {kind} has the field {name}, which is {what.__name__}")
    if not 0 < found["id"] <= LARGEST:
        raise FrameError("an id is a number from 1 to 2**53 - 1")
    fields = {name: found[name] for name in (*wanted, "args") if name in found}
    return Frame(kind, **fields)


def write_frame(**fields: object) -> str:
    """Return the text of a frame; raise what `json.dumps` raises for an item that is no JSON."""
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))
