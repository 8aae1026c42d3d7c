"""The text of fused functions: the templates of a row of stages, nested into the body of one loop."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import compress, count, islice, repeat
from operator import length_hint
from types import CodeType
from typing import Any, Final
from weakref import finalize

from attrs import frozen

from .._core import budgets
from .._core.budgets import QUICK
from .template import Template, lines_of

# As in `fuse`, the stages of a row are of all types.

NOTHING: Final = object()
LONGEST_SLICE: Final = 128
LONGEST_PLAIN: Final = 1024
"""The longest slice without code of the user: no element can be slow."""

BARE: Final = (None,)
"""The value that an input awaits to let the event loop have a turn, as ``asyncio.sleep(0)`` does."""

_numbers: Final = count()
"""The numbers of functions. Two functions may have the same text, and end at different times."""


@frozen
class Unit:
    """A generated function with the key to its lines."""

    function: Callable[..., Any]
    code: CodeType
    stage_of_line: dict[int, int]
    bindings: tuple[tuple[int, str], ...]
    """For each parameter after the first two: the place of a transform and the attribute to pass."""


PACED_HEAD: Final = """\
stride = pace.stride
clock = budgets.clock
then = clock()
while True:
"""
NONE_YET: Final = """\
    item = NOTHING
"""
SLICE: Final = "islice(items, stride)"
# Elements and what is awaited come by the same door. A generator that has just given what it awaits is inside another one.
AWAITED: Final = """\
if items.gi_yieldfrom is not None:
    pace.awaiting = BARE if item is None else (item,)
    pace.stride = stride
    awaits += 1
    return
"""
# A gathering function yields the awaited future itself, and is sent how many elements have been taken from the list by then. It goes on
# behind that in a turn that has just begun.
AWAITED_GATHERING: Final = """\
if items.gi_yieldfrom is not None:
    awaits += 1
    most -= yield item
    then = clock()
    pace.deadline = then + pace.budget.part
    continue
"""
# A tick is taken behind each element, so those that are left tell how many came. An `enumerate` would make a number for each.
TICKED_HEAD: Final = """\
    left = STRIDE
    ticks = repeat(True, left)
"""
TICKED_SLICE: Final = "compress(islice(items, left), ticks)"
NONE_TAIL: Final = """\
    if item is NOTHING:
        pace.stride = stride
        pace.ended = True
        return
"""
PACED_TAIL: Final = """\
    now = clock()
    if now - then > QUICK:
        stride = 1
    elif stride < LONGEST:
        stride += stride
    if now >= pace.deadline:
        pace.stride = stride
        return
    then = now
"""
# A list knows that it has been used up: most lists of services are short, so this saves half of the work for one.
COUNTED_TAIL: Final = """\
    if not length_hint(items, 1):
        pace.stride = stride
        pace.ended = True
        return
"""
GATHERED_STRIDE: Final = "min(stride, most - len(given))"
GATHERED_TAIL: Final = """\
    if len(given) >= most:
        pace.stride = stride
        return
"""
# The input knows its length, and nobody's code is run who could turn out to be slow: all that is left may be one slice.
PLAIN_HEAD: Final = """\
while True:
    room = ROOM
    stride = length_hint(items)
"""
PLAIN_SLICE: Final = "items if stride <= room else islice(items, room)"
PLAIN_TAIL: Final = """\
    if stride <= room:
        pace.ended = True
        return
    if budgets.clock() >= pace.deadline or len(given) >= most:
        return
