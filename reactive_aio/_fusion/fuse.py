"""Fusion: the stages of a region become one generator function.

The idea is whole-stage code generation, as query engines do it, on the scale of a stream library. The templates of the
stages are nested into one loop, so that between two operators there is neither a call nor an iterator. Beside speed
that gives two things for nothing. The line on which an exception left the generated function names the stage that
raised it. A StopIteration from a user's function can't be mistaken for the end of the stream, because Python turns it
into a RuntimeError (PEP 479).

The first function of a region is *paced*. It takes its input in short slices and looks at the clock between them. When
its time is up it returns, and the driver calls it again later. That bounds how long the event loop is held even where a
filter lets nothing through. Slices start at one element and double only while elements are quick, so that nobody waits
for a slow function to fill one.

A stage without a template ends the function; what follows it goes into a second one that reads the first.

Where many elements are wanted at once the function is no generator: it *gathers* its results in a list. A generator
that is resumed for each element costs more than all the rest.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, count, islice, repeat
from operator import length_hint
from types import CodeType, GeneratorType
from typing import Any, ClassVar, Final, Protocol
from weakref import finalize

from attrs import define, frozen

from .._core import budgets
from .._core.budgets import QUICK, Budget
from .template import Template

# The stages of a region are heterogeneous. Their types are checked where the flow is built. Only here, where they have
# been put in a row, is `Any` allowed.


class Fusible(Protocol):
    """A transform as fusion sees it: its template, or else how to apply it. Attributes that the template names come with it."""

    template: ClassVar[Template | None]
    """The lines that it adds to the loop, if it has any."""

    def paced(self, items: Iterator[Any], pace: Pace, /) -> Iterator[Any]:
        """Turn a stretch of input into output, by the clock of the pace."""
        ...


NOTHING: Final = object()
LONGEST_SLICE: Final = 128
LONGEST_PLAIN: Final = 1024
"""The longest slice without code of the user: no element can be slow."""
UNHURRIED: Final = 500e-6
"""As `QUICK`, where no event loop waits for it, as in workers."""

DEEPEST: Final = 40
"""Stages in one function: Python's parser refuses blocks nested more than 100 deep."""

BARE: Final = (None,)
"""The value that an input awaits to let the event loop have a turn, as ``asyncio.sleep(0)`` does."""

_numbers: Final = count()
"""The numbers of functions. Two functions may have the same text, and end at different times."""


class Pace:
    """The terms on which a paced function runs, and what it reports when it returns. An unset one costs nothing."""

    deadline: float = 0.0
    stride: int = 1
    ended: bool = False
    index: int = 0
    """The number of elements of an uncounted input that have been taken, as of the end of a slice."""
    resumes: bool = False
    """Whether what returns early will be called again."""
    waited: float = 0.0
    """Seconds of waiting for functions that are awaited elsewhere, and not of work, in all passes."""
    idle: list[bool] | None = None
    """Set if the owner of a list checks it while it is filled. It holds an item if the owner has to be called."""
    arm: Callable[[], None] | None = None
    """Calls the owner."""
    awaiting: tuple[Any] | None = None
    """The future that an awaited input waits for, where it has suspended in the middle of the pass, which ends there."""
    budget: Budget | None = None
    """Returns how long a pass may go on after its input has waited, if that is possible."""


@frozen
class Unit:
    """A generated function with the key to its lines."""

    function: Callable[..., Any]
    code: CodeType
    stage_of_line: dict[int, int]
    bindings: tuple[tuple[int, str], ...]
    """For each parameter after the first two: the place of a transform and the attribute to pass."""


Call = tuple[Callable[..., Any], tuple[Any, ...]]


