"""The meaning of equal and less for keys, the same on every engine.

Keys are equal where Python says so (``1 == True == 1.0``, ``0.0 == -0.0``), and any NaN equals any other. A key that is
sorted or sent to a worker is encoded as bytes. The bytes of two keys are equal if the keys are equal. They are less if
the key is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Number
from typing import Any, Final, TypeGuard
from uuid import UUID

from attrs import frozen

from ..._fusion import label

NAN: Final = math.nan
"""Stands for any NaN, which would be a key of its own each time."""

PLAIN: Final = frozenset({bool, bytes, int, str, type(None)})
"""Types whose values are found again as they are."""

NONE, NUMBER, TEXT, BYTES, DAY, MOMENT, INSTANT, CLOCK, SPAN, IDENTITY, TUPLE = (bytes((n,)) for n in range(1, 12))
"""The beginning of a key: None comes first, then values in this order of types, since Python can't compare across types."""

FIRST_DAY: Final = datetime(1, 1, 1)
MICROSECOND: Final = timedelta(microseconds=1)
MIDDLE: Final = 1 << 31
"""Added to exponents, so that they are above zero."""
FARTHEST: Final = 1 << 63
"""The same for exponents that don't fit into four bytes, as those of a few Decimals."""
OTHER_WAY: Final = bytes(255 - n for n in range(256))
"""Turns bytes into those that are in the opposite order."""


@frozen
class Instant:
    """Stands for any time with an offset.

    Python compares two of one time zone by what the clock shows. By that, two hours would be one when clocks are set back.
    """

    since: timedelta


def hashed(key: Any) -> Any:
    """Return a key for a dict. Equal keys are the same key there.

    >>> hashed(float("nan")) is hashed(float("nan"))
    True
    """
    if type(key) in PLAIN:
        return key
    if _is_tuple(key):
        return tuple(map(hashed, key))
    if isinstance(key, float):
        return NAN if math.isnan(key) else key
    if isinstance(key, Decimal):
        return NAN if key.is_nan() else key
    if isinstance(key, datetime):  # pandas' NaT is one too, which can't tell its offset
        return key if _unequal(key) or (instant := _instant(key)) is None else Instant(instant)
    return NAN if isinstance(key, Number) and _unequal(key) else key  # complex numbers, and those of numpy


def in_bytes(key: Any) -> bytes:
    """Return the bytes to compare a key by. Raise TypeError unless it is a scalar or a tuple of scalars.

    >>> in_bytes(1) == in_bytes(True) == in_bytes(1.0), in_bytes(-2) < in_bytes(-1.5) < in_bytes(10)
    (True, True)
    >>> in_bytes(("a", 2)) < in_bytes(("a", 10)) < in_bytes(("ab", 1))
    True
    """
    if key is None:
        return NONE
    hint = ""
    for kind, write in KINDS:
        if isinstance(key, kind):
            if type(key) is kind or kind not in EXACT:
                return write(key)
            hint = f". Convert it to a {kind.__name__} of Python's datetime"
            break
    raise TypeError(
        f"{label(key)} can't be a key that is sorted or sent to Spark. A key is a number, text, bytes, date, time, timedelta, UUID, "
        f"None or a tuple of these, not {type(key).__name__}{hint}"
    )


def _is_tuple(key: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(key, tuple)


def _unequal(key: object) -> bool:
    return bool(key != key)  # noqa: PLR0124 - so NaN and NaT can be told


def _text(key: str) -> bytes:
    return TEXT + key.encode("utf-8", "surrogatepass")


def _whole(key: int) -> bytes:
    try:
        digits = str(abs(key))
    except ValueError:  # Python writes no more than some thousand digits so
        return _decimal(Decimal(key))
    return _number(key < 0, digits, len(digits) - 1)


def _float(key: float) -> bytes:
    return _whole(int(key)) if key.is_integer() and abs(key) < 1e15 else _decimal(Decimal(key))


def _decimal(key: Decimal) -> bytes:
    if key.is_nan():
        return NUMBER + b"\x03"
    sign, digits, exponent = key.as_tuple()
    if isinstance(exponent, str):
        return NUMBER + (b"\x00" + b"\x00" * 5 if sign else b"\x02" + b"\xff" * 5)
    text = "".join(map(str, digits)).lstrip("0")
    return _number(bool(sign), text, len(text) - 1 + exponent)


def _number(negative: bool, digits: str, exponent: int) -> bytes:
    """Write a number as sign, digits and power of ten: the same for all types of numbers."""
    digits = digits.rstrip("0")
    if not digits:
        return NUMBER + b"\x01"
    size = _exponent(exponent) + digits.encode()
    # Of two negative numbers the one with more digits is less, so something follows that is more than any digit turned round.
    return NUMBER + (b"\x00" + size.translate(OTHER_WAY) + b"\xff" if negative else b"\x02" + size)


def _exponent(exponent: int) -> bytes:
    """Write a power of ten as four bytes. The first and the last of these stand before eight, for those beyond."""
    if -MIDDLE < exponent < MIDDLE - 1:
        return (exponent + MIDDLE).to_bytes(4)
    return (b"\x00" if exponent < 0 else b"\xff") * 4 + (exponent + FARTHEST).to_bytes(8)


def _moment(key: datetime) -> bytes:
    instant = _instant(key)
    return MOMENT + _whole(_shown(key) // MICROSECOND) if instant is None else INSTANT + _whole(instant // MICROSECOND)


def _shown(key: datetime) -> timedelta:
    return key.replace(tzinfo=None, fold=0) - FIRST_DAY


def _instant(key: datetime) -> timedelta | None:
    """Return the time since the first day for a time with an offset, else None."""
    offset = key.utcoffset()
    return None if offset is None else _shown(key) - offset


def _clock(key: time) -> bytes:
    if key.utcoffset() is not None:
        raise TypeError(
            f"{label(key)} can't be a key that is sorted or sent to Spark: it is a time of day with an offset"
        )
    return CLOCK + key.isoformat("microseconds").encode()


def _tuple(key: tuple[Any, ...]) -> bytes:
    return TUPLE + b"".join(in_bytes(part).replace(b"\x00", b"\x00\xff") + b"\x00" for part in key)


KINDS: Final[tuple[tuple[type[Any], Callable[[Any], bytes]], ...]] = (
    (str, _text),
    (int, _whole),
    (float, _float),
    (tuple, _tuple),
    (Decimal, _decimal),
    (bytes, lambda key: BYTES + key),
    (datetime, _moment),
    (date, lambda key: DAY + key.isoformat().encode()),
    (time, _clock),
    (timedelta, lambda key: SPAN + _whole(key // MICROSECOND)),
    (UUID, lambda key: IDENTITY + key.bytes),
)
"""The kinds of keys. A datetime is a date as well, and a bool an int."""
EXACT: Final = frozenset({datetime, date, time, timedelta})
"""Types whose subclasses are refused: they may be finer than the bytes, as those of pandas, which have nanoseconds."""
