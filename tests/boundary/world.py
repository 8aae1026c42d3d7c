"""The world around a boundary: two event loops, a source above it, a subscriber below, and a thread of somebody else's.

The boundary is the library's own, put together by `assemble`: two regions, each on a loop that runs what was scheduled
on it when the world says so. A thread can be interrupted wherever another thread could see its work: at every look at
the queue of posted events. So one thread's move may come in the middle of another one's. The world runs it to its end
there, as if that thread had the processor for so long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from typing import Any, cast

from attrs import define, field, frozen

from reactive_aio import Subscription, hooks
from reactive_aio._plan import Inlet, Plan, Pushed
from reactive_aio._runtime.assemble import assemble
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.inputs import PushedInput
from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio.extend import flow_of
from reactive_aio.schedulers.current import Staying
from tests.schedules import Choices, Known, Move, check

NOBODY, UP, DOWN, STRANGER = range(4)
"""Threads, by the numbers that stand for their identities."""
NAMES = {UP: "the upper loop", DOWN: "the lower loop"}


class SourceError(Exception):
    """How the source fails."""


@define(eq=False)
class Loop:
    """An event loop that runs a callback when the world says so (as much of one as a region needs)."""

    ready: deque[Callable[[], object]] = field(init=False, factory=deque)

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Callable[[], object], *, context: Context) -> None:
        self.ready.append(lambda: context.run(callback))

    call_soon_threadsafe = call_soon


@frozen(eq=False)
class Place:
    """A scheduler whose loop is the world's."""

    loop: Loop
    name: str = "place"

    def is_here(self) -> bool:
        return False

    def attach(self, lost: Callable[[BaseException], None]) -> Staying:
        return Staying(cast(Any, self.loop))