@define
class Fused:
    """A row of transforms, ready to be applied to input; never changed, but one is made for each run."""

    units: tuple[Unit | Fusible, ...]
    offsets: tuple[int, ...]
    """The place of the first transform of each unit."""
    _calls: tuple[Call | None, ...]
    """For each generated function, the function with what its parameters are bound to."""

    def paced(
        self, items: Iterator[Any], pace: Pace, made: list[Iterator[Any]] | None = None, first: int = 0
    ) -> Iterator[Any]:
        """Apply all units, or those from ``first`` on, to a stretch of input, on the terms of ``pace``.

        The iterators are listed in ``made``, as generators: they tell whether they have ended.
        """
        for at in range(first, len(self.units)):
            unit, call = self.units[at], self._calls[at]
            if call is not None:
                items = call[0](items, pace, *call[1])
            elif not isinstance(unit, Unit):
                items = unit.paced(items, pace)
            if made is not None:
                kind: type[Any] = type(items)
                if kind is not GeneratorType:
                    items = _generated(items)
                made.append(items)
        return items

    @property
    def only(self) -> Call | None:
        """The one generated function, if that is all there is."""
        return self._calls[0] if len(self._calls) == 1 else None

    def unpaced(self, items: Iterator[Any]) -> Iterator[Any]:
        """Apply all to a stretch of input until it ends, however long that takes."""
        return self.paced(items, Pace())


def _generated(items: Iterator[Any]) -> Iterator[Any]:
    yield from items


def fuse(
    transforms: Sequence[Fusible],
    first: int = 0,
    *,
    paced: bool = False,
    counted: bool = True,
    awaited: bool = False,
) -> Fused:
    """Fuse ``transforms[first:]``. The function is generated once for each row of templates and then reused.

    ``counted`` says that the place in the input can be read off the input itself, as for a list; else the
    generated loop counts. ``awaited`` says that the input is a coroutine, which gives elements, and in between what it awaits.
    """
    if first == len(transforms):
        return _through(first, paced, counted, awaited)
    kinds = tuple(map(type, transforms))
    layout = _layout(kinds, first, paced, counted, awaited)
    units = tuple(transforms[unit] if isinstance(unit, int) else unit for unit in layout.units)
    calls = tuple(call(unit, transforms) if isinstance(unit, Unit) else None for unit in units)
    return Fused(units, layout.offsets, calls)


@frozen
class _Layout:
    """The division of a row of transforms: generated functions, and transforms that are applied as a whole."""

    units: tuple[Unit | int, ...]
    offsets: tuple[int, ...]


@lru_cache(maxsize=512)
def _layout(kinds: tuple[type[Fusible], ...], first: int, paced: bool, counted: bool, awaited: bool) -> _Layout:
    longest = _longest(kinds[first:], counted)
    units: list[Unit | int] = []
    offsets: list[int] = []
    place = first
    if paced and kinds[place].template is None:
        units.append(_generate((), place, True, counted, awaited=awaited))
        offsets.append(place)
    while place < len(kinds):
        offsets.append(place)
        row: list[Template] = []
        while place < len(kinds) and len(row) < DEEPEST and (template := kinds[place].template) is not None:
            row.append(template)
            place += 1
        if row:
            head = paced and not units
            units.append(_generate(tuple(row), offsets[-1], head, counted, longest=longest, awaited=head and awaited))
        else:
            units.append(place)
            place += 1
    return _Layout(tuple(units), tuple(offsets))


@lru_cache(maxsize=512)
def gathering(
    kinds: tuple[type[Fusible], ...],
    *,
    counted: bool = True,
    hurried: bool = True,
    watched: bool = False,
    awaited: bool = False,
) -> Unit | None:
    """Fuse transforms of these classes into one function that appends what it makes to a list.

    Return None where some stage may make many elements of one.

    The function takes no more input than the list has room for, and so leaves nothing behind that would have to be
    suspended. A StopIteration of the user's comes out as it is. ``hurried`` says that an event loop waits for it,
    ``watched`` that the pace says who looks after the list. `call` binds it to the transforms.
    """
    row: list[Template] = []
    for kind in kinds:
        template = kind.template
        if template is None or not template.single or len(row) == DEEPEST:
            return None
        row.append(template)
    return _generate(
        tuple(row),
        0,
        True,
        counted,
        gathers=True,
        longest=_longest(kinds, counted),
        quick=QUICK if hurried else UNHURRIED,
        watched=watched,
        awaited=awaited,
    )


