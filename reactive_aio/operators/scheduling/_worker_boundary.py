"""The boundary to workers, on the event loop that reads it: chunks out, results back, in order and under demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from ..._core.containers import new_deque, new_dict
from ..._core.guard import FAILURES, PLACE_ENDED
from ..._fusion import ChunkWork
from ..._plan import FlowLike, Inlet
from ...hooks import discard, drop_error
from ...schedulers.base import Report
from ...spec import Subscription, add_demand, quarter, subtract_demand
from ._load import Load

if TYPE_CHECKING:
    from ...schedulers.base import Released, WorkerRegion, Workers

TARGET: Final = 4e-3
"""Seconds of work that make a chunk, if enough elements are there and may be outstanding."""


@define(eq=False)
class Pace:
    """The sizes of chunks, and the number in flight."""

    workers: int
    least: int
    """The elements that may be outstanding where functions are slow."""
    most: int
    """The elements that may be outstanding where they are quick."""
    largest: int = field(init=False)
    """The elements that a chunk may have: two chunks for each worker are among those that may be outstanding."""
    window: int = field(init=False)
    """The elements that may be outstanding: two chunks for each worker have room to double."""
    size: int = field(init=False, default=1)
    quick: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.largest = max(1, self.most // (2 * self.workers))
        self.window = self.least

    def portion(self, window: int) -> int:
        """Return how many elements are requested at a time: whole chunks, about a quarter of the window.

        Then a source that has elements gives them in whole chunks, too, and no small ones take up a place.
        """
        chunk = max(1, window // (2 * self.workers))
        return chunk * max(1, quarter(window) // chunk)

    def learn(self, elements: int, seconds: float) -> None:
        """Take note of how long some elements took: chunks grow by doubling, and shrink at once."""
        fitting = int(TARGET * elements / seconds) if seconds > 0 else self.largest
        self.size = max(1, min(fitting, 2 * self.size, self.largest))
        self.window = min(self.most, max(self.least, 4 * self.workers * self.size))
        self.quick = fitting > 1

    @property
    def chunks(self) -> int:
        """The chunks that may be under way: where they are done in no time, a next one for each worker."""
        return 2 * self.workers if self.quick else self.workers

    def share(self, waiting: int, under_way: int) -> int:
        """Return the size of the next chunk: a fair part of the waiting elements for each idle worker."""
        return min(self.size, ceil(waiting / max(1, self.workers - under_way)))


@define(eq=False)
class Chunk:
    """The elements that were handed to the workers at once, until their results have been delivered."""

    number: int
    items: list[Any]
    results: deque[list[Any]] = field(init=False, factory=new_deque)
    """Parts that wait for their turn or for demand, bounded by what a chunk may send without leave to go on."""
    taken: int = field(init=False, default=0)
    size: int = field(init=False, default=0)
    """Bytes of the elements, as they have travelled."""
    given: int = field(init=False, default=0)
    """Results since the chunk last had leave to go on."""
    given_size: int = field(init=False, default=0)
    """Bytes of those."""
    over: bool = field(init=False, default=False)
    failure: BaseException | None = field(init=False, default=None)


@define(eq=False, repr=False)
class WorkerBoundary:
    """One region on workers: a Subscription for the region after it, a Receiver for the flow before it.

    An element counts as outstanding from the request for it until all results of its chunk have been delivered. There
    are at most ``prefetch`` such elements: requested, waiting for a worker, worked on, or waiting for demand. There are
    up to ``most`` where functions are so quick that larger chunks pay.
    """

    inlet: Inlet[Any]
    prefetch: int
    most: int
    _region: WorkerRegion = field(init=False)
    _pace: Pace = field(init=False)
    _load: Load = field(init=False)
    _release: Released = field(init=False)
    _upstream: Subscription | None = field(init=False, default=None)
    _ended: bool = field(init=False, default=False)
    _failure: BaseException | None = field(init=False, default=None)
    _waiting: deque[Any] = field(init=False, factory=new_deque)
    _count: int = field(init=False, default=0)
    """The elements that have gone into chunks."""
    _numbers: int = field(init=False, default=0)
    _chunks: dict[int, Chunk] = field(init=False, factory=new_dict)
    """Those that have not been delivered, in order."""
    _under_way: int = field(init=False, default=0)
    _demand: int = field(init=False, default=0)
    _outstanding: int = field(init=False, default=0)
    _delivering: bool = field(init=False, default=False)
    _over: bool = field(init=False, default=False)

    def begin(self, workers: Workers, work: ChunkWork, flow: FlowLike) -> None:
        """Begin the region on the workers, and subscribe to the flow before them."""
        self._pace = Pace(workers.count, self.prefetch, self.most)
        self._load = Load(getattr(workers, "byte_limit", None), workers.count, self.most)
        # More results than there can be elements, so that only a chunk that multiplies them has to wait.
        try:
            self._region = workers.add_region(work, self.most + 1, self.inlet.context, self)
        except FAILURES:
            self._over = True
            raise
        self._release = self.inlet.hold()
        self.inlet.subscribe(flow, self, at_once=True, ahead=True)

    # -- the Receiver of the flow before

    def on_subscribe(self, subscription: Subscription) -> None:
        """Fill the prefetch."""
        if self._over:
            subscription.cancel()
        else:
            self._upstream = subscription
            self._request(self._window)

    def on_chunk(self, items: list[Any]) -> None:
        """Take elements for the workers."""
        if self._over:
            discard(items)
        else:
            self._waiting.extend(items)
            self._submit()

    def on_error(self, error: BaseException) -> None:
        """Take the failure of the flow before. It comes after the results of the elements before it."""
        if self._over:
            drop_error(error)
        else:
            self._failure = error
            self.on_complete()

    def on_complete(self) -> None:
        """Take the end of the flow before."""
        self._ended = True
        self._upstream = None
        self._deliver()

    # -- the Subscription of the region behind

    def request(self, n: int) -> None:
        """Deliver results in an event of their own: no signal runs inside ``request``."""
        self._demand = add_demand(self._demand, n)
        if not self._delivering:
            self.inlet.post(self._go_on, None)

    def _go_on(self, _: None) -> None:
        self._deliver()

    def cancel(self) -> None:
        """Cancel the flow before, and let the workers go."""
        if not self._over:
            self._stop()

    # -- what the workers say, on any thread

    def reported(self, report: Report) -> None:
        """Take a report on a chunk."""
        self.inlet.post(self._take, report)

    def sent(self, chunk: int, size: int) -> None:
        """Note the size of a chunk, on the loop. It may be sent again. Request more if that is known to fit in."""
        known = self._chunks.get(chunk)
        if known is not None:
            self._load.held += size - known.size
            known.size = size
            before = self._load.window
            self._load.sent(len(known.items), size)
            if self._load.window > before:
                self._request(self._window - self._outstanding)

    def cleanup_failed(self, error: BaseException) -> None:
        """Take a failed cleanup of the workers, after their earlier reports."""
        self.inlet.post(self.inlet.cleanup_failed, error)

    def lost(self, error: BaseException) -> None:
        """Fail: no more results of the chunks in flight will come."""
        self.inlet.post(self._fail, error)

    # -- on the loop

    def _take(self, report: Report) -> None:
        chunk = self._chunks.get(report.chunk)
        if chunk is None or self._over:
            if report.failure is not None:
                self.inlet.dropped(report.failure)
            return
        if report.taken > chunk.taken:
            self._pace.learn(report.taken - chunk.taken, report.seconds)
        chunk.taken, chunk.over, chunk.failure = report.taken, report.over, report.failure
        chunk.given += len(report.items)
        chunk.given_size += report.size
        self._load.held += report.size
        if report.items:
            chunk.results.append(report.items)
        if report.over:
            self._under_way -= 1
        if report.failure is not None:
            self._need_no_more()
        # First, so that nobody waits for work while results are delivered.
        self._submit()
        self._deliver()

    def _need_no_more(self) -> None:
        """End the flow before: a chunk has failed, and nothing behind that chunk will be delivered."""
        self._ended = True
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()
        waiting, self._waiting = self._waiting, deque()
        discard(waiting)

    def _submit(self) -> None:
        """Submit elements. A chunk has the elements that are there, up to the best size."""
        waiting = self._waiting
        while waiting and not self._over and self._under_way < self._pace.chunks:
            if not self._load.admits(len(self._chunks), self._under_way):
                break
            size = min(self._pace.share(len(waiting), self._under_way), self._load.largest)
            items = first_of(waiting, size)
            number = self._numbers
            self._chunks[number] = Chunk(number, items)
            self._numbers += 1
            self._under_way += 1
            try:
                self._region.submit(number, items, self._count)
            except FAILURES as error:  # no worker has the chunk, so none will report on it
                self.reported(Report(number, [], 0, 0.0, True, error))
            self._count += size

    def _deliver(self) -> None:
        """Deliver in order what demand allows, and see what follows from that."""
        if self._delivering:
            return
        self._delivering = True
        try:
            while not self._over and self._step():
                pass
        finally:
            self._delivering = False

    def _step(self) -> bool:
        """Handle the chunk whose turn it is. Return False if it has to wait."""
        chunk = next(iter(self._chunks.values()), None)
        if chunk is None:
            if self._ended and not self._waiting:
                failure, self._failure = self._failure, None
                self._finish(failure)
            return False
        if chunk.results:
            if not self._demand:
                return False
            self._pass_on(chunk)
        elif chunk.failure is not None:
            failure, chunk.failure = chunk.failure, None
            self._finish(failure)
        elif chunk.over:
            del self._chunks[chunk.number]
            self._outstanding -= len(chunk.items)
            self._lighter(chunk, chunk.size)
            self._ask()
        else:
            if chunk.given > self.most or self._load.has_to_wait(chunk.given_size):
                self._region.go_on(chunk.number)
                self._lighter(chunk, 0)
            return False
        return True

    def _lighter(self, chunk: Chunk, size: int) -> None:
        """Note that results of a chunk have been delivered, and the bytes of its elements."""
        self._load.held -= chunk.given_size + size
        chunk.given = chunk.given_size = 0
        self._submit()

    def _pass_on(self, chunk: Chunk) -> None:
        """Deliver results, no more than were requested."""
        part = chunk.results.popleft()
        if len(part) > self._demand:
            chunk.results.appendleft(part[self._demand :])
            part = part[: self._demand]
        self._demand = subtract_demand(self._demand, len(part))
        self.inlet.on_chunk(part)

    @property
    def _window(self) -> int:
        """The elements that may be outstanding now, by their number and by their bytes."""
        return min(self._pace.window, self._load.window)

    def _ask(self) -> None:
        """Request elements in place of those that are done with, in whole portions."""
        window = self._window
        portion, free = self._pace.portion(window), window - self._outstanding
        if free >= portion:
            self._request(free - free % portion)

    def _request(self, n: int) -> None:
        if self._upstream is not None and n > 0:
            self._outstanding += n
            self._upstream.request(n)

    # -- the end

    def _fail(self, error: BaseException) -> None:
        if not self._over:
            self._finish(error)
        elif not isinstance(error, PLACE_ENDED):
            drop_error(error)

    def _finish(self, error: BaseException | None) -> None:
        self._stop()
        if error is None:
            self.inlet.on_complete()
        else:
            self.inlet.on_error(error)

    def _stop(self) -> None:
        self._over = True
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()
        self._region.leave(self._left)
        # In order: of each chunk first what came of it, then what had not been worked on.
        for chunk in self._chunks.values():
            for part in chunk.results:
                discard(part)
            if chunk.failure is not None:
                self.inlet.dropped(chunk.failure)
            discard(chunk.items[chunk.taken :])
        discard(self._waiting)
        if self._failure is not None:
            self.inlet.dropped(self._failure)
        self._chunks.clear()
        self._waiting.clear()

    def _left(self, join: Callable[[], None] | None = None) -> None:
        """Note, on any thread, that no worker is left for the region. Their reports come before."""
        self.inlet.post(self._release, join)


def first_of(waiting: deque[Any], size: int) -> list[Any]:
    """Take the first elements."""
    if size < len(waiting):
        return [waiting.popleft() for _ in range(size)]
    items = list(waiting)
    waiting.clear()
    return items
