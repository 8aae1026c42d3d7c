"""The stage that runs stages on the elements of each key, as if these were a flow of their own.

Each key has an instance of the fused stages, and nothing of it is kept but the state of those. Elements that follow each
other and have one key go through them in one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from math import inf
from typing import Any, ClassVar, NoReturn

from attrs import define, field, frozen

from ..._core.containers import new_dict
from ..._core.guard import FAILURES, close_all, raise_all
from ..._core.missing import MISSING
from ..._fusion import (
    ELEMENT,
    FINISHING,
    KEYED,
    NOTHING,
    OVER,
    STARTING,
    InSteps,
    Origin,
    Placed,
    RegionRun,
    Requirement,
    Stage,
    Transform,
    label,
)
from ...errors import LimitExceededError
from ...spec import UNBOUNDED
from ..folding.fold import Count
from ..folding.ranking import TopK
from ..transforming.sort_by import SortBy
from .keys import PLAIN, hashed, in_bytes

Steps = tuple[Placed[Stage[Any, Any]], ...]
Pair = tuple[Any, Any]


@frozen
class InOrder:
    """The function to sort the elements of a key by. Its values are compared as keys are."""

    order_by: Callable[[Any], Any]

    @property
    def __name__(self) -> str:
        """The name of the function."""
        return label(self.order_by)

    def __call__(self, item: Any) -> bytes:
        """Return the bytes that an element is sorted by."""
        return in_bytes(self.order_by(item))


@frozen
class SortOfKey(SortBy[Any]):
    """Sorts the elements of a key, on the event loop."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return "group_by_key"

    @property
    def arguments(self) -> str:
        """The order."""
        return f"order_by={label(self.key)}"

    def refuse(self) -> NoReturn:
        """Fail, since there are too many."""
        raise LimitExceededError(
            f"group_by_key(max_size={self.max_size}) has no room to sort another element of a key. Raise max_size"
        )


@frozen
class GroupByKey(Stage[Any, Pair]):
    """Stage of ``Flow.group_by_key``, with those that follow for each key."""

    key: Callable[[Any], Any]
    order_by: Callable[[Any], Any] | None
    max_keys: int
    max_size: int
    origin: Origin
    """The line of ``group_by_key``. Its own is that of what makes a flow of it again."""
    steps: Steps = ()
    any_order: bool = False
    """Whether the last step says that the order of the elements makes no difference to it."""
    partitions: int | None = field(kw_only=True, default=None)
    """Into how many the elements are shuffled; None leaves that to the session."""

    needs_whole_stream = True

    @property
    def requirement(self) -> Requirement:
        """An engine that brings the elements of each key together."""
        return KEYED

    @property
    def arguments(self) -> str:
        """The functions, and the stages for each key."""
        order = "" if self.order_by is None else f", order_by={label(self.order_by)}"
        if self.partitions is not None:
            order += f", partitions={self.partitions}"
        stages = "".join(f" -> {placed.operator}" for placed in self.steps)
        return f"{label(self.key)}{order}{stages}"

    @property
    def in_no_order(self) -> Placed[Stage[Any, Any]] | None:
        """The first step that depends on the order of the elements of a key, where nothing says what that is."""
        if self.order_by is not None:
            return None
        steps = self.steps[:-1] if self.any_order else self.steps
        return next((placed for placed in steps if not _in_any_order(placed.operator)), None)

    def transform(self) -> Transform[Any, Pair]:
        """Return the transform for the state of each key. If elements are sorted, sorting is each key's first stage."""
        return ByKey(self, self.sorted_steps)

    @property
    def sorted_steps(self) -> Steps:
        """The stages for each key, after one that sorts its elements if there is an order."""
        if self.order_by is None:
            return self.steps
        sort = SortOfKey(InOrder(self.order_by), reverse=False, max_size=self.max_size)
        return (Placed(sort, self.origin), *self.steps)


def _in_any_order(stage: Stage[Any, Any]) -> bool:
    """Return whether a stage has the same result for any order of its elements, up to the first of equal ones."""
    return stage.requirement is ELEMENT or isinstance(stage, (Count, TopK))


