"""The stages that join two flows by key: one marks the side of an element, the other joins both sides of each key.

A concat reads the right flow and then the left one. `group_by_key` brings the elements of each key together. So on every engine the
right elements of a key come first. They are held. Each left element is paired with all of them, and kept no longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, ClassVar, Final

from attrs import define, field, frozen

from ..._core.containers import new_deque
from ..._fusion import Origin, Placed, Stage, Template, Transform, label
from ...errors import LimitExceededError
from ...hooks import discard
from ..combining.concat import Concat
from .by_key import ByKey, Found, GroupByKey, OfKey, OneByOne, Pair, Steps

RIGHT, LEFT = 0, 1
"""The sides, in the order in which they come."""
NAMES: Final = ("right", "left")
HOWS: Final = ("inner", "left", "outer")

Sided = tuple[int, Any]
"""An element, after the side that it belongs to."""


@frozen
class Join(Concat[Sided]):
    """Source of ``KeyedFlow.join``: the right flow, and then the left one."""


@frozen
class OnSide(Stage[Any, Sided]):
    """Marks the elements of one flow."""

    side: int

    template: ClassVar[Template | None] = Template("""
        item = ($side, item)
        $rest
    """)

    @property
    def name(self) -> str:
        """The name of the method."""
        return "join"

    @property
    def arguments(self) -> str:
        """The side."""
        return NAMES[self.side]


@frozen
class KeyOfSide:
    """The function of an element's key, whatever its side."""

    right: Callable[[Any], Any]
    left: Callable[[Any], Any]

    def __call__(self, item: Sided) -> Any:
        """Call the function of the side."""
        side, element = item
        return (self.left if side == LEFT else self.right)(element)


@frozen
class PlaceOfSide:
    """The function that elements of a key are sorted by: the right ones first, each side by its own order."""

    right: Callable[[Any], Any] | None
    left: Callable[[Any], Any] | None

    def __call__(self, item: Sided) -> Any:
        """Return the side, and the place within it."""
        side, element = item
        order_by = self.left if side == LEFT else self.right
        return (side,) if order_by is None else (side, order_by(element))


@frozen
class JoinOfKey(Stage[Sided, Pair]):
    """Joins the elements of one key, after the operators of each side."""

    right: Steps
    left: Steps
    how: str
    max_size: int

    @property
    def name(self) -> str:
        """The name of the method."""
        return "join"

    @property
    def arguments(self) -> str:
        """The kind of join."""
        return f"how={self.how!r}"

    def transform(self) -> Transform[Sided, Pair]:
        """Return room for the elements of the right side."""
        return Joining(self)


@frozen
class JoinByKey(GroupByKey):
    """Stage of ``KeyedFlow.join``: what brings the elements of both sides together."""

    sides: tuple[GroupByKey, GroupByKey] = field(kw_only=True)
    """The names of the sides: the right one, the left one."""
    how: str = field(kw_only=True)

    @staticmethod
    def of(left: GroupByKey, right: GroupByKey, how: str, max_size: int, origin: Origin) -> JoinByKey:
        """Join two sides, each with its key, its order and its operators."""
        joined = JoinOfKey(right.steps, left.steps, how, max_size)
        return JoinByKey(
            KeyOfSide(right.key, left.key),
            PlaceOfSide(right.order_by, left.order_by),
            max(left.max_keys, right.max_keys),
            max_size,
            origin,
            (Placed(joined, origin),),
            partitions=max(filter(None, (left.partitions, right.partitions)), default=None),
            sides=(right, left),
            how=how,
        )

    @property
    def name(self) -> str:
        """The name of the method."""
        return "join"

    @property
    def arguments(self) -> str:
        """Both sides, each by its key, its order and its operators, and how they are joined."""
        right, left = (side.arguments for side in self.sides)
        return f"{left}, {right}, how={self.how!r}"

    @property
    def in_no_order(self) -> Placed[Stage[Any, Any]] | None:
        """The first operator of a side that depends on the order of elements, where that side has none."""
        return self.sides[RIGHT].in_no_order or self.sides[LEFT].in_no_order

    def transform(self) -> Transform[Any, Pair]:
        """Return room for the state of each key.

        Here the elements of a side are sorted, where they are to be, by its first operator.
        """
        right, left = (side.sorted_steps for side in self.sides)
        return ByKey(self, (Placed(JoinOfKey(right, left, self.how, self.max_size), self.origin),))


def _looked_at(item: Sided) -> Found:
    return item[0], item[0], item[1]


@define(eq=False)
class BySide(OneByOne):
    """The operators of both sides, over the elements of one key: the right side ends where the left one begins."""

    right: Steps
    left: Steps

    @property
    def keyed(self) -> Callable[[Any], Found]:
        """Return a function for the side and key of an element."""
        return _looked_at

    def begun(self, key: Any) -> OfKey:
        """Begin the operators of a side."""
        steps = self.left if key == LEFT else self.right
        return OfKey(key, steps, f"the {NAMES[key]} elements")


@define(eq=False)
class Joining(Transform[Sided, Pair]):
    """The elements of the right side of one key, and what the left ones make of them."""

    stage: JoinOfKey
    sides: BySide = field(init=False)
    held: deque[Any] = field(init=False, factory=new_deque)
    met: bool = field(init=False, default=False)
    """Whether an element of the left side has come."""
    left: int = field(init=False, default=0)
    """The number of pairs that are still to come for the current left element."""

    def __attrs_post_init__(self) -> None:
        self.sides = BySide(self.stage.right, self.stage.left)

    def apply(self, items: Iterator[Sided]) -> Generator[Pair]:
        """Hold the right elements, and emit each left one with all of them."""
        return self._joined(self.sides.apply(items))

    def _joined(self, pairs: Iterable[Pair]) -> Generator[Pair]:
        held, stage = self.held, self.stage
        for side, element in pairs:
            if side == LEFT:
                self.met = True
                self.left = len(held)
                for each in held:
                    self.left -= 1
                    yield element, each
                if not held and stage.how != "inner":
                    yield element, None
            elif len(held) == stage.max_size:
                raise LimitExceededError(
                    f"join(max_size={stage.max_size}) has no room for {label(element)}: its key has too many elements in the other "
                    "flow. Raise max_size, or swap the two flows"
                )
            else:
                held.append(element)

    def finish(self) -> Iterable[Pair]:
        """Yield what the operators still hold, and the right elements without a partner if these are wanted."""
        yield from self._joined(self.sides.finish())
        while self.unmet:
            yield None, self.held.popleft()
        self.held.clear()

    @property
    def unmet(self) -> bool:
        """Whether right elements are still to be emitted alone, once the left side has ended."""
        return self.stage.how == "outer" and not self.met and bool(self.held)

    @property
    def pending(self) -> bool:
        """Return whether something would still come."""
        return self.owing or self.sides.pending or self.unmet

    @property
    def owing(self) -> bool:
        """Return whether the current element has not met all of its partners."""
        return self.left > 0

    def close(self) -> None:
        """Drop the held elements. The hook gets those that were not emitted."""
        held, self.held = self.held, deque()
        if not self.met:  # the others have been given
            discard(held)
        self.sides.close()