"""


class _Writer:
    """Nests the templates of a row into the body of one loop."""

    def __init__(
        self,
        row: tuple[Template, ...],
        first: int,
        *,
        gathers: bool,
        longest: int,
        quick: float,
        watched: bool,
        awaited: bool,
        at_once: bool,
    ) -> None:
        self.row = row
        self.first = first
        self.gathers = gathers
        self.awaited = awaited
        self.at_once = at_once
        self.longest = longest
        self.quick = quick
        self.watched = watched
        self.lines: list[str] = []
        self.stage_of_line: dict[int, int] = {}
        self.names: dict[tuple[int, str], str] = {}

    @property
    def count(self) -> str:
        """The line that counts the taken elements."""
        # It may run twice for a slice, and counts each tick once.
        less, again = (" - awaits", "; awaits = 0") if self.awaited else ("", "")
        return f"pace.index += left - length_hint(ticks){less}; left = length_hint(ticks){again}"

    def add(self, indent: int, text: str, place: int | None = None) -> None:
        self.lines.append("    " * indent + text)
        if place is not None:
            self.stage_of_line[len(self.lines)] = place

    def nest(self, at: int, indent: int) -> None:
        """Write the stage ``at`` of the row, and in its ``$rest`` those that follow."""
        if at == len(self.row):
            self.add(indent, "append(item)" if self.gathers else "yield item")
            if self.watched:
                self.add(indent, "if idle: arm()")
            return
        place = self.first + at
        template = self.row[at]
        for line in lines_of(template.at_once) if self.at_once and at == 0 else template.lines:
            text = line.lstrip()
            depth = indent + (len(line) - len(text)) // 4
            if text == "$rest":
                self.nest(at + 1, depth)
            elif text == "$stop":
                self.add(depth, "return", place)
            else:
                self.add(depth, re.sub(r"\$(\w+)", lambda match: self.name(place, match[1]), text), place)

    def name(self, place: int, attribute: str) -> str:
        return self.names.setdefault((place, attribute), f"{attribute}_{place}")


@lru_cache(maxsize=512)
def generate(
    row: tuple[Template, ...],
    first: int,
    paced: bool,
    counted: bool,
    *,
    gathers: bool = False,
    longest: int = LONGEST_SLICE,
    quick: float = QUICK,
    watched: bool = False,
    awaited: bool = False,
) -> Unit:
    writer = _Writer(
        row,
        first,
        gathers=gathers,
        longest=longest,
        quick=quick,
        watched=watched,
        awaited=awaited,
        at_once=paced and counted and not awaited and bool(row and row[0].at_once),
    )
    writer.add(0, "")  # the head, which needs the names that the body uses
    local = [(place, name) for place, template in enumerate(row, first) for name in template.local]
    tally = [(place, name) for place, template in enumerate(row, first) for name in template.tally]
    for place, name in local:
        writer.add(1, f"{writer.name(place, name)} = {writer.name(place, 'self')}.{name}")
    for place, name in tally:
        writer.add(1, f"{writer.name(place, name)} = 0")
    counts = paced and not counted
    if counts:
        writer.add(1, "ticks = (); left = awaits = 0" if writer.awaited else "ticks = (); left = 0")
    framed = bool(local or tally or counts)
    if framed:
        writer.add(1, "try:")
    _loop(writer, 2 if framed else 1, paced, counted)
    if framed:
        writer.add(1, "finally:")
    if counts:
        # A stage that follows may end the pass in the middle of a slice; what has been taken counts all the same.
        writer.add(2, writer.count)
    for place, name in local:
        writer.add(2, f"{writer.name(place, 'self')}.{name} = {writer.name(place, name)}")
    for place, name in tally:
        writer.add(2, f"{writer.name(place, 'self')}.{name} += {writer.name(place, name)}")
    if not gathers:
        writer.add(1, "if False: yield")  # a row without $rest is a generator too
    parameters = ", given, most" if gathers else ""
    parameters += "".join(f", {name}" for name in writer.names.values())
    writer.lines[0] = f"def region(items, pace{parameters}):"
    return _compile(writer)


def _loop(writer: _Writer, indent: int, paced: bool, counted: bool) -> None:
    if not paced:
        writer.add(indent, "for item in items:")
        writer.nest(0, indent + 1)
        return
    head, slice_, tail = _frame(writer, counted)
    for line in head.splitlines():
        writer.add(indent, line)
    if writer.at_once:
        writer.add(indent + 1, f"some = {slice_}")
        writer.nest(0, indent + 1)
    else:
        writer.add(indent + 1, f"for item in {slice_}:")
        awaits = AWAITED_GATHERING if writer.gathers else AWAITED
        for line in awaits.splitlines() if writer.awaited else ():
            writer.add(indent + 2, line)
        writer.nest(0, indent + 2)
    if not counted:
        writer.add(indent + 1, writer.count)
    for line in tail.splitlines():
        writer.add(indent, line)


def _frame(writer: _Writer, counted: bool) -> tuple[str, str, str]:
    """Return what comes before a slice, the slice, and what comes behind it. If nothing is passed on, no list can be full."""
    fills = writer.gathers and not (writer.row and writer.row[-1].mute)
    if writer.gathers and writer.longest == LONGEST_PLAIN:
        head, slice_, tail = PLAIN_HEAD, PLAIN_SLICE, PLAIN_TAIL
        head = head.replace("ROOM", "min(LONGEST, most - len(given))" if fills else "LONGEST")
    else:
        head = PACED_HEAD if writer.at_once else PACED_HEAD + NONE_YET
        head, slice_ = (head, SLICE) if counted else (head + TICKED_HEAD, TICKED_SLICE)
        tail = PACED_TAIL + GATHERED_TAIL if fills else PACED_TAIL
        if counted:
            tail = tail.replace("    if now >= pace.deadline", COUNTED_TAIL + "    if now >= pace.deadline", 1)
        tail = tail if writer.at_once else NONE_TAIL + tail
        stride = GATHERED_STRIDE if fills else "stride"
        head, slice_ = head.replace("STRIDE", stride), slice_.replace("stride", stride)
    head = "append = given.append\n" + head if fills else head
    head = "idle, arm = pace.idle, pace.arm\n" + head if writer.watched else head
    return head.replace("LONGEST", str(writer.longest)), slice_, tail.replace("LONGEST", str(writer.longest))


def _compile(writer: _Writer) -> Unit:
    text = "\n".join(writer.lines) + "\n"
    file = f"<fused region {next(_numbers)}>"
    namespace: dict[str, Any] = {
        "BARE": BARE,
        "budgets": budgets,
        "compress": compress,
        "islice": islice,
        "repeat": repeat,
        "length_hint": length_hint,
        "NOTHING": NOTHING,
        "QUICK": writer.quick,
    }
    exec(compile(text, file, "exec"), namespace)
    # Taken out, so that there is no circle that only the garbage collector would find.
    function: Callable[..., Iterator[Any]] = namespace.pop("region")
    # So that a traceback shows the generated line; it keeps the code, as the function does.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    finalize(function.__code__, linecache.cache.pop, file, None).atexit = False
    return Unit(function, function.__code__, writer.stage_of_line, tuple(writer.names))
