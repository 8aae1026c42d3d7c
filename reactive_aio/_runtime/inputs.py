"""The inputs of a driver's region: an iterator of its own, or lists that arrive from upstream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import length_hint
from typing import Any, Final, Protocol

from .._arbiter import Gathering
from .._fusion import RegionRun, sized
from .._plan import Pulled
from ..hooks import discard
from ..spec import UNBOUNDED, Subscription, add_demand, refill_after

# Elements in one list of a source that runs no code; it takes microseconds to make.
LONGEST_CHUNK: Final = 1024


class Input(Protocol):
    """The input of a region."""

    ended: bool
    """Whether the stages need the end."""
    error: BaseException | None
    """The failure after the last element."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to work on until something arrives."""
        ...

    @property
    def spent(self) -> bool:
        """Whether the last stretch is known to have no more elements."""
        ...

    @property
    def at_end(self) -> bool:
        """Whether it is known, without running the source, that nothing more will come."""
        ...

    def start(self) -> None:
        """Begin, in the first turn."""

    def stretch(self) -> Iterator[Any] | None:
        """Return the next stretch of input, or the rest of the current one. Return None if there is none for now."""
        ...

    def whole_chunk(self, demand: int) -> list[Any] | None:
        """Return a list as it is, if its elements need no work and all are wanted."""
        ...

    def used_up(self) -> bool:
        """Note that the stretch has been consumed; True if there is more to work on."""
        ...

    def more(self, demand: int) -> bool:
        """Return whether there may be more, and request it, by the demand of downstream."""
        ...

    def close(self) -> None:
        """Let go of the source, and drop the arrived elements."""


class PulledInput:
    """The input of a region whose source is an iterator, opened at the first demand."""

    __slots__ = ("_items", "_sized", "_source", "ended", "error", "run")

    idle = False
    spent = False
    """Unknown before the iterator has been asked."""

    def __init__(self, source: Pulled[Any], run: RegionRun) -> None:
        self._source = source
        self._items: Iterator[Any] | None = None
        self._sized = False
        self.run = run
        self.ended = False
        self.error: BaseException | None = None

    def start(self) -> None:
        """Open a source that runs no code of the user, so that an empty one completes without demand."""
        if self._source.plain:
            self._open()

    def _open(self) -> Iterator[Any]:
        items = self._items = self._source.iterate()
        self._sized = sized(items)
        if self._sized:
            self.run.total = length_hint(items)
        return items

    def stretch(self) -> Iterator[Any] | None:
        """Return the next stretch of input, here always the iterator itself."""
        if self.ended:
            return None
        items = self._items
        return self._open() if items is None else items

    def whole_chunk(self, demand: int) -> list[Any] | None:
        """Return the wanted elements as a list if no function of the user is between. The rest comes by passes."""
        if not self._sized or not self.run.empty:
            return None
        chunk = list(islice(self._items or (), min(demand, LONGEST_CHUNK)))
        self.ended = not chunk
        return chunk or None

    def used_up(self) -> bool:
        """Note that the stretch has ended, and with it the source. Return True, because the stages need the end."""
        self.ended = True
        return True

    @property
    def at_end(self) -> bool:
        """Return whether it is known, without running the source, that nothing more will come."""
        return not self.more(0)

    def more(self, demand: int) -> bool:
        """Return whether there may be more: nobody has to be asked, since the pass pulls."""
        return not (self.ended or (self._sized and self._items is not None and not length_hint(self._items)))

    def close(self) -> None:
        """Close the iterator if it can be closed; what its cleanup raises comes out."""
        items, self._items = self._items, None
        self.ended = True
        close = getattr(items, "close", None)
        if close is not None:
            close()


