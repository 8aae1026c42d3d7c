"""The frames of the protocol ``reactive-streams.v1``: JSON texts and binary elements, checked before anything is done with them."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final, NoReturn, cast

from attrs import field, frozen

PROTOCOL: Final = "reactive-streams.v1"
LARGEST: Final = 2**53 - 1
"""The largest number of a frame, which is the largest whole number of JavaScript."""

SHORTEST: Final = 1024
"""Bytes of a frame that every side takes, so that the protocol's own frames have room."""
LEAST: Final = {"id": 1, "frame": SHORTEST, "credit": 1}
"""The fields whose numbers have bounds."""

Message = str | bytes
"""A WebSocket message, of type text or binary."""

FIELDS: Final[dict[str, dict[str, type[object]]]] = {
    "limits": {},
    "subscribe": {"id": int, "stream": str, "n": int},
    "request": {"id": int, "n": int},
    "cancel": {"id": int},
    "next": {"id": int, "item": object},
    "complete": {"id": int},
    "error": {"id": int, "message": str},
}
"""The required fields of each type of frame, and their types. ``object`` stands for any JSON value."""

MAY_HAVE: Final[dict[str, dict[str, type[object]]]] = {
    "limits": {"frame": int, "credit": int},
    "subscribe": {"args": object},
}
"""The fields that may be missing."""

WORDS: Final[dict[type[object], str]] = {int: "a whole number", str: "a text", object: "any value"}
ID_BYTES: Final = 8
"""The number of bytes of the id in a binary frame."""


class FrameError(ValueError):
    """A frame that the protocol does not have. The connection is closed."""

    code: ClassVar[int] = 1002


class FrameTooLongError(FrameError):
    """A frame that is longer than the declared limit."""

    code: ClassVar[int] = 1009


@frozen
class Frame:
    """One frame, of either side."""

    type: str
    id: int = 0
    """The number of its subscription, which the subscriber has chosen."""
    n: int = 0
    stream: str = ""
    args: Any = field(default=None, repr=False)
    item: Any = field(default=None, repr=False)
    message: str = ""
    frame: int = LARGEST
    credit: int = LARGEST


def size_of(message: Message) -> int:
    """Return the number of bytes of a message, as it is sent."""
    if isinstance(message, bytes) or message.isascii():
        return len(message)
    return len(message.encode("utf-8", "surrogatepass"))


def read_frame(message: Message) -> Frame:
    """Return the frame of a message. Raise FrameError if it is not a frame."""
    if isinstance(message, bytes):
        return binary_frame(message)
    try:
        value: object = json.loads(message, parse_constant=no_json)
    except (ValueError, RecursionError):
        raise FrameError("a frame is a JSON object") from None
    if not isinstance(value, dict):
        raise FrameError("a frame is a JSON object")
    found = cast("dict[str, Any]", value)
    kind = found.get("type")
    wanted = FIELDS.get(kind) if isinstance(kind, str) else None
    if not isinstance(kind, str) or wanted is None:
        raise FrameError(f"the type of a frame must be one of {', '.join(FIELDS)}")
    allowed = wanted | MAY_HAVE.get(kind, {})
    fields = {name: checked(kind, name, found[name], what) for name, what in allowed.items() if name in found}
    for name, what in wanted.items():
        if name not in fields:
            raise FrameError(f"a frame of type {kind} needs the field {name}, which must be {WORDS[what]}")
    for name, least in LEAST.items():
        if name in fields and not least <= fields[name] <= LARGEST:
            raise FrameError(f"the field {name} must be a number from {least} to 2**53 - 1")
    return Frame(kind, **fields)


def no_json(name: str) -> NoReturn:
    """Raise for NaN and the infinities, which Python's reader would accept."""
    raise ValueError(f"{name} is not JSON")


def checked(kind: str, name: str, value: Any, what: type[object]) -> Any:
    """Return the value of a field. Raise FrameError if it has another type."""
    if what is int and type(value) is float and value.is_integer():
        return int(value)  # JSON has one type of number, and some write 1.0 for 1
    if what is not object and type(value) is not what:  # a bool is no number here
        raise FrameError(f"the field {name} of a frame of type {kind} must be {WORDS[what]}")
    return value


def binary_frame(message: bytes) -> Frame:
    """Return the bytes of a binary message after its id."""
    number = int.from_bytes(message[:ID_BYTES], "big")
    if len(message) < ID_BYTES or not 0 < number <= LARGEST:
        raise FrameError("a binary frame must begin with its id in eight bytes, a number from 1 to 2**53 - 1")
    return Frame("next", number, item=message[ID_BYTES:])


def write_frame(**fields: object) -> str:
    """Return the text of a frame. Raise the error of `json.dumps` for an item that is not JSON."""
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))


def write_element(number: int, item: object) -> Message:
    """Return the frame of an element: binary for bytes, else JSON."""
    if isinstance(item, bytes | bytearray | memoryview):
        return number.to_bytes(ID_BYTES, "big") + bytes(cast("bytes", item))
    return write_frame(type="next", id=number, item=item)
