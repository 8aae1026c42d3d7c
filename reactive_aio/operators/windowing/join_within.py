"""The combinator that joins two flows by key as their elements come, and holds each element for a stated time.

Elements of both flows are taken in the order in which they came. Each one is paired with the held elements of its key on the other
side, and then held itself. An element meets those that came at most so many seconds before or after it, however late the
pairs are wanted. The times are those at which elements arrive here, by the clock of the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from itertools import chain
from math import inf, nextafter
from typing import Any, Final

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner
from ..._arbiter.timer import Timer
from ..._core.containers import new_deque, new_dict
from ..._core.guard import FAILURES
from ..._core.missing import MISSING
from ..._core.notes import add_note
from ..._fusion import ELEMENT, Stage, Transform, label
from ..._plan import FlowLike, Inlet, Pushed
from ...errors import LimitExceededError
from ...hooks import discard
from ...spec import Subscription
from .by_key import Ahead, Found, GroupByKey, Grouping, Looking, OfKey, Pair
from .join import LEFT, RIGHT
from .keys import hashed

AHEAD: Final = 32
"""Elements of each flow that are requested at once."""
GRACE: Final = 1e-3
"""Seconds after its time at which an element is let go. Another one may come in the last moment, and a timer half of that early."""
ALONE: Final[dict[str, tuple[int, ...]]] = {"inner": (), "left": (LEFT,), "outer": (RIGHT, LEFT)}
"""The sides whose elements are emitted if they have found no partner."""


@frozen
class JoinWithin(Pushed[Pair]):
    """Source of ``KeyedFlow.join`` with a time: both flows are of pairs of key and element."""

    flows: tuple[FlowLike, FlowLike]
    """The right one and the left one."""
    seconds: float
    how: str
    max_size: int

    @property
    def name(self) -> str:
        """The name of the method."""
        return "join"

    @property
    def arguments(self) -> str:
        """The time, and the kind of join."""
        return f"within={self.seconds:g}, how={self.how!r}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with both flows."""
        joining = JoiningWithin(inlet, self)
        joining.start(self.flows, AHEAD)
        return joining


@frozen
class InPassing(Stage[Any, Pair]):
    """Stage of ``Flow.group_by_key`` where the operators of a key keep nothing, so that nothing is kept for a key."""

    by: GroupByKey

    @staticmethod
    def of(by: GroupByKey) -> Stage[Any, Pair]:
        """Return the stage of a side: this one if it will do."""
        keep = [step for step in by.steps if step.operator.requirement is not ELEMENT]
        return by if keep else InPassing(by)

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.by.name

    @property
    def arguments(self) -> str:
        """The key, and the operators."""
        return self.by.arguments

    def transform(self) -> Transform[Any, Pair]:
        """Return the operators of all keys."""
        return ByAnyKey(self.by.key, OfKey(None, self.by.steps, "the elements"))


@define(eq=False)
class ByAnyKey(Grouping):
    """The same operators for the elements of every key."""

    key: Callable[[Any], Any]
    run: OfKey
    ahead: Ahead = field(init=False, factory=Ahead)

    @property
    def keyed(self) -> Callable[[Any], Found]:
        """Call the function of the key."""
        return Looking(self.key)

    def turned_to(self, mark: Any, key: Any) -> Generator[Pair, None, OfKey]:
        """Go on with another key."""
        self.run.key = key
        return self.run
        yield  # it is a generator, as the other ones are

    def demand(self, n: int) -> int:
        """Ask for as many: there is at most one for one."""
        return n

    @property
    def pending(self) -> bool:
        """Return whether an element has come and has not gone through."""
        return self.ahead.item is not MISSING

    def close(self) -> None:
        """Close the operators."""
        self.run.close()


@define(eq=False)
class Held:
    """An element that waits for others of its key."""

    side: int
    mark: Any
    key: Any
    value: Any
    until: float
    """The last moment at which another element can meet it."""
    met: bool = False
    """Whether it has been emitted."""


@define(eq=False)
class Side:
    """The held elements of one flow."""

    in_order: deque[Held] = field(init=False, factory=new_deque)
    """All of them, the oldest first."""
    by_key: dict[Any, deque[Held]] = field(init=False, factory=new_dict)

    def add(self, held: Held) -> None:
        """Hold an element."""
        self.by_key.setdefault(held.mark, deque()).append(held)
        self.in_order.append(held)

    def drop(self) -> Held:
        """Let go of the oldest one, which is the oldest of its key as well."""
        held = self.in_order.popleft()
        of_key = self.by_key[held.mark]
        of_key.popleft()
        if not of_key:
            del self.by_key[held.mark]
        return held

    def clear(self) -> list[Held]:
        """Let go of all."""
        left = list(self.in_order)
        self.in_order.clear()
        self.by_key.clear()
        return left


