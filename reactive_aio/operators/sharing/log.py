"""The log: lists of elements in their order, and the places of the readers.

It is data. Nothing here waits, signals or takes a lock. The owner of a log does that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

from attrs import define, field

from ..._core.containers import new_list
from ...spec import add_demand

FEW: Final = 64
"""Lists of fewer elements than this are merged for a reader with more demand.

A longer one is handed out as it is.
"""


Span = tuple[int, int]
"""Elements from one number to the one before another."""


class Node:
    """A list of elements that is never changed, the number of its first element, and the next node.

    The list of the last node of a log is missing, or not complete. Only the log uses it.
    """

    __slots__ = ("behind", "first", "items")

    def __init__(self, first: int) -> None:
        self.first: int = first
        self.items: list[Any] = []
        self.behind: Node | None = None

    def cut(self, first: int) -> Node:
        """Return a node that begins with a later element, and keeps none of those before."""
        rest = Node(first)
        rest.items, rest.behind = self.items[first - self.first :], self.behind
        return rest


class Cursor:
    """The place of one reader: the number of the element that it takes next, and the end of its requests."""

    __slots__ = ("at", "goal", "node")

    def __init__(self) -> None:
        self.node: Node | None = None
        self.at: int = 0
        self.goal: int = 0

    @property
    def is_due(self) -> bool:
        """Whether there is an element that it has requested."""
        node = self.node
        return node is not None and self.goal > self.at and node.behind is not None


class Placed(Protocol):
    """A reader: an object with a place."""

    @property
    def cursor(self) -> Cursor:
        """The place."""
        ...


R = TypeVar("R", bound=Placed)


class Counts:
    """The number of readers for each number, with the least and the greatest of the numbers.

    There may be thousands of readers, and most have the same number. So only the numbers are searched.
    """

    __slots__ = ("_counts", "greatest", "least")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.least: int = 0
        self.greatest: int = 0

    def __contains__(self, number: int) -> bool:
        return number in self._counts

    def add(self, number: int) -> None:
        """Count one more reader with this number."""
        counts = self._counts
        if not counts:
            self.least = self.greatest = number
        counts[number] = counts.get(number, 0) + 1
        if number < self.least:
            self.least = number
        elif number > self.greatest:
            self.greatest = number

    def remove(self, number: int) -> None:
        """Count one reader less with this number."""
        counts = self._counts
        left = counts[number] - 1
        if left:
            counts[number] = left
            return
        del counts[number]
        if not counts:
            self.least = self.greatest = 0
        elif number == self.least:
            self.least = min(counts)
        elif number == self.greatest:
            self.greatest = max(counts)

    def move(self, before: int, after: int, readers: int = 1) -> None:
        """Move readers from one number to another, as `add` and `remove` do, without their calls."""
        counts = self._counts
        counts[after] = counts.get(after, 0) + readers
        if after > self.greatest:
            self.greatest = after
        elif after < self.least:
            self.least = after
        left = counts[before] - readers
        if left:
            counts[before] = left
            return
        del counts[before]
        if len(counts) == 1:
            self.least = self.greatest = after
        elif before == self.least:
            self.least = min(counts)
        elif before == self.greatest:
            self.greatest = max(counts)


@define(eq=False)
class Log:
    """The elements from the first one that the slowest reader or the replay needs.

    ``replay`` elements are kept for later readers. While there is no reader and the log is `kept`, unread elements are
    kept too.

    Moving a reference frees a node. Its elements may be freed too, and their ``__del__`` is code of the user. So a
    caller of `put`, `take`, `leave` or `forget` under a lock keeps a reference to the freed node until the lock is
    released.
    """

    replay: int
    made: int = field(init=False, default=0)
    """The number of elements so far."""
    settled: int = field(init=False, default=0)
    """The elements before this number have been taken by a reader or discarded, but for those that are `owed`."""
    owed: list[Span] = field(init=False, factory=new_list)
    """Elements that only slower readers get, because the fastest began behind them."""
    ended: bool = field(init=False, default=False)
    error: BaseException | None = field(init=False, default=None)
    traceback: TracebackType | None = field(init=False, default=None)
    """The first traceback of the failure: each raise adds to it."""
    readers: int = field(init=False, default=0)
    places: Counts = field(init=False, factory=Counts)
    """The places of the readers, and the place that is kept without readers."""
    goals: Counts = field(init=False, factory=Counts)
    """The element up to which they have requested."""
    tail: Node = field(init=False, factory=lambda: Node(0))
    head: Node = field(init=False)
    """With what the replay begins."""
    rest: Cursor | None = field(init=False, default=None)
    """The unread elements, while there is no reader and they are kept."""

    def __attrs_post_init__(self) -> None:
        self.head = self.tail

    @property
    def window(self) -> int:
        """The number of elements from the one that the slowest reader takes next."""
        return self.made - self.places.least if self.readers or self.rest else 0

    @property
    def kept(self) -> int:
        """The number of elements that are kept, for readers and for the replay."""
        return max(self.window, self.made - self.head.first)

    def is_held_up(self, lag: int) -> bool:
        """Return whether a reader has taken all and wants more, but the slowest reader holds the source up."""
        made = self.made
        return self.goals.greatest > made >= self.places.least + lag and made in self.places and not self.ended

    # -- the writer

    def put(self, items: list[Any]) -> None:
        """Add a list, which must not be changed any more."""
        self.seal()
        self.tail.items = items
        self.made += len(items)
        self.seal()

    def add(self, item: Any) -> None:
        """Add one element. Those that are added one by one become a list when a reader looks at it."""
        self.tail.items.append(item)
        self.made += 1
        if self.replay:
            self.seal()  # else it would not be bounded while nobody looks

    def seal(self) -> None:
        """Make a list of the elements that were added one by one. It must not be changed any more."""
        tail = self.tail
        if not tail.items:
            return
        self.tail = tail.behind = Node(self.made)
        if not self.replay:
            self.head = self.tail
        elif self.made - self.head.first > self.replay:
            self.forget(self.made - self.replay)

    def end(self, error: BaseException | None) -> None:
        """Add the end."""
        self.ended, self.error = True, error
        self.traceback = None if error is None else error.__traceback__

    def let_go(self) -> BaseException | None:
        """Return the failure, and forget it: its traceback may lead back to here."""
        error, self.error, self.traceback = self.error, None, None
        return error

    def forget(self, first: int) -> None:
        """Let the replay begin with this element, or with a later one if it already does."""
        node = self.head
        while node.behind is not None and node.behind.first <= first:
            node = node.behind
        self.head = node.cut(first) if node.first < first and node.behind is not None else node

    def keep(self) -> None:
        """Keep the unread elements while there is no reader: the next one begins with them."""
        if self.readers or self.rest:
            return
        self.seal()
        rest = self.rest = Cursor()
        rest.node, rest.at = self.tail, self.made
        self.places.add(rest.at)

    def keep_no_more(self) -> tuple[Node, int]:
        """Return the place where the next reader begins. From now on only the replay is kept for it."""
        rest, self.rest = self.rest, None
        if rest is not None:
            self.places.remove(rest.at)
            if rest.node is not None and rest.at < self.head.first:
                return rest.node, rest.at
        return self.head, self.head.first

    def pass_by(self, cursors: Collection[Cursor], items: list[Any]) -> bool:
        """Count a list as taken whole by these readers; False if one of them does not want all of it.

        They are all that there are, and have taken what there was. So nothing of the list is to be kept, but for a replay.
        """
        made = self.made + len(items)
        if self.replay:
            return False
        for cursor in cursors:
            if cursor.goal < made:
                return False
        for cursor in cursors:
            cursor.at = made
        self.places.move(self.made, made, len(cursors))
        self.made = self.settled = self.tail.first = made
        return True

    # -- the readers

    def join(self, cursor: Cursor) -> None:
        """Place a reader where the replay begins. The first reader begins with elements that nobody has had."""
        self.seal()
        cursor.node, number = self.keep_no_more()
        cursor.at = cursor.goal = number
        self.readers += 1
        self.places.add(number)
        self.goals.add(number)

    def want(self, cursor: Cursor, n: int) -> None:
        """Add ``n`` to the demand of a reader."""
        self.seal()
        goal = add_demand(cursor.goal, n)
        if goal != cursor.goal:
            self.goals.move(cursor.goal, goal)
            cursor.goal = goal

    def take(self, cursor: Cursor) -> list[Any]:
        """Return elements that a reader has requested, in a list that must not be changed. It may be empty."""
        self.seal()
        node, demand = cursor.node, cursor.goal - cursor.at
        if demand <= 0 or node is None or node.behind is None:
            return []
        start = cursor.at - node.first
        items = node.items
        if start or len(items) > demand:
            items = items[start : start + demand]
        if cursor.at + len(items) == node.behind.first:
            node = node.behind
            if len(items) < FEW and len(items) < demand and node.behind is not None:
                items, node = _gathered(items, node, cursor.at + min(demand, FEW))
        at, number = cursor.at, cursor.at + len(items)
        self.places.move(at, number)
        cursor.node, cursor.at = node, number
        if self.owed or at > self.settled:
            self._settle(at, number)
        elif number > self.settled:
            self.settled = number
        return items

    def take_all(self, readers: Iterable[R], nodes: list[Node | None]) -> list[tuple[R, list[Any]]]:
        """Take for several readers. Readers at one place with the same demand get the same list.

        ``nodes`` is to hold the nodes that they leave.
        """
        taken: list[tuple[R, list[Any]]] = []
        node: Node | None = None
        behind: Node | None = None
        at = goal = number = more = 0
        items: list[Any] = []
        for reader in readers:
            cursor = reader.cursor
            if cursor.node is node and cursor.at == at and cursor.goal == goal and node is not None:
                cursor.node, cursor.at = behind, number
                more += 1
            else:
                if more:
                    self.places.move(at, number, more)
                    more = 0
                node, at, goal = cursor.node, cursor.at, cursor.goal
                nodes.append(node)
                items = self.take(cursor)
                behind, number = cursor.node, cursor.at
            taken.append((reader, items))
        if more:
            self.places.move(at, number, more)
        return taken

    def leave(self, cursor: Cursor, *, keeps: bool = False) -> None:
        """Remove a reader. With ``keeps`` unread elements are kept, if it was the last."""
        self.seal()
        self.readers -= 1
        node, cursor.node = cursor.node, None
        self.goals.remove(cursor.goal)
        if keeps and not self.readers and node is not None:
            while node.behind is not None and node.behind.first <= self.settled:
                node = node.behind
            rest = self.rest = Cursor()
            rest.node, rest.at = node, max(self.settled, cursor.at)
            self.places.add(rest.at)
        self.places.remove(cursor.at)

    # -- the elements that no reader gets

    def unread(self, node: Node | None, number: int, until: int) -> list[Any]:
        """Return the elements from a place to a number that no reader has had, and count them as discarded."""
        self.seal()
        found: list[Any] = []
        for first, last in self._settle(number, until):
            while node is not None and node.first < last:
                found += node.items[max(first - node.first, 0) : last - node.first]
                if node.behind is None or node.behind.first > last:
                    break
                node = node.behind
        return found

    def _settle(self, first: int, until: int) -> list[Span]:
        """Count elements as taken or discarded. Return those that were neither."""
        if first >= until:
            return []
        before = [(max(first, a), min(until, b)) for a, b in self.owed]
        news = [(a, b) for a, b in before if a < b]
        if news:
            parts = [part for a, b in self.owed for part in ((a, min(b, first)), (max(a, until), b))]
            self.owed = [(a, b) for a, b in parts if a < b]
        if until > self.settled:
            if first > self.settled:
                self.owed.append((self.settled, first))
            news.append((max(first, self.settled), until))
            self.settled = until
        return news


def _gathered(items: list[Any], node: Node, until: int) -> tuple[list[Any], Node]:
    """Put lists together that follow each other, up to the element ``until``.

    Return them, and the node to go on with.
    """
    gathered = list(items)
    while node.behind is not None and node.first < until:
        gathered += node.items[: until - node.first]
        if until < node.behind.first:
            break
        node = node.behind
    return gathered, node