def _longest(kinds: Sequence[type[Fusible]], counted: bool) -> int:
    plain = counted and all(kind.template is not None and kind.template.plain for kind in kinds)
    return LONGEST_PLAIN if plain else LONGEST_SLICE


@lru_cache(maxsize=512)
def _through(first: int, paced: bool, counted: bool, awaited: bool) -> Fused:
    """Return the row of no transforms, which keeps nothing of a subscription: one will do for all."""
    if not paced:
        return Fused((), (), ())
    longest = LONGEST_PLAIN if counted else LONGEST_SLICE
    unit = _generate((), first, True, counted, longest=longest, awaited=awaited)
    return Fused((unit,), (first,), ((unit.function, ()),))


def call(unit: Unit, transforms: Sequence[Fusible]) -> Call:
    """Return the function of a unit, and its parameters after the first ones."""
    bound: list[Any] = []
    for at, name in unit.bindings:  # a comprehension is one more call, for each flow
        bound.append(transforms[at] if name == "self" else getattr(transforms[at], name))
    return (unit.function, tuple(bound))


PACED_HEAD: Final = """\
stride = pace.stride
clock = budgets.clock
then = clock()
while True:
    item = NOTHING
    for item in islice(items, SLICE):
"""
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
TICKED_LOOP: Final = """\
    left = SLICE
    ticks = repeat(True, left)
    for item in compress(islice(items, left), ticks):
"""
PACED_TAIL: Final = """\
    if item is NOTHING:
        pace.stride = stride
        pace.ended = True
        return
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
GATHERED_SLICE: Final = "min(stride, most - len(given))"
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
    for item in items if stride <= room else islice(items, room):
"""
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
    ) -> None:
        self.row = row
        self.first = first
        self.gathers = gathers
        self.awaited = awaited
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
        for line in self.row[at].lines:
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
def _generate(
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
    writer = _Writer(row, first, gathers=gathers, longest=longest, quick=quick, watched=watched, awaited=awaited)
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
    head, tail = _head_and_tail(writer, counted)
    for line in head.splitlines():
        writer.add(indent, line)
    awaits = AWAITED_GATHERING if writer.gathers else AWAITED
    for line in awaits.splitlines() if writer.awaited else ():
        writer.add(indent + 2, line)
    writer.nest(0, indent + 2)
    if not counted:
        writer.add(indent + 1, writer.count)
    for line in tail.splitlines():
        writer.add(indent, line)


def _head_and_tail(writer: _Writer, counted: bool) -> tuple[str, str]:
    """Return the frame of the body. If nothing is passed on, no list can be full."""
    fills = writer.gathers and not (writer.row and writer.row[-1].mute)
    if writer.gathers and writer.longest == LONGEST_PLAIN:
        head, tail = PLAIN_HEAD.replace("ROOM", "min(LONGEST, most - len(given))" if fills else "LONGEST"), PLAIN_TAIL
    else:
        head = PACED_HEAD if counted else PACED_HEAD[: PACED_HEAD.index("    for item")] + TICKED_LOOP
        head = head.replace("SLICE", GATHERED_SLICE if fills else "stride")
        tail = PACED_TAIL + GATHERED_TAIL if fills else PACED_TAIL
        if counted:
            tail = tail.replace("    if now >= pace.deadline", COUNTED_TAIL + "    if now >= pace.deadline", 1)
    head = "append = given.append\n" + head if fills else head
    head = "idle, arm = pace.idle, pace.arm\n" + head if writer.watched else head
    return head.replace("LONGEST", str(writer.longest)), tail.replace("LONGEST", str(writer.longest))


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
