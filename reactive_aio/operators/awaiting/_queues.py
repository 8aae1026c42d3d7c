"""Queues of awaited elements: which one begins next, and which result is delivered next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, Literal, get_args

from attrs import define, field

from ..._core.containers import new_deque, new_dict
from ..._fusion import label
from .._fluent import is_async

Order = Literal["input", "completion"]
"""The order of the results: that of their elements, or that of their completion."""

Ticket = tuple[Any, ...]
"""The number of an element, the element, and what else its queue has to know of it."""

REJECTED: Final = object()
"""The result of an element that is not delivered."""


@define(eq=False)
class ElementQueue(ABC):
    """The elements that have come from upstream and have not left downstream."""

    waiting: deque[Ticket] = field(init=False, factory=new_deque)
    """The elements that may begin."""
    held: int = field(init=False, default=0)
    """The number of elements, from their arrival to their delivery."""
    count: int = field(init=False, default=0)
    """The number of elements that have come, which is the number of the next one."""

    def add(self, items: list[Any]) -> None:
        """Take elements; what this raises is about the element whose number is ``count``."""
        self.waiting.extend(enumerate(items, self.count))
        self.count += len(items)
        self.held += len(items)

    @abstractmethod
    def put(self, ticket: Ticket, result: Any) -> None:
        """Take the result of an element."""

    @abstractmethod
    def take(self, n: int) -> list[Any]:
        """Return the next results to deliver, ``n`` at most."""

    def cut(self) -> list[Any]:
        """Keep only results that can be delivered without a further one. Return the others, but not the begun ones."""
        left = [ticket[1] for ticket in self.waiting]
        self.waiting.clear()
        return left


@define(eq=False)
class AsCompleted(ElementQueue):
    """Results are delivered in the order in which they come."""

    _finished: deque[Any] = field(init=False, factory=new_deque)

    def put(self, ticket: Ticket, result: Any) -> None:
        """Take a result."""
        if result is REJECTED:
            self.held -= 1
        else:
            self._finished.append(result)

    def take(self, n: int) -> list[Any]:
        """Return the oldest results."""
        finished = self._finished
        taken = [finished.popleft() for _ in range(min(n, len(finished)))]
        self.held -= len(taken)
        return taken

    def cut(self) -> list[Any]:
        """Hold the results only."""
        self.held = len(self._finished)
        return super().cut()


@define(eq=False)
class AsGiven(ElementQueue):
    """Results are delivered in the order of their elements."""

    _finished: dict[int, Any] = field(init=False, factory=new_dict)
    _next: int = field(init=False, default=0)
    """The number of the element whose result is delivered next."""

    def put(self, ticket: Ticket, result: Any) -> None:
        """Take a result, until its turn comes."""
        self._finished[ticket[0]] = result

    def take(self, n: int) -> list[Any]:
        """Return the results up to the first element that has none yet."""
        finished, at = self._finished, self._next
        taken: list[Any] = []
        while at in finished:
            if finished[at] is not REJECTED:
                if len(taken) == n:
                    break
                taken.append(finished[at])
            del finished[at]
            at += 1
        self.held -= at - self._next
        self._next = at
        return taken

    def cut(self) -> list[Any]:
        """Hold the results up to the first element that has none."""
        end = self._next
        while end in self._finished:
            end += 1
        self.held = end - self._next
        behind = sorted(number for number in self._finished if number > end)
        left = [self._finished.pop(number) for number in behind]
        return [*(each for each in left if each is not REJECTED), *super().cut()]


@define(eq=False)
class ByKey(AsCompleted):
    """Elements of one key begin one after another. Results are delivered in the order in which they come."""

    key: Callable[[Any], Hashable]
    _behind: dict[Hashable, deque[Ticket]] = field(init=False, factory=new_dict)
    """For each key of an element that has no result yet, those that come after it."""

    def add(self, items: list[Any]) -> None:
        """Take elements, each to its key."""
        for item in items:
            key = self.key(item)
            behind = self._behind.get(key)
            ticket = (self.count, item, key)
            if behind is None:
                self._behind[key] = deque()
                self.waiting.append(ticket)
            else:
                behind.append(ticket)
            self.count += 1
            self.held += 1

    def put(self, ticket: Ticket, result: Any) -> None:
        """Take a result, and let the next one of its key begin."""
        super().put(ticket, result)
        behind = self._behind[ticket[2]]
        if behind:
            self.waiting.append(behind.popleft())
        else:
            del self._behind[ticket[2]]

    def cut(self) -> list[Any]:
        """Hold the results only."""
        left = [ticket[1] for behind in self._behind.values() for ticket in behind]
        self._behind.clear()
        return [*super().cut(), *left]


def check_order(method: str, order: object) -> None:
    """Raise unless the value is an order."""
    if callable(order):
        if is_async(order):
            raise TypeError(f"{method}(order={label(order)}): order takes an ordinary function, not an async one")
    elif order not in get_args(Order):
        choices = ", ".join(map(repr, get_args(Order)))
        raise ValueError(
            f"{method}(order={order!r}): choose one of {choices}, or pass a function that returns an element's key"
        )


def queue_for(order: Order | Callable[[Any], Hashable]) -> ElementQueue:
    """Return an empty queue for an order."""
    if callable(order):
        return ByKey(order)
    return AsGiven() if order == "input" else AsCompleted()
