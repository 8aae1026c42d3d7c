"""The parts of a flow as flows of their own: what windows and groups have in common."""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import Any, Final, Protocol, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Drain, Gathering
from ..._fusion import Placed
from ..._fusion.origin import Origin
from ..._plan import Inlet, Nodes, Pushed, SubscribeOn
from ...errors import SourceConsumedError
from ...hooks import discard
from ...schedulers.base import Attachment
from ...schedulers.current import Staying
from ...schedulers.loop import LoopScheduler
from ...spec import Subscription, add_demand, subtract_demand

T = TypeVar("T")

TURNS: Final = 8
"""Turns of the event loop that are more than it takes until somebody acts on what was signalled."""


class Parting(Protocol):
    """What gives a part its elements."""

    def on_taken(self, part: Part, n: int, /) -> None:
        """Take note that elements of a part are about to go to its reader."""

    def on_demand(self, part: Part, /) -> None:
        """Take note that a part is read, and wants elements."""

    def on_left(self, part: Part, kept: int, /) -> None:
        """Take note that a reader has cancelled, when so many elements were kept for it."""


@define(eq=False)
class Part:
    """One part of a flow: keeps its elements, as many as its owner lets it, until they are wanted; read once.

    All state is confined to the loop of the operator until it has ended, and then to that of its reader. What is kept
    when nobody can come to read it any more goes to ``hooks.discard``.
    """

    title: str
    context: Context
    """Of the subscriber of the operator."""
    owner: Parting | None
    """What still gives it elements."""
    kept: deque[Any] = field(init=False, factory=deque[Any])  # bounded by the owner
    ended: bool = field(init=False, default=False)
    error: BaseException | None = field(init=False, default=None)
    opened: bool = field(init=False, default=False)
    """Whether it has been subscribed to."""
    reading: Reading | None = field(init=False, default=None)
    """Its subscription, while there is one."""

    @property
    def starves(self) -> bool:
        """Whether somebody reads it and waits for elements."""
        return self.reading is not None and self.reading.demand > 0 and not self.kept

    def add(self, items: Iterable[Any]) -> None:
        """Take elements; those of a part that its reader has left go to the hook."""
        if self.opened and self.reading is None:
            discard(items)
            return
        self.kept.extend(items)
        if self.reading is not None:
            self.reading.go()

    def end(self, error: BaseException | None) -> None:
        """End it, behind what is kept."""
        reading = self.reading
        self.error, self.owner = error, None
        self.ended = True  # at last: from here on another thread may begin to read it
        if reading is not None:
            reading.go()

    def drop(self) -> None:
        """Let go of what is kept."""
        kept, self.kept = self.kept, deque()
        discard(kept)

    def __del__(self) -> None:
        if self.kept:
            self.context.copy().run(self.drop)


@define(eq=False)
class Reading(Drain):
    """Gives the elements of a part to the region that reads it; the Subscription of that region."""

    part: Part
    demand: int = field(init=False, default=0)
    over: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        """Note what is wanted, and see to it in an event."""
        self.demand = add_demand(self.demand, n)
        if self.part.owner is not None:
            self.part.owner.on_demand(self.part)
        self.later()

    def cancel(self) -> None:
        """Leave: what is kept goes to the hook, as does what is still to come."""
        if not self.over:
            self._close()
            part, kept = self.part, len(self.part.kept)
            owner, part.owner = part.owner, None
            part.drop()
            if owner is not None:
                owner.on_left(part, kept)

    def step(self) -> bool:
        """Give what is kept, as far as it is wanted; behind it the end."""
        part = self.part
        if self.over:
            return False
        if not part.kept:
            if part.ended:
                self._finish()
            return False
        if not self.demand:
            return False
        items = self._take()
        if part.owner is not None:
            part.owner.on_taken(part, len(items))
        self.inlet.on_chunk(items)
        return True

    def _take(self) -> list[Any]:
        kept = self.part.kept
        if len(kept) <= self.demand:
            items, self.part.kept = list(kept), deque()
        else:
            items = [kept.popleft() for _ in range(self.demand)]
        self.demand = subtract_demand(self.demand, len(items))
        return items

    def _finish(self) -> None:
        error = self._close()
        if error is None:
            self.inlet.on_complete()
        else:
            self.inlet.on_error(error)

    def _close(self) -> BaseException | None:
        """Be over; give the failure, which by its traceback may lead back to here."""
        part = self.part
        error, part.error = part.error, None
        self.over, part.reading = True, None
        return error


@frozen(eq=False)
class PartSource(Pushed[T]):
    """The source of a flow that is a part of another."""

    part: Part

    def __str__(self) -> str:
        return self.part.title

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read, for the first time and the last."""
        part = self.part
        if part.opened:
            raise SourceConsumedError(
                f"the {part.title} was subscribed to a second time, but its elements are kept for one reader only"
            )
        part.opened = True
        part.reading = Reading(inlet, part)
        return part.reading


@frozen
class _Home(LoopScheduler):
    """The event loop of the operator, as long as that has to do with the part; from then on whichever one reads it."""

    part: Part

    @property
    def name(self) -> str:
        """How plans show the place."""
        return "the loop of its operator"

    def is_here(self) -> bool:
        """Tell whether the part can be read on the running event loop."""
        return self.part.ended or super().is_here()

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Give the loop; only from another one does it have to be looked after."""
        return Staying(get_running_loop()) if self.is_here() else super().attach(lost)


def placed(part: Part, loop: AbstractEventLoop, origin: Origin) -> Nodes:
    """Return the flow of a part, which is read on the loop of the operator, from wherever."""
    at_home = Placed(SubscribeOn(_Home(loop, part)), origin)
    return Nodes(Placed(PartSource[Any](part), origin), (at_home,))


def soon(gathering: Gathering, call: Callable[[], None], turns: int = TURNS) -> None:
    """Call when those who have just been given a part, or have just heard of its failure, have had the time to act on it.

    One who is given a part by an ``async for`` subscribes to it a few turns later, when the parts may have been
    cancelled because it was the last one wanted. And one who hears of a failure by a part most often leaves the parts for
    it: to be told of it by them as well would be once too often.
    """
    if turns:
        gathering.next_turn(lambda _: soon(gathering, call, turns - 1))
    else:
        call()
