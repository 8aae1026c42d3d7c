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

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import GeneratorType
from typing import Any, ClassVar, Final, Protocol

from attrs import define, frozen

from .._core.budgets import QUICK, Budget
from .template import Template
from .writing import LONGEST_PLAIN, LONGEST_SLICE, Unit, generate

# The stages of a region are heterogeneous. Their types are checked where the flow is built. Only here, where they have
# been put in a row, is `Any` allowed.


class Fusible(Protocol):
    """A transform as fusion sees it: its template, or else how to apply it. Attributes that the template names come with it."""

    template: ClassVar[Template | None]
    """The lines that it adds to the loop, if it has any."""

    def paced(self, items: Iterator[Any], pace: Pace, /) -> Iterator[Any]:
        """Turn a stretch of input into output, by the clock of the pace."""
        ...


UNHURRIED: Final = 500e-6
"""As `QUICK`, where no event loop waits for it, as in workers."""

DEEPEST: Final = 40
"""Stages in one function: Python's parser refuses blocks nested more than 100 deep."""


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
        units.append(generate((), place, True, counted, awaited=awaited))
        offsets.append(place)
    while place < len(kinds):
        offsets.append(place)
        row: list[Template] = []
        while place < len(kinds) and len(row) < DEEPEST and (template := kinds[place].template) is not None:
            row.append(template)
            place += 1
        if row:
            head = paced and not units
            units.append(generate(tuple(row), offsets[-1], head, counted, longest=longest, awaited=head and awaited))
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
    return generate(
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
    unit = generate((), first, True, counted, longest=longest, awaited=awaited)
    return Fused((unit,), (first,), ((unit.function, ()),))


def call(unit: Unit, transforms: Sequence[Fusible]) -> Call:
    """Return the function of a unit, and its parameters after the first ones."""
    bound: list[Any] = []
    for at, name in unit.bindings:  # a comprehension is one more call, for each flow
        bound.append(transforms[at] if name == "self" else getattr(transforms[at], name))
    return (unit.function, tuple(bound))
