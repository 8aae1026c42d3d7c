"""The beginning of a repr, which costs no more than what is shown of it.

A message shows some characters of an element. The whole repr of a list with a million numbers takes the event loop
fifty milliseconds, and that of bytes four times their memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from .redacting import redacted

MOST: Final = 4_000
"""Characters of a repr that are looked at. Nearly all URLs are shorter, so it can be told which parts are secret."""
DEEP: Final = 100
"""Collections in each other whose parts are looked at one by one."""

EMPTY: Final = dict[object, object]()
BRACKETS: Final[dict[type[Any], tuple[str, str]]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    deque: ("deque([", "])"),
    type(EMPTY.keys()): ("dict_keys([", "])"),
    type(EMPTY.values()): ("dict_values([", "])"),
    type(EMPTY.items()): ("dict_items([", "])"),
}
"""The beginning and the end of the repr of a collection."""
SIZES: Final[dict[type[Any], Callable[[Any], int]]] = {
    str: len,
    bytes: len,
    bytearray: len,
    int: lambda number: number.bit_length() // 4,
    **dict.fromkeys(BRACKETS, len),
}
"""Measures that tell whether a repr is long, without making it."""
CUT_URL: Final = re.compile(r"://\S*\Z")


def beginning(value: object) -> str:
    """Return the repr of a value; of a long text or collection the first characters of it, and dots.

    Other types have the repr that their classes make.

    >>> beginning([1, "a"]), len(beginning([1] * 10**6))
    ("[1, 'a']", 4003)
    """
    if _is_small(value):
        return repr(value)
    text = _cut(value, [])
    # A value that holds itself looks as if it had no end, and may be short. Python knows best how to show it.
    return text if len(text) > MOST else repr(value)


def redacted_beginning(value: object) -> str:
    """Return the beginning of a repr, without what may be a secret in a URL."""
    text = beginning(value)
    if len(text) > MOST:
        # A URL may have its password behind this place, and then nothing says that there is one.
        text = CUT_URL.sub("://...", text[:MOST])
    return redacted(text)


def _part(value: object, within: list[object]) -> str:
    return repr(value) if len(within) > DEEP or _is_small(value) else _cut(value, within)


def _cut(value: Any, within: list[object]) -> str:
    """Return the beginning for a value that is not small. It is in the given collections, each in the one before."""
    kind = _kind(value)
    if kind is int:
        return repr(value)
    if kind not in BRACKETS:
        return _of_text(value)
    opening, closing = BRACKETS[kind]
    if any(value is each for each in within):
        return f"{opening}...{closing}"
    within = [*within, value]
    if kind is dict:
        parts = (f"{_part(key, within)}: {_part(each, within)}" for key, each in value.items())
    else:
        parts = (_part(each, within) for each in value)
    return _joined(opening, parts, ",)" if kind is tuple and len(value) == 1 else closing)


def _kind(value: object) -> type[object]:
    return type(value)


def _is_small(value: object) -> bool:
    """Return whether a value has few parts, and short ones."""
    room, waiting = MOST, [value]
    while waiting:
        each: Any = waiting.pop()
        kind = _kind(each)
        room -= 1 + (SIZES[kind](each) if kind in SIZES else 0)
        if room < 0:
            return False
        if kind in BRACKETS:
            waiting += chain.from_iterable(each.items()) if kind is dict else each
    return True


def _of_text(value: Any) -> str:
    head = value[:MOST]
    # The quotes anywhere in it decide which of them are put around it.
    quotes: tuple[Any, ...] = ("'", '"') if isinstance(value, str) else (b"'", b'"')
    for quote in quotes:
        if quote in value:
            head += quote
    return repr(head)[:MOST] + "..."


def _joined(opening: str, parts: Iterator[str], closing: str) -> str:
    """Join the parts of a collection until there are enough of them."""
    taken, size = list[str](), len(opening) - 2
    for part in parts:
        taken.append(part)
        size += len(part) + 2
        if size > MOST:
            return (opening + ", ".join(taken))[:MOST] + "..."
    return opening + ", ".join(taken) + closing