@define(eq=False)
class JoiningWithin(Gathering):
    """Takes the elements of both flows in the order of their arrival, each on demand.

    Invariant: while pairs wait for demand, nothing else is taken or let go. So what is held has been emitted with all that
    it has met.
    """

    join: JoinWithin
    timer: Timer = field(init=False)
    _sides: tuple[Side, Side] = field(init=False, factory=lambda: (Side(), Side()))
    """The held elements, `max_size` of both together."""
    _arrived: deque[tuple[Inner, int, float]] = field(init=False, factory=new_deque)
    """The flows whose elements come next, each with the number of them, and when they came. The number 0 is the end of the flow.

    Bounded by what is kept.
    """
    _pairs: deque[tuple[Held, Held | None]] = field(init=False, factory=new_deque)
    """The pairs that wait for demand: those of one element, or elements without a partner; bounded by `max_size`."""

    def __attrs_post_init__(self) -> None:
        self.timer = Timer(self.inlet, self.go)

    def cancel(self) -> None:
        """Cancel both, and let go of the elements that have been in no pair."""
        self.timer.cancel()
        super().cancel()
        self._arrived.clear()
        held = [*chain.from_iterable(self._pairs), *chain.from_iterable(side.clear() for side in self._sides)]
        self._pairs.clear()
        discard(each.value for each in dict.fromkeys(held) if each is not None and not each.met)

    # -- the Owner of both flows

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Note when they have come."""
        self._arrived.append((inner, len(items), self.timer.now))
        super().on_chunk(inner, items)

    def on_end(self, inner: Inner) -> None:
        """Note when it has come, too."""
        self._arrived.append((inner, 0, self.timer.now))
        self.go()

    def on_spent(self, inner: Inner) -> None:
        """Fail, or let go of the other side's elements, which nobody can meet any more."""
        super().on_spent(inner)
        if not self.over:
            other: int = 1 - inner.key
            for held in self._sides[other].clear():
                self._let_go(held)

    # -- one step after another

    def step(self) -> bool:
        """Emit pairs, let go of what has had its time, or take the next element or end."""
        if self._pairs:
            return self._give()
        try:
            if self._forget() or self._take():
                return True
        except FAILURES as error:  # of a key that is compared, too
            add_note(error, f"in {self.inlet.where}")
            self.fail(error)
            return False
        if not self._goes_on:
            self.complete()
        elif not self._arrived:
            self._set_timer()
        return False

    def _give(self) -> bool:
        """Emit what is wanted."""
        if not self.demand:
            return False
        pairs = [self._pairs.popleft() for _ in range(min(self.demand, len(self._pairs)))]
        self.emit([_emitted(*pair) for pair in pairs])
        return True

    def _forget(self) -> bool:
        """Let go of the elements whose time is over. Return whether there is something to emit."""
        now = self._arrived[0][2] if self._arrived else self.timer.now
        while (side := self._oldest) is not None and side.in_order[0].until < now:
            self._let_go(side.drop())
        return bool(self._pairs)

    def _let_go(self, held: Held) -> None:
        if not held.met and held.side in ALONE[self.join.how]:
            self._pairs.append((held, None))

    def _take(self) -> bool:
        """Take the next element if it is wanted, or the next end. Return whether there was one."""
        if not self._arrived or (self._arrived[0][1] and not self.demand):
            return False
        inner, count, at = self._arrived.popleft()
        if not count:
            self.on_spent(inner)
            return True
        if count > 1:
            self._arrived.appendleft((inner, count - 1, at))
        ((key, value),) = inner.take(1)
        self.feed(inner)
        self._pair(Held(inner.key, hashed(key), key, value, at + self.join.seconds))
        return True

    def _pair(self, held: Held) -> None:
        """Pair an element, and hold it if others may come."""
        own, other = self._sides[held.side], self._sides[1 - held.side]
        self._pairs.extend((held, partner) for partner in other.by_key.get(held.mark, ()))
        if not self._reads(1 - held.side):
            if not self._pairs:
                self._let_go(held)
            return
        own.add(held)
        if len(own.in_order) + len(other.in_order) > self.join.max_size:
            raise LimitExceededError(
                f"join(within={self.join.seconds:g}, max_size={self.join.max_size}) has no room for {label(held.value)}: "
                "too many elements have come in that time. Raise max_size, or lower within"
            )

    # -- time

    @property
    def _oldest(self) -> Side | None:
        """The side with the element whose time is over first."""
        right, left = self._sides
        if not right.in_order or not left.in_order:
            return right if right.in_order else left if left.in_order else None
        return right if right.in_order[0].until <= left.in_order[0].until else left

    def _set_timer(self) -> None:
        side = self._oldest
        if side is not None:
            until = side.in_order[0].until
            # Beside a very long time the grace is nothing. The clock must pass that time all the same.
            self.timer.start_at(max(until + GRACE, nextafter(until, inf)))

    # -- the end

    def _reads(self, side: int) -> bool:
        return any(inner.key == side for inner in self.inners)

    @property
    def _goes_on(self) -> bool:
        """Whether an element that is still to come, of either side, can be emitted."""
        return any(
            self._reads(side)
            and (self._reads(1 - side) or bool(self._sides[1 - side].in_order) or side in ALONE[self.join.how])
            for side in (RIGHT, LEFT)
        )


def _emitted(held: Held, partner: Held | None) -> Pair:
    """Return the key of the element that came first, and both elements in their places."""
    held.met, key, other = True, held.key, None
    if partner is not None:
        partner.met, key, other = True, partner.key, partner.value
    return key, (held.value, other) if held.side == LEFT else (other, held.value)