class OfKey:
    """The fused stages over the elements of one key."""

    __slots__ = ("_run", "key")

    def __init__(self, key: Any, steps: Steps, feed: object = None) -> None:
        """Begin; ``feed`` names the elements in the notes of failures, if their key does not."""
        self.key: Any = key
        self._run: RegionRun | None = RegionRun(steps, Named(key) if feed is None else feed, counted=False)

    @property
    def closes(self) -> bool:
        """Return whether some stage has something to let go of."""
        return self._run is not None and self._run.closes

    @property
    def pending(self) -> bool:
        """Return whether the stages would emit something if no more elements came."""
        return self._run is not None and self._run.pending

    def answers(self, elements: Iterator[Any], stretch: Stretch) -> Generator[Pair]:
        """Yield the results of the elements that follow. Skip them once no more are needed."""
        run = self._run
        if run is not None:
            if run.phase is STARTING:
                yield from self._given(run, None, stretch)
            if run.may_stop and run.done:  # as with take(0)
                run.finish()
            else:
                yield from self._given(run, elements, stretch)
            if run.phase is FINISHING:
                yield from self.finish()
                self.close()
        for _ in elements:
            pass

    def finish(self) -> Generator[Pair]:
        """Yield what the stages hold after the last element."""
        run = self._run
        if run is None:
            return
        if run.phase is STARTING:
            yield from self._given(run, None)
        run.finish()
        while run.phase is not OVER:
            yield from self._given(run, None)

    def _given(self, run: RegionRun, items: Iterator[Any] | None, stretch: Stretch | None = None) -> Generator[Pair]:
        """Yield the results of a pass. Note where a failure was, unless it came with the elements."""
        key = self.key
        try:
            begun = run.begin(items, inf)
            if begun is not None:
                for value in begun:
                    yield key, value
                run.ended(input_ended=False)
        except FAILURES as error:
            if stretch is None or not stretch.brought(error):
                run.locate(error)
            raise

    def close(self) -> None:
        """Drop the held elements."""
        run, self._run = self._run, None
        if run is not None:
            run.current = None  # it leads back to the run
            run.close()


@frozen
class Named:
    """The elements of a key, in the notes of failures."""

    key: Any

    def __str__(self) -> str:
        return f"the elements of key {label(self.key)}"


Found = tuple[Any, Any, Any]
"""The mark that separates elements by key, the key, and the value that goes through the stages."""


@define(eq=False)
class Ahead:
    """A place for the element that was taken from the input, and not passed to the stages of its key yet."""

    item: Any = MISSING


@define(eq=False)
class Stretch:
    """The elements of a pass, cut where the key changes. Neither its generators nor the transform are known to it, so nothing is a cycle."""

    items: Iterator[Any]
    keyed: Callable[[Any], Found]
    ahead: Ahead
    mark: Any = field(init=False, default=MISSING)
    key: Any = field(init=False, default=None)
    _failure: BaseException | None = field(init=False, default=None)

    def next_key(self) -> Generator[Any] | None:
        """Go on to the next key, if an element comes, and yield the consecutive elements of that key."""
        if self.ahead.item is MISSING:
            for each in self.items:
                self.mark, self.key, self.ahead.item = self.keyed(each)
                break
            else:
                return None
        return self._of_one()

    def _of_one(self) -> Generator[Any]:
        mark, keyed, ahead = self.mark, self.keyed, self.ahead
        first, ahead.item = ahead.item, MISSING
        yield first
        del first
        try:
            for each in self.items:
                found, key, item = keyed(each)
                # Keys that a dict would not compare are not compared here, since the answer need not be a bool, as with
                # pandas' NA. A cut between equal keys, such as 1 and 1.0, only takes time.
                if found is not mark and (
                    type(found) is not type(mark)
                    or (type(found) not in PLAIN and hash(found) != hash(mark))
                    or found != mark
                ):
                    self.mark, self.key, ahead.item = found, key, item
                    return
                yield item
        except FAILURES as error:
            self._failure = error
            raise

    def brought(self, error: BaseException) -> bool:
        """Return whether a failure came with the elements, and not from what is done with them."""
        return self._failure is not None and self._failure in (error, error.__cause__)


