"""A substream: a part of a flow that is a flow of its own, such as a window or a group."""

from __future__ import annotations

from abc import abstractmethod
from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from collections.abc import Callable
from contextvars import Context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define, field, frozen

from ..._arbiter import Drain
from ..._fusion import Placed
from ..._fusion.origin import Origin
from ..._plan import LOOP, Inlet, Nodes, Pushed, Step, SubscribeOn
from ...errors import SourceConsumedError
from ...hooks import discard
from ...schedulers.base import Attachment
from ...schedulers.current import Staying
from ...schedulers.loop import LoopScheduler
from ...spec import Subscription, add_demand, subtract_demand

if TYPE_CHECKING:
    from .parting import Ended, Parting


@define(eq=False)
class Substream(Pushed[Any]):
    """A listener of a flow, and the source of a flow that is read once. It keeps as many elements as its owner permits, until there is demand.

    All state is confined to the loop of the operator until it has ended, and then to that of its reader. Elements that
    are kept when nobody can come to read them any more go to ``hooks.discard``.
    """

    is_bare = True

    context: Context
    """Of the subscriber of the operator."""
    owner: Parting | None
    """The parting that still passes elements to it."""
    kept: deque[Any] | tuple[()] = field(init=False, default=())  # bounded by the owner
    """Made when it is needed: an empty deque takes 760 bytes, and there may be many substreams."""
    ended: bool = field(init=False, default=False)
    error: BaseException | None = field(init=False, default=None)
    ending: Ended | None = field(init=False, default=None)
    """Who else gets the failure."""
    _traceback: TracebackType | None = field(init=False, default=None)
    """The first one of the failure. Each reader that raises the failure adds to it."""
    opened: bool = field(init=False, default=False)
    """Whether it has been subscribed to."""
    reading: Reading | None = field(init=False, default=None)
    """Its subscription, while there is one."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return its name in errors and plans; made when one of them asks."""

    @property
    def starves(self) -> bool:
        """Whether it has a reader that waits for elements."""
        return self.reading is not None and self.reading.demand > 0 and not self.kept

    def __str__(self) -> str:
        return self.title

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read, for the first time and the last."""
        if self.opened:
            raise SourceConsumedError(
                f"the {self.title} was subscribed to a second time, but it serves only one reader"
            )
        self.opened = True
        reading = self.reading = Reading(inlet, self)
        if self.owner is not None:
            self.owner.on_opened(self)
        return reading

    def add(self, items: list[Any]) -> None:
        """Take elements, in a list of its own. If its reader has left, they go to the hook."""
        if self.reading is not None:
            self.reading.add(items)
        elif self.opened:
            discard(items)
        else:
            self.keep(items)

    def keep(self, items: list[Any]) -> None:
        """Keep elements until there is demand."""
        if self.kept:
            self.kept.extend(items)
        else:
            self.kept = deque(items)

    def end(self, error: BaseException | None) -> None:
        """End it, after the kept elements."""
        reading, owner = self.reading, self.owner
        self.error, self.owner = error, None
        self.ending = None if error is None or owner is None else owner.ending
        self._traceback = None if error is None else error.__traceback__
        self.ended = True  # at last: from here on another thread may begin to read it
        if reading is not None:
            reading.end()

    def take_error(self) -> BaseException | None:
        """Return the failure as it came, and let go of it. Its traceback may lead back to here."""
        error, self.error, traceback, self._traceback = self.error, None, self._traceback, None
        return None if error is None else BaseException.with_traceback(error, traceback)

    def drop(self) -> None:
        """Drop the kept elements."""
        kept, self.kept = self.kept, ()
        discard(kept)

    def __del__(self) -> None:
        if self.kept:
            self.context.copy().run(self.drop)


@define(eq=False)
class Reading(Drain):
    """Passes the elements of a substream to the region that reads it. It is the Subscription of that region."""

    substream: Substream
    demand: int = field(init=False, default=0)
    over: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        """Note the demand, and serve it in an event."""
        substream = self.substream
        self.demand = add_demand(self.demand, n)
        if substream.kept or substream.ended:
            self.later()
        elif substream.owner is not None:
            substream.owner.on_starving(substream)

    def add(self, items: list[Any]) -> None:
        """Pass elements on if all are wanted and none wait before them. Else keep them."""
        if self.substream.kept or self.demand < len(items) or not self.idle:
            self.substream.keep(items)
            self.go()
            return
        self.work(lambda: self._give(items))

    def end(self) -> None:
        """End now if nothing is kept, else after the kept elements."""
        if self.substream.kept or not self.idle:
            self.go()
        else:
            self.work(self._finish)

    def cancel(self) -> None:
        """Leave. Kept and later elements go to the hook."""
        if not self.over:
            error = self._close()
            substream, kept = self.substream, len(self.substream.kept)
            owner, substream.owner = substream.owner, None
            substream.drop()
            if owner is not None:
                owner.on_left(substream, kept)
            if error is not None and substream.ending is not None and substream.ending.unheard():
                self.inlet.dropped(error)

    def step(self) -> bool:
        """Pass on the kept elements, as far as there is demand, and then the end."""
        substream = self.substream
        if self.over:
            return False
        if not substream.kept:
            if substream.ended:
                self._finish()
            return False
        if not self.demand:
            return False
        self._give(self._take())
        return True

    def _take(self) -> list[Any]:
        kept = self.substream.kept
        if kept and len(kept) > self.demand:
            return [kept.popleft() for _ in range(self.demand)]
        self.substream.kept = ()
        return list(kept)

    def _give(self, items: list[Any]) -> None:
        count, substream = len(items), self.substream
        self.demand = subtract_demand(self.demand, count)
        if substream.owner is not None:
            substream.owner.on_taken(substream, count)
        self.inlet.on_chunk(items)

    def _finish(self) -> None:
        error = self._close()
        if error is None:
            self.inlet.on_complete()
            return
        if self.substream.ending is not None:
            self.substream.ending.got()
        self.inlet.on_error(error)

    def _close(self) -> BaseException | None:
        """End, and return the failure."""
        self.over, self.substream.reading = True, None
        return self.substream.take_error()


class Ending(Protocol):
    """Something that ends, and needs the event loop of the operator no more."""

    ended: bool


@frozen(eq=False)
class Home:
    """The event loop of the operator, as long as that has to do with a substream; from then on that of its reader."""

    target: AbstractEventLoop
    until: Ending
    """The substream, or something that ends later."""

    @property
    def name(self) -> str:
        """The name of the place in plans."""
        return "the loop of its operator"

    def is_here(self) -> bool:
        """Return whether the substream can be read on the running event loop."""
        if self.until.ended:
            return True
        try:
            return get_running_loop() is self.target
        except RuntimeError:
            return False

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the attachment to the loop. Only an attachment from another loop needs care."""
        return Staying(get_running_loop()) if self.is_here() else LoopScheduler(self.target).attach(lost)

    def steps(self, origin: Origin) -> tuple[Step]:
        """Return the step of a flow that is read here, from wherever. It refers to this, so it is not kept here."""
        at_home: Step = Placed(SubscribeOn(self), origin)
        return (at_home,)

    def nodes(self, substream: Substream, steps: tuple[Step], origin: Origin) -> Nodes:
        """Return the flow of a substream that is read here."""
        return Nodes(Placed(substream, origin), steps, LOOP, self)
