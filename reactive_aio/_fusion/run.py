"""One execution of a region: its transforms, the fused function over them, and the way to name a failure.

Engine-independent: the driver on an event loop uses it under demand, a Spark worker runs it to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from operator import length_hint
from types import FrameType, TracebackType
from typing import Any, Final

from .._core import budgets
from .._core.guard import close_all, raise_all
from .._core.notes import add_note
from ..spec import bounded
from .fuse import Call, Fused, call, fuse, gathering
from .origin import Placed
from .parts import Placing
from .passes import Passes
from .shape import shape_of
from .stage import InSteps, Stage, Transform
from .writing import NOTHING, Unit

AnyTransform = Transform[Any, Any]

BASE: Final[type[AnyTransform]] = Transform
NO_STRETCHES: Final[Iterator[tuple[int, Iterator[Any]]]] = iter(())
NONE_MADE: Final[list[Iterator[Any]]] = []  # of all runs that have not made several

MOST_FRAMES: Final = 1_000
"""The frames of a traceback that are looked at. One exception that is raised again and again has those of all times, the latest first."""


def _reads_all(transform: AnyTransform) -> bool:
    """Return whether a transform has nothing but `apply`, which reads its input to the end unless the transform is done."""
    kind = type(transform)
    return kind.template is None and kind.paced is BASE.paced


def _last_suspended(made: Sequence[Any], count: int) -> int:
    """Return the place of the last one of the first ``count`` generators that has not ended, or -1."""
    for at in range(count - 1, -1, -1):
        if made[at].gi_frame is not None:
            return at
    return -1


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of a traceback and their lines, the outermost first."""
    for _ in range(MOST_FRAMES):
        if traceback is None:
            return
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _unread(self: AnyTransform, items: Iterator[Any], stage: object) -> Iterator[Any]:
    """Raise RuntimeError if there is input left. The name of the first parameter lets the failure be located."""
    for _ in items:
        raise RuntimeError(
            f"{stage}: apply() of {type(self).__name__} has returned before the end of its input. Read all of it, or return True "
            "from `done` if no more is needed"
        )
    yield from ()