class Grouping(Transform[Any, Pair], ABC):
    """The common part of both ways to run stages by key."""

    __slots__ = ()

    stretch: ClassVar[type[Stretch]] = Stretch

    ahead: Ahead

    @property
    @abstractmethod
    def keyed(self) -> Callable[[Any], Found]:
        """The function that looks at an element. It does not refer to the transform."""

    @abstractmethod
    def turned_to(self, mark: Any, key: Any) -> Generator[Pair, None, OfKey]:
        """Yield the rest of another key that has ended here, and return the run of this key."""

    def apply(self, items: Iterator[Any]) -> Generator[Pair]:
        """Run a stretch, key after key."""
        stretch = self.stretch(items, self.keyed, self.ahead)
        while (elements := stretch.next_key()) is not None:
            run = yield from self.turned_to(stretch.mark, stretch.key)
            yield from run.answers(elements, stretch)

    def demand(self, n: int) -> int:
        """Ask for one element at a time, since it may be enough."""
        return n if n == UNBOUNDED else min(n, 1)


@define(eq=False)
class OneByOne(Grouping, ABC):
    """The current key, if one key ends before another begins."""

    mark: Any = field(init=False, default=MISSING)
    run: OfKey | None = field(init=False, default=None)
    ahead: Ahead = field(init=False, factory=Ahead)

    @abstractmethod
    def begun(self, key: Any) -> OfKey:
        """Return the run of a key that begins."""

    def turned_to(self, mark: Any, key: Any) -> Generator[Pair, None, OfKey]:
        """Yield the rest of the key before, and begin this key, unless it goes on."""
        run = self.run
        if run is None or mark != self.mark:
            yield from self.finish()
            self.mark, self.run = mark, (run := self.begun(key))
        return run

    def finish(self) -> Iterable[Pair]:
        """Yield what the stages of the last key still hold."""
        if self.run is not None:
            yield from self.run.finish()
            self.close()

    @property
    def pending(self) -> bool:
        """Return whether the current key still has elements, or the next one has come."""
        return self.ahead.item is not MISSING or (self.run is not None and self.run.pending)

    def close(self) -> None:
        """Drop what the stages hold."""
        run, self.run = self.run, None
        if run is not None:
            run.close()


@frozen
class Looking:
    """Calls the function of the key."""

    key: Callable[[Any], Any]

    def __call__(self, item: Any) -> Found:
        """Look at an element."""
        key = self.key(item)
        return hashed(key), key, item


@define(eq=False)
class ByKey(Grouping, InSteps[Any, Pair]):
    """The state of each key in one subscription."""

    stage: GroupByKey
    steps: Steps
    runs: dict[Any, OfKey] = field(init=False, factory=new_dict)
    latest: OfKey | None = field(init=False, default=None)
    """The run whose pass may be suspended. The others hold only what their stages do."""
    closes: bool = field(init=False, default=False)
    """Whether stages have something to let go of. Else there may be thousands of runs, and nothing to do for them."""
    ahead: Ahead = field(init=False, factory=Ahead)

    @property
    def keyed(self) -> Callable[[Any], Found]:
        """Call the function of the key."""
        return Looking(self.stage.key)

    def turned_to(self, mark: Any, key: Any) -> Generator[Pair, None, OfKey]:
        """Find the run of a key, or make one."""
        run = self.runs.get(mark)
        if run is None:
            if len(self.runs) == self.stage.max_keys:
                raise LimitExceededError(
                    f"group_by_key(max_keys={self.stage.max_keys}) has no room for another key, {label(key)}. Raise max_keys"
                )
            run = self.runs[mark] = OfKey(key, self.steps)
            self.closes = self.closes or run.closes
        self.latest = run
        return run
        yield  # it is a generator, as the other one is

    def finish(self) -> Iterable[Any]:
        """Yield what the stages of each key still hold, in the order in which the keys came. A key is a step."""
        for mark in list(
            self.runs
        ):  # the first one of a dict is found ever more slowly while its first ones are deleted
            run = self.latest = self.runs[mark]
            yield from run.finish()
            del self.runs[mark]
            run.close()
            yield NOTHING  # there may be thousands of keys that hold nothing

    @property
    def pending(self) -> bool:
        """Return whether some key still has something."""
        return self.ahead.item is not MISSING or any(run.pending for run in self.runs.values())

    def close(self) -> None:
        """Drop what the stages hold."""
        runs = list(self.runs.values()) if self.closes else []
        latest, self.latest = self.latest, None
        if latest is not None:
            runs.append(latest)
        self.runs.clear()
        raise_all(close_all([run.close for run in runs]))