class Seen(deque[Any]):
    """The queue of a region's events, or of the tasks that wait on a loop. Other threads may interrupt each look at it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def append(self, each: Any) -> None:
        super().append(each)
        self.world.interrupt("posted")

    def __bool__(self) -> bool:
        found = len(self) > 0
        self.world.interrupt("looked")  # behind the look, so that it may be out of date when it is acted upon
        return found

    put = append
    get_nowait = deque[Any].popleft

    def empty(self) -> bool:
        return not self


@frozen
class Origin(Pushed[int]):
    """A source that does what the world says."""

    world: World = field(repr=False)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        self.world.inlet = inlet
        return self.world.source


@define(eq=False)
class Source:
    """The subscription of the source, with its accounts."""

    world: World
    demand: int = field(init=False, default=0)
    made: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    cancelled: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        check(not self.ended and not self.cancelled, "the source is asked after its end")
        self.demand += n
        ahead = self.demand + self.made - len(self.world.taken)
        check(ahead <= self.world.prefetch, f"asked for {ahead} ahead, where prefetch is {self.world.prefetch}")

    def cancel(self) -> None:
        self.cancelled += 1
        check(self.cancelled == 1, "the source is cancelled twice")


@define(eq=False)
class World:
    """The accounts, and the moves that can be made."""

    prefetch: int
    choices: Choices
    moves_left: int
    known: set[object]
    interrupts: bool
    fails: bool
    loops: dict[int, Loop] = field(init=False, factory=lambda: {UP: Loop(), DOWN: Loop()})
    on_stack: list[int] = field(init=False, factory=lambda: [NOBODY])
    source: Source = field(init=False)
    inlet: Any = field(init=False, default=None)
    drivers: list[RegionDriver] = field(init=False, factory=list)
    subscription: Any = field(init=False, default=None)
    requested: int = field(init=False, default=0)
    taken: list[int] = field(init=False, factory=list)
    discarded: list[int] = field(init=False, factory=list)
    dropped: list[BaseException] = field(init=False, factory=list)
    ends: list[str] = field(init=False, factory=list)
    cancelled: bool = field(init=False, default=False)
    deaf: bool = field(init=False, default=False)
    """Whether downstream has cancelled on its own thread, so that it must hear no more."""
    lifetime: Lifetime = field(init=False, factory=Lifetime)

    def run(self, *, begun: bool) -> None:
        """Put the boundary together and make moves until none is left, then let all come to rest."""
        self.source = Source(self)
        flow = (
            flow_of(Origin(self))
            .subscribe_on(Place(self.loops[UP]))
            .publish_on(Place(self.loops[DOWN]), prefetch=self.prefetch)
        )
        with hooks.using(on_discard=self.discarded.append, on_error_dropped=self.dropped.append):
            context = copy_context()
        last = assemble(Plan.of(flow), self, FlowHost(self.lifetime), context)
        assert last.place.before is not None
        self.drivers = [last.place.before, last]
        if begun:
            self.rest()
        for driver in self.drivers:
            self.see(driver)
        while self.move("", self.moves):
            self.check()
        self.moves_left = 0
        self.rest()
        self.check_at_rest()

    @property
    def thread(self) -> int:
        return self.on_stack[-1]

    # -- moves

    def move(self, call: str, moves: Callable[[], Iterator[Move]]) -> bool:
        """Make a move from inside a call, or go on without one."""
        if not self.moves_left:
            return False
        if self.choices.free:
            situation = (call, *self.choices.stack, self.situation())
            if situation in self.known:
                raise Known
            self.known.add(situation)
        options = list(moves())
        choice = self.choices.choose(len(options) + 1)
        if choice:
            self.moves_left -= 1
            self.choices.make(call, *options[choice - 1])
        return choice > 0

    def see(self, driver: RegionDriver) -> None:
        """Have a region's queues be such as can be compared, and looked at by other threads."""
        events, driver._events = driver._events, cast("Any", Seen(self))
        while not events.empty():
            driver._events.put(events.get_nowait())
        waiting, driver.budget._waiting = driver.budget._waiting, Seen(self)
        driver.budget._waiting.extend(waiting)

    def interrupt(self, call: str) -> None:
        """Let other threads move in the middle of what one does."""
        if self.interrupts and self.thread != NOBODY:
            while self.move(call, self.moves):
                pass

    def moves(self) -> Iterator[Move]:
        """Yield the moves of all threads that are not in the middle of one."""
        if self.inlet is not None and UP not in self.on_stack:
            yield from self.moves_of_source()
        for thread, loop in self.loops.items():
            if loop.ready and thread not in self.on_stack:
                yield f"{NAMES[thread]} turns", lambda thread=thread, loop=loop: self.on(thread, loop.ready.popleft())
        if self.subscription is not None:
            if DOWN not in self.on_stack:
                yield from self.moves_of_subscriber(DOWN, "downstream")
            if STRANGER not in self.on_stack:
                yield from self.moves_of_subscriber(STRANGER, "another thread")

    def on(self, thread: int, act: Callable[[], object]) -> None:
        """Act on a thread."""
        self.on_stack.append(thread)
        act()
        self.on_stack.pop()

    def moves_of_source(self) -> Iterator[Move]:
        source = self.source
        if not source.ended and not source.cancelled:
            for n in range(1, min(source.demand, 2) + 1):
                yield f"the source delivers {n}", lambda n=n: self.on(UP, lambda: self.deliver(n))
            yield "the source ends", lambda: self.on(UP, self.end)

    def deliver(self, n: int) -> None:
        source = self.source
        items = list(range(source.made, source.made + n))
        source.demand -= n
        source.made += n
        self.inlet.context.run(self.inlet.on_chunk, items)

    def end(self) -> None:
        self.source.ended = True
        if self.fails:
            self.inlet.context.run(self.inlet.on_error, SourceError())
        else:
            self.inlet.context.run(self.inlet.on_complete)

    def moves_of_subscriber(self, thread: int, name: str) -> Iterator[Move]:
        if not self.cancelled and not self.ends:
            for n in (1, 2):
                yield f"{name} requests {n}", lambda n=n: self.on(thread, lambda: self.request(n))
            yield f"{name} cancels", lambda: self.on(thread, self.cancel)

    def request(self, n: int) -> None:
        self.requested += n
        self.subscription.request(n)

    def cancel(self) -> None:
        self.cancelled = True
        self.deaf = self.thread == DOWN
        self.subscription.cancel()

    # -- the receiver below the boundary

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription

    def on_chunk(self, items: list[int]) -> None:
        self.hear()
        check(items == list(range(len(self.taken), len(self.taken) + len(items))), f"{items} after {self.taken}")
        self.taken += items
        check(len(self.taken) <= self.requested, f"{len(self.taken)} elements for a demand of {self.requested}")
        # From inside of the signal: its own thread, but no other is kept from moving either.
        while self.move("on_chunk", lambda: self.moves_of_subscriber(DOWN, "downstream, inside,")):
            pass

    def on_complete(self) -> None:
        self.take_end("complete")

    def on_error(self, error: BaseException) -> None:
        check(isinstance(error, SourceError), f"it fails with {error!r}")
        self.take_end("error")

    def take_end(self, end: str) -> None:
        self.hear()
        check(not self.ends, "the end comes twice")
        check(self.source.ended, "the end comes before that of the source")
        check(
            len(self.taken) == self.source.made, f"the end comes before {self.source.made - len(self.taken)} elements"
        )
        self.ends.append(end)

    def hear(self) -> None:
        check(self.thread == DOWN, "a signal comes on another thread")
        check(not self.deaf, "a signal comes, though downstream has cancelled")

    # -- the accounts

    def rest(self) -> None:
        """Run what is scheduled until nothing is."""
        while any(loop.ready for loop in self.loops.values()):
            for thread, loop in self.loops.items():
                if loop.ready:
                    self.on(thread, loop.ready.popleft())

    def check(self) -> None:
        """Compare the accounts while nobody is on the stack."""
        lost = set(range(self.source.made)) - {*self.taken, *self.discarded}
        if not any(loop.ready for loop in self.loops.values()):
            self.check_at_rest()
        check(not set(self.taken) & set(self.discarded), "an element is both delivered and discarded")
        check(not (lost and self.ends), f"{lost} are lost behind the end")

    def check_at_rest(self) -> None:
        source, waiting = self.source, self.source.made - len(self.taken)
        if self.cancelled and not self.ends:
            check(bool(source.cancelled) or source.ended or self.inlet is None, "the source is left uncancelled")
            check(sorted(self.discarded) == list(range(len(self.taken), source.made)), f"discarded: {self.discarded}")
            # Both regions may have some to discard; two threads do it in any order.
            check(self.interrupts or self.discarded == sorted(self.discarded), f"discarded: {self.discarded}")
            check(len(self.dropped) == (source.ended and self.fails), f"dropped: {self.dropped}")
        else:
            check(not self.discarded and not self.dropped, "something is told to the hooks, though all was wanted")
            check(not source.cancelled, "the source is cancelled, though all was wanted")
            check(not waiting or len(self.taken) == self.requested, f"{waiting} elements wait that are wanted")
            check(self.ends != [] or not source.ended or waiting > 0, "the end does not come")
            if not source.ended and self.inlet is not None:
                consumed = self.prefetch - source.demand - waiting
                check(consumed < -(-3 * self.prefetch // 4), f"{consumed} are consumed, and no more is asked for")
        over = bool(self.cancelled or self.ends)
        check((self.lifetime._held == 0) == over, f"{self.lifetime._held} holds are left")

    def situation(self) -> object:
        """Return the whole state that the next moves depend on."""
        source = self.source
        return (
            self.moves_left,
            tuple(self.on_stack),
            (self.requested, len(self.taken), len(self.discarded), len(self.dropped), len(self.ends), self.cancelled),
            (source.demand, source.made, source.ended, source.cancelled, self.deaf),
            tuple(len(loop.ready) for loop in self.loops.values()),
            tuple((len(driver.budget._waiting), driver.budget._due.locked()) for driver in self.drivers),
            tuple(map(state_of, self.drivers)),
        )


IGNORED = {"context", "loop", "region", "run", "before", "inner", "receiver", "_release", "abandoned"}


def state_of(value: Any) -> object:
    """Return the state of a region or of what it holds, by its attributes, for comparison with other runs."""
    if isinstance(value, RegionDriver | PushedInput):
        names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name not in IGNORED]
        return tuple(
            getattr(value, name) is None if name == "upstream" else state_of(getattr(value, name, None))
            for name in names
        )
    if isinstance(value, deque | list | tuple):
        return tuple(map(state_of, cast("list[Any]", value)))
    if value is None or isinstance(value, int | str):
        return value
    if hasattr(value, "__length_hint__"):
        return value.__length_hint__()
    return getattr(value, "__name__", type(value).__name__)