class RegionRun(Passes):
    """The state of one region in one subscription.

    A *pass* is an iterator that applies the region to a stretch of input. It ends when the input does, when its time is
    up, or when a stage needs no more. ``pace`` then tells which.
    """

    __slots__ = (
        "_at",
        "_awaited",
        "_counted",
        "_feed",
        "_fused",
        "_gather",
        "_gathering",
        "_gathers",
        "_only",
        "_shape",
        "_stages",
        "_stretch",
        "_stretches",
        "_whole",
        "empty",
        "made",
        "mute",
        "total",
        "transforms",
    )  # fmt: skip

    def __init__(
        self,
        stages: Sequence[Placed[Stage[Any, Any]]],
        feed: object,
        *,
        counted: bool,
        awaited: bool = False,
        unit: Unit | None = None,
    ) -> None:
        self._stages = stages
        self._feed = feed
        """The input of the region: its ``str`` is in notes of failures, and takes time."""
        self.transforms = transforms = tuple([placed.operator.transform() for placed in stages])
        self._shape = shape = shape_of(tuple(map(type, transforms)))
        super().__init__(starts=bool(shape.starting), may_stop=bool(shape.stopping))
        self._at = 0
        """The place of the stage that finishes. Stages before it have nothing more to emit."""
        self._counted = counted
        self._awaited = awaited
        self._whole: Fused | None = None
        """All transforms in a row, made at the first use. A run that only gathers does not need them."""
        self._fused: Fused | None = None
        """The stages after one that emits its own elements. None while a pass goes through all of them."""
        self._gathering = unit
        """The generated function that gathers, where it is known."""
        self._gather: Call | None = None
        """That function with its parameters, made at the first use."""
        self._gathers = True
        """Whether it is still to be found out whether there is such a function."""
        self._only: Call | None = None
        """The one function of all transforms, if that is all there is."""
        self.made: list[Iterator[Any]] = NONE_MADE
        """The iterators of the latest pass, where there are several."""
        self._stretches = NO_STRETCHES
        self._stretch: tuple[int, Iterator[Any]] | None = None
        self.total = 0
        """The number of input elements of the region after the current stretch."""
        self.mute = shape.mute
        """Whether nothing is passed on before the input has ended, so that a pass never waits for demand."""
        self.empty = not self.transforms
        """Whether there is no stage, so that the output is the input."""

    def over(self, items: Iterator[Any], deadline: float) -> Iterator[Any]:
        """Begin a pass over a stretch of input that returns soon after ``deadline``, by `budgets.clock`."""
        pace = self.pace
        pace.ended = False
        pace.deadline = deadline
        pace.resumes = True
        whole = self._whole or self._all()
        only = self._only
        if only is not None:
            begun: Iterator[Any] = only[0](items, pace, *only[1])
            return begun
        self.made = []
        return whole.paced(items, pace, self.made)

    def rest(self) -> Iterator[Any] | None:
        """Return the rest of a pass that a stage has ended in the middle of its input, because its time was up.

        The stages before it are suspended, perhaps between several results for one element. So only that stage and those
        behind it begin anew. Return None if no stage has done so, or if a later stage needs no more.

        A stage that does not look at the time has no reason to end a pass. Called again and again, it might never take an element.
        """
        made = self.made
        before = _last_suspended(made, len(made) - 1) if len(made) > 1 else -1
        if before < 0:
            return None
        at = before + 1
        whole, items = self._all(), self.made[before]
        place = whole.offsets[at]
        if not self._heard(place - 1):
            return None
        if _reads_all(self.transforms[place]):
            return _unread(self.transforms[place], items, self._stages[place])
        del self.made[at:]
        return whole.paced(items, self.pace, self.made, at)

    def _all(self) -> Fused:
        """Return all transforms in a row."""
        whole = self._whole
        if whole is None:
            whole = fuse(self.transforms, paced=True, counted=self._counted, awaited=self._awaited)
            self._whole, self._only = whole, whole.only
        return whole

    def gather(self, deadline: float) -> Call | None:
        """Begin a pass as `over` does, by the function that appends to a list all that it has room for, if there is one."""
        if self._gathers:
            self._gathers = False
            watched = self.pace.arm is not None
            unit = gathering(self._shape.kinds, counted=self._counted, watched=watched, awaited=self._awaited)
            self._gathering, self._gather = unit, None if unit is None else call(unit, self.transforms)
        pace = self.pace
        pace.ended = False
        pace.deadline = deadline
        return self._gather

    def starting(self, until: float = inf) -> Iterator[Any]:
        """Yield what the stages have before any input, each through those that follow it.

        Elements that the last stage holds come first, since those of the others are input to it. Soon after ``until``,
        by `budgets.clock`, it stops, with ``paused`` set. The next call goes on.
        """
        yield from self._give(self._preludes(), until)
        self._fused = None

    def finishing(self, until: float = inf) -> Iterator[Any]:
        """Yield what the stages still hold when the input has ended, each through those that follow it.

        A stage that a later one no longer listens to is left out. Stops and goes on as `starting` does.
        """
        self.pace.resumes = False
        yield from self._give(self._finishes(), until)

    def _preludes(self) -> Iterator[tuple[int, Iterator[Any]]]:
        for place in reversed(self._shape.starting):
            if self._heard(place):
                yield place, iter(self.transforms[place].prelude())

    def _finishes(self) -> Iterator[tuple[int, Iterator[Any]]]:
        for place in self._shape.finishing:
            if self._heard(place):
                self._at = place
                yield place, iter(self.transforms[place].finish())

    def _give(self, stretches: Iterator[tuple[int, Iterator[Any]]], until: float) -> Iterator[Any]:
        """Yield elements that the stages make themselves; those that a pause has left first."""
        if not self.paused:
            self._stretches = stretches
            self._stretch = next(stretches, None)
        self.paused = False
        while self._stretch is not None:
            place, items = self._stretch
            self._fused = behind = fuse(self.transforms, place + 1)
            made = self.made = self.made or []
            timed, others = self._timed(items, until), len(made)
            yield from behind.paced(timed, self.pace, made)
            if self.paused:
                return
            yield from self._check_read([timed, *made[others:]], behind)
            self._stretch = next(self._stretches, None)

    def _check_read(self, made: list[Any], behind: Fused) -> Iterator[Any]:
        """Raise RuntimeError if a stage has left input of its own accord."""
        at = _last_suspended(made, len(made))
        if at >= 0:
            place = behind.offsets[at]
            if self._heard(place - 1) and _reads_all(self.transforms[place]):
                yield from _unread(self.transforms[place], made[at], self._stages[place])

    def _timed(self, items: Iterator[Any], until: float) -> Iterator[Any]:
        for item in items:
            if item is not NOTHING:
                yield item
            if budgets.clock() >= until:
                self.paused = True
                return

    def close(self) -> None:
        """Let the stages let go of what they hold. Raise a failure of that, or several as a group."""
        if self._stretch is not None:
            self._stretches, self._stretch = NO_STRETCHES, None  # they lead back to here
        closing = self._shape.closing
        if len(closing) == 1 and not self.made:
            self.transforms[closing[0]].close()
        elif closing or self.made:
            # The last one first, which reads the others: the driver knows of no more than that. Then the stages.
            made = [close for each in reversed(self.made) if (close := getattr(each, "close", None)) is not None]
            self.made.clear()
            failures = close_all(made + [self.transforms[place].close for place in reversed(closing)])
            if failures:
                raise_all(failures)

    @property
    def ends(self) -> bool:
        """Whether nothing is passed on before the end of the input, and then the last stage makes the result at once."""
        last = self.transforms[-1] if self._shape.ends else None
        return last is not None and not (isinstance(last, InSteps) and last.in_steps)

    @property
    def closes(self) -> bool:
        """Return whether some stage has something to let go of. Else only a suspended pass has."""
        return bool(self._shape.closing)

    @property
    def done(self) -> bool:
        """Return whether some stage needs no more input."""
        stopping = self._shape.stopping
        return bool(stopping) and any(self.transforms[place].done for place in stopping)

    @property
    def pending(self) -> bool:
        """Return whether output would still come if no more input did."""
        shape = self._shape
        for place in shape.holding:
            if self.transforms[place].pending and self._heard(place):
                return True
        return bool(shape.reticent) and any(
            place >= self._at and place in shape.finishing and self._heard(place) for place in shape.reticent
        )

    @property
    def reticent(self) -> bool:
        """Return whether a suspended pass, or a prelude, may emit more, as far as the stages say."""
        return any(place >= self._at and self._heard(place) for place in self._shape.reticent)

    def check_over(self) -> None:
        """Raise RuntimeError if a stage emits more of its own, though it has said that nothing is pending."""
        if self._stretch is not None:
            place, items = self._stretch
            if self._heard(place) and next(items, NOTHING) is not NOTHING:
                raise RuntimeError(
                    f"{self._stages[place]} has more elements, but its `pending` is false. Keep `pending` true until the last "
                    "element, or don't define it"
                )

    @property
    def owing(self) -> bool:
        """Return whether output of a pass that is suspended would still come if the input failed."""
        return any(self.transforms[place].owing and self._heard(place) for place in self._shape.holding)

    def _heard(self, place: int) -> bool:
        stopping = self._shape.stopping
        return not stopping or not any(self.transforms[later].done for later in stopping if later > place)

    @property
    def place(self) -> int:
        """The number of elements of the whole that have come to the stage in turn, or 0 without such a stage."""
        return next((each.place for each in self.transforms if isinstance(each, Placing)), 0)

    @place.setter
    def place(self, value: int) -> None:
        for transform in self.transforms:
            if isinstance(transform, Placing):
                transform.place = value

    def demand(self, n: int) -> int:
        """Return how much input to request for ``n`` elements of output."""
        for transform in reversed(self.transforms):
            n = transform.demand(n)
        return bounded(n)

    # -- failures

    def locate(self, error: BaseException) -> None:
        """Add to an exception the operator that raised it, the line it was chained on and the element.

        Costs nothing until there is a failure: the frames of the generated functions are still on the
        exception's traceback, and their line numbers tell the stage.
        """
        # Not the frame of the function that caught it: looking at its locals would keep them, and the error is one of them.
        trail = None if error.__traceback__ is None else error.__traceback__.tb_next
        place = self._failed_place(trail)
        if place is None and isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
            # A generator that a StopIteration leaves is not on the traceback of the RuntimeError that it turns into.
            inner = error.__cause__.__traceback__
            place = self._failed_place(inner)
            trail = trail if place is None else inner
        index = self._index(trail)
        element = "" if index is None else f", on element #{index}"
        if place is None:
            note = f"in {self._feed}{element.replace('on', 'after', 1)}"
        else:
            note = f"in {self._stages[place]}{element} of {self._feed}"
        add_note(error, note)

    def _failed_place(self, traceback: TracebackType | None) -> int | None:
        """Return which stage the innermost frame of this region belongs to; None for the source."""
        found = None
        for frame, line in _frames(traceback):
            # The locals of a frame are a dict that is made when they are looked at.
            known = frame.f_code.co_varnames
            if "self" in known and (at := self._applied(frame.f_locals.get("self"))) is not None:
                found = at
            elif "pace" in known and frame.f_locals.get("pace") is self.pace:
                found = self._place(frame, line)
        return found

    def _applied(self, transform: object) -> int | None:
        """Return the place of a transform among those of the region."""
        return next((place for place, each in enumerate(self.transforms) if each is transform), None)

    def _place(self, frame: FrameType, line: int) -> int | None:
        """Return which stage a line of a generated function belongs to; None for the source.

        A line of no stage is where a function takes its input. Then the failure came from what feeds it: a stage that
        was applied as a whole, or else the source.
        """
        before: int | None = None
        for unit, offset in self._units():
            if not isinstance(unit, Unit):
                before = offset
            elif unit.code is frame.f_code:
                return unit.stage_of_line.get(line, before)
        return before

    def _units(self) -> Iterator[tuple[object, int]]:
        """Yield the parts of the generated functions. The one that does not gather is made only if it is looked at."""
        if self._gathering is not None:
            yield self._gathering, 0
        fused = self._fused or self._all()
        yield from zip(fused.units, fused.offsets, strict=True)

    def _index(self, traceback: TracebackType | None) -> int | None:
        """Return the place of the current element in the input of the region, where it is known."""
        for frame, _ in _frames(traceback):
            if "pace" not in frame.f_code.co_varnames:
                continue
            names = frame.f_locals
            if (
                names.get("pace") is self.pace and "stride" in names and "self" not in names
            ):  # it is a generated function
                if not self._counted:
                    # The function has counted up to here in its `finally`.
                    return self.pace.index - 1 if self.pace.index else None
                return self.total - length_hint(names["items"]) - 1
        return None
