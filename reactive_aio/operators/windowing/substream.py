"""A substream: a part of a flow that is a flow of its own, such as a window or a group."""

from __future__ import annotations

from abc import abstractmethod
from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from collections.abc import Callable
from contextvars import Context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import Factory, define, field, frozen

from ..._arbiter import Drain
from ..._core.contexts import run_in
from ..._fusion import Placed
from ..._fusion.origin import Origin
from ..._plan import LOOP, Buffered, BufferReader, Inlet, Nodes, Step, SubscribeOn
from ...errors import SourceConsumedError
from ...hooks import discard
from ...schedulers.base import Attachment
from ...schedulers.current import Staying
from ...schedulers.loop import LoopScheduler
from ...spec import UNBOUNDED, Subscription, add_demand

if TYPE_CHECKING:
    from .parting import Ended, Parting


LONGEST: Final = 1024
"""The most elements that are taken at once of more than are wanted."""


@define(eq=False)
class Substream(Buffered[Any]):
    """A listener of a flow, and the source of a flow that is read once. It keeps as many elements as its owner permits, until there is demand.

    All state is confined to the loop of the operator until it has ended, and then to that of its reader. Elements that
    are kept when nobody can come to read them any more go to ``hooks.discard``.
    """

    context: Context
    """Of the subscriber of the operator."""
    owner: Parting | None
    """The parting that still passes elements to it."""
    kept: list[Any] | deque[Any] | tuple[()] = field(init=False, default=())  # bounded by the owner
    """The first list as it came, with what has come since. It is a deque once a part of it has been taken."""
    demand: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    error: BaseException | None = field(init=False, default=None)
    ending: Ended | None = field(init=False, default=None)
    """Who else gets the failure."""
    _traceback: TracebackType | None = field(init=False, default=None)
    """The first one of the failure. Each reader that raises the failure adds to it."""
    opened: bool = field(init=False, default=False)
    """Whether it has been subscribed to."""
    reader: BufferReader | None = field(init=False, default=None)
    """Its reader, while there is one."""
    passes_on = True

    @property
    @abstractmethod
    def title(self) -> str:
        """Return its name in errors and plans; made when one of them asks."""

    @property
    def starves(self) -> bool:
        """Whether it has a reader that waits for elements."""
        return self.reader is not None and self.demand > 0 and not self.kept

    def __str__(self) -> str:
        return self.title

    # -- for its owner

    def add(self, items: list[Any]) -> None:
        """Take elements, in a list of its own. If its reader has left, they go to the hook."""
        if self.reader is None and self.opened:
            discard(items)
            return
        if self.kept:
            self.kept.extend(items)
        else:
            self.kept = items
        if self.reader is not None:
            self.reader.on_ready()

    def end(self, error: BaseException | None) -> None:
        """End it, after the kept elements."""
        reader, owner = self.reader, self.owner
        self.error, self.owner = error, None
        self.ending = None if error is None or owner is None else owner.ending
        self._traceback = None if error is None else error.__traceback__
        self.ended = True  # at last: from here on another thread may begin to read it
        if reader is not None:
            reader.on_ready()

    def drop(self) -> None:
        """Drop the kept elements."""
        kept, self.kept = self.kept, ()
        discard(kept)

    def __del__(self) -> None:
        if self.kept:
            self.context.copy().run(self.drop)

    # -- for its reader

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Have a region read it."""
        reading = Reading(inlet, self)
        self.read_by(reading)
        return reading

    def read_by(self, reader: BufferReader) -> None:
        """Begin to read, for the first time and the last."""
        if self.opened:
            raise SourceConsumedError(
                f"the {self.title} was subscribed to a second time, but it serves only one reader"
            )
        self.opened, self.reader = True, reader
        if self.owner is not None:
            self.owner.on_opened(self)

    def request(self, n: int) -> bool:
        """Add to the demand. Return whether there is something to take, elements or the end."""
        self.demand = add_demand(self.demand, n)
        if self.kept or self.ended:
            return True
        if self.owner is not None:
            self.owner.on_starving(self)
        return False

    def take(self) -> list[Any] | None:
        """Return kept elements, as far as there is demand. Return None if there are none."""
        kept, demand = self.kept, self.demand
        count = min(len(kept), demand)
        if not count:
            return None
        if count < len(kept):
            self.kept = rest = kept if isinstance(kept, deque) else deque(kept)
            count = min(count, LONGEST)  # there is a look at the clock behind each list
            items = [rest.popleft() for _ in range(count)]
        else:
            self.kept, items = (), kept if isinstance(kept, list) else list(kept)
        if demand != UNBOUNDED:
            self.demand = demand - count
        if self.owner is not None:
            self.owner.on_taken(self, count)
        return items

    def finish(self) -> BaseException | None:
        """Take the end, when it has come and nothing is kept. Return the failure if it is one: `got` or `missed` follows then."""
        self.reader = None
        return None if self.error is None else self._take_error()

    def got(self) -> None:
        """Note that the failure that was taken is raised or signalled."""
        if self.ending is not None:
            self.ending.got()

    def missed(self, error: BaseException, dropped: Callable[[BaseException], None]) -> None:
        """Note that nobody gets the failure that was taken. It goes to ``dropped`` if nobody else gets it."""
        if self.ending is None or self.ending.unheard():
            dropped(error)

    def leave(self, dropped: Callable[[BaseException], None]) -> None:
        """Read no more. Kept elements, and later ones, go to the hook. A failure that nobody else gets goes to ``dropped``."""
        if self.reader is None:
            return
        self.reader = None
        error, owner, kept = self._take_error(), self.owner, len(self.kept)
        self.owner = None
        self.drop()
        if owner is not None:
            owner.on_left(self, kept)
        if error is not None:
            self.missed(error, dropped)

    def _take_error(self) -> BaseException | None:
        """Return the failure as it came, and let go of it. Its traceback may lead back to here."""
        error, self.error, traceback, self._traceback = self.error, None, self._traceback, None
        return None if error is None else BaseException.with_traceback(error, traceback)


@define(eq=False)
class Reading(Drain):
    """Passes the elements of a substream to the region that reads it. It is the Subscription of that region."""

    substream: Substream
    over: bool = field(init=False, default=False)
    _context: Context = field(init=False, default=Factory(lambda self: self.inlet.context, takes_self=True))

    def request(self, n: int) -> None:
        """Note the demand, and serve it in an event."""
        if self.substream.request(n):
            self.later()

    def on_ready(self) -> None:
        """Pass on what there is, in the context of the reader: this is the context of the operator."""
        if self.busy or not run_in(self._context, self.go):
            self.later()

    def cancel(self) -> None:
        """Leave. Kept and later elements go to the hook."""
        self.over = True
        self.substream.leave(self.inlet.dropped)

    def step(self) -> bool:
        """Pass on the kept elements, as far as there is demand, and then the end."""
        substream = self.substream
        if self.over:
            return False
        if substream.kept:
            items = substream.take()
            if items is not None:
                self.inlet.on_chunk(items)
            return items is not None
        if substream.ended:
            self.over = True
            error = substream.finish()
            if error is None:
                self.inlet.on_complete()
            else:
                substream.got()
                self.inlet.on_error(error)
        return False


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