class PushedInput:
    """The input of a region that is fed by another one, or by a source with a will of its own.

    ``outstanding`` counts what was requested and has not arrived. Without prefetch no more is requested than
    the stages need for the demand at hand. With it at most ``prefetch`` elements are outstanding or waiting here. More is requested when three
    quarters of them have been consumed, or one, if the source has to hear of each.
    """

    __slots__ = (
        "_chunks", "_items", "_limit", "_waiting",
        "closed", "discard", "ended", "error", "outstanding", "prefetch", "received", "run", "terminated", "upstream",
    )  # fmt: skip

    def __init__(self, prefetch: int | None, run: RegionRun, *, told: bool = False) -> None:
        self.run = run
        self.prefetch = prefetch
        self._limit = 0 if prefetch is None else 1 if told else refill_after(prefetch)
        self.upstream: Subscription | None = None
        self._chunks: deque[list[Any]] | None = None  # bounded by what was requested; an empty one takes 760 bytes
        self._items: Iterator[Any] | None = None
        self._waiting = 0  # elements in the chunks that follow the current one
        self.outstanding = 0
        self.received = 0
        self.terminated = False
        self.ended = False
        self.closed = False
        self.error: BaseException | None = None
        self.discard: Callable[[Iterable[Any]], None] = discard

    def start(self) -> None:
        """Fill the prefetch."""
        if self.prefetch is not None:
            self._request(self.prefetch)

    def add(self, items: list[Any]) -> None:
        """Take elements that have arrived."""
        if self.closed:
            self.discard(items)
            return
        count = len(items)
        self.received += count
        if self.outstanding != UNBOUNDED:
            self.outstanding -= count
        if self._items is None and not self._chunks and not self.run.empty:  # the next stretch; most lists are
            self._items = iter(items)
            self.run.total = self.received
            return
        if self._chunks is None:
            self._chunks = deque()
        self._chunks.append(items)
        self._waiting += count

    def straight(self, items: list[Any]) -> Iterator[Any] | None:
        """Return the elements that have just arrived. Return None if some wait before them, or more are needed."""
        if self._items is not None or self._chunks or self.outstanding != UNBOUNDED or self.terminated or self.closed:
            return None
        self.received = self.run.total = self.received + len(items)
        return iter(items)

    def passed(self, count: int) -> bool:
        """Count elements that go on as they come. Return False if some wait before them, or no more are taken."""
        if self._items is not None or self._chunks or self.terminated or self.closed:
            return False
        self.received = self.run.total = self.received + count
        if self.outstanding != UNBOUNDED:
            self.outstanding -= count
        return True

    def keep(self, stretch: Iterator[Any]) -> None:
        """Keep the rest of a stretch for the next pass."""
        self._items = stretch

    def end(self, error: BaseException | None) -> None:
        """Note that nothing follows the arrived elements."""
        self.terminated = True
        self.error = error
        self.upstream = None

    def whole_chunk(self, demand: int) -> list[Any] | None:
        """Return a chunk as it is, if its elements need no work and all are wanted."""
        if self.run.empty and self._items is None and self._chunks and len(self._chunks[0]) <= demand:
            chunk = self._chunks.popleft()
            self._waiting -= len(chunk)
            self.run.total = self.received - self._waiting
            return chunk
        return None

    def stretch(self) -> Iterator[Any] | None:
        """Return the rest of the current chunk, or the next one."""
        if self._items is None:
            if not self._chunks:
                self.ended = self.terminated
                return None
            chunk = self._chunks.popleft()
            self._waiting -= len(chunk)
            self._items = iter(chunk)
            self.run.total = self.received - self._waiting
        return self._items

    def used_up(self) -> bool:
        """Note that the current chunk has been consumed; True if there is more to work on."""
        self._items = None
        return bool(self._chunks) or self.terminated

    @property
    def idle(self) -> bool:
        """Return whether there is nothing to work on until something arrives."""
        return self._items is None and not self._chunks and not self.terminated

    @property
    def at_end(self) -> bool:
        """Return whether nothing more will come."""
        return self.terminated and not self.buffered

    @property
    def requested(self) -> int:
        """The elements that have been requested so far."""
        return add_demand(self.received, self.outstanding)

    @property
    def buffered(self) -> int:
        """The elements that have arrived and have not been consumed."""
        items = self._items
        return self._waiting + (0 if items is None else length_hint(items))

    @property
    def spent(self) -> bool:
        """Whether the last stretch has no more elements."""
        items = self._items
        return items is not None and not length_hint(items)

    def more(self, demand: int) -> bool:
        """Request as much as the demand allows, and return whether there may be more."""
        if self.outstanding == UNBOUNDED and not self.terminated:
            return True
        if self.terminated:  # as `at_end` has it, without its calls: a reader asks for each element
            items = self._items
            return self._waiting > 0 or (items is not None and length_hint(items) > 0)
        if self.prefetch is None:
            if demand:
                run = self.run
                need = demand if run.empty else run.demand(demand)
                missing = need if need == UNBOUNDED else need - self.outstanding - self.buffered
                if missing > 0:
                    self._request(missing)
        else:
            items = self._items
            consumed = self.prefetch - self.outstanding - self._waiting
            if items is not None:
                consumed -= length_hint(items)
            if consumed >= self._limit:
                self.outstanding += consumed
                if self.upstream is not None:
                    self.upstream.request(consumed)
        return True

    @property
    def may_be_served(self) -> bool:
        """Whether a combinator feeds this, by nothing but its steps, with as much as is requested."""
        upstream = self.upstream
        serves = isinstance(upstream, Gathering) and type(upstream).request is Gathering.request
        return serves and self.prefetch is None

    def serve(self, n: int) -> None:
        """Request what is missing to ``n`` elements of a combinator, which may deliver them before this returns."""
        missing, upstream = n - self.outstanding, self.upstream
        if missing > 0 and isinstance(upstream, Gathering):  # else it has ended
            self.outstanding = n
            upstream.serve(missing)

    def _request(self, n: int) -> None:
        self.outstanding = add_demand(self.outstanding, n)
        if self.upstream is not None:
            self.upstream.request(n)

    def close(self) -> None:
        """Cancel upstream and drop the arrived elements."""
        upstream, self.upstream = self.upstream, None
        try:
            if upstream is not None:
                upstream.cancel()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self.closed = True
        if self._items is not None:
            self.discard(self._items)
        for chunk in self._chunks or ():
            self.discard(chunk)
        self._chunks = self._items = None
        self._waiting = 0
