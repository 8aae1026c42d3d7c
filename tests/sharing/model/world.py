"""A world around a shared flow, in which every order of events up to a bound can be tried.

The code is the library's own: `Sharing`, `Run`, `Log`, `Reader`, `Delivery`. The world around it is played:

- Event loops, one for each subscription. They keep posted callbacks until the model lets them come, so that events come
  in any order among each other.
- Regions that record the elements that they are given.
- A source that delivers, ends, and finishes its cleanup at any time.

The invariants are I1 to I12 below, but for I9, which is of hubs (`test_permits.py`); each check names the one it is of.

- I1: the fastest is no more than lag + replay elements ahead of the slowest.
- I2: a reader is given no more than it asked for, without a gap, from the place where the replay began when it joined.
  The first to join a run that is held open begins with the first element that nobody has had.
- I3: the source is asked for no more than the fastest wants, and never behind its end or a cancel.
- I4: at most one run may be joined, at most one connection is open.
- I5: a run that has been left, or that has ended, is closed to newcomers, unless it is a cache.
- I6: where nothing is under way and somebody wants what the window allows, the source owes an element.
- I7: each reader that stays hears exactly one end, behind all that is kept for it.
- I8: where nothing is under way and nobody is there, the source has been left.
- I10: nobody else's code runs under the lock.
- I11: nothing more is taken for a reader before it has been given what was taken.
- I12: an element that no reader has taken is discarded, once, as soon as none can get it any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from attrs import define, field, frozen

from reactive_aio import Flow, hooks, schedulers
from reactive_aio.operators.sharing.reader import Reader, ReaderChunk
from reactive_aio.operators.sharing.run import Run
from reactive_aio.operators.sharing.shared import Holder, Restart, Sharing
from reactive_aio.spec import Subscription
from tests.schedules import Choices, Known, Move, check

FAILURE = OSError("of the source")
FLOW = Flow.never().subscribe_on(schedulers.thread("nowhere"))
"""The flow that is shared. The source of the model stands for it."""


@frozen
class Bounds:
    """How far the model goes."""

    subscribers: int = 2
    subscriptions: int = 3
    """How often they subscribe in all."""
    asks: tuple[int, ...] = (1,)
    """The numbers that may be requested at a time."""
    times: int = 1
    """How often each subscription asks."""
    lists: tuple[int, ...] = (1,)
    """How long the lists of the source may be."""
    lag: int = 1
    replay: int = 0
    restart: Restart = "always"
    start: int = 1
    held: bool = False
    linger: bool = False
    completes: bool = True
    fails: bool = True
    together: bool = False
    """Whether all subscribe on one loop; else each subscription has its own."""
    hurried: bool = False
    """Whether the time of a turn is up after each reader."""
    in_turns: bool = False
    """Whether the source gives in turns of the loop on which all subscribe, so that a list may be given at once."""
    late: bool = False
    """Whether elements may come behind a cancel; they change nothing but what is discarded."""


@define(eq=False)
class Loop:
    """Keeps what is posted, in its order; timers may come at any time."""

    world: World
    events: deque[Callable[[], None]] = field(factory=deque)
    timers: list[Timer] = field(factory=list)

    def call_soon(self, call: Callable[..., None], *args: Any, context: Context | None = None) -> None:
        self.world.check_lock()
        self.events.append(lambda: call(*args))

    call_soon_threadsafe = call_soon

    def call_later(self, _: float, call: Callable[..., None], *args: Any) -> Timer:
        self.timers.append(Timer(self, lambda: call(*args), self.world.absences))
        return self.timers[-1]

    def is_closed(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def come(self) -> None:
        self.events.popleft()()


@define(eq=False)
class Timer:
    """A timer that is set, in an absence of all subscribers."""

    loop: Loop
    call: Callable[[], None]
    absence: int

    def cancel(self) -> None:
        if self in self.loop.timers:
            self.loop.timers.remove(self)

    def ring(self) -> None:
        self.loop.timers.remove(self)
        before = self.loop.world.sharing.current
        self.call()
        if before is not self.loop.world.sharing.current:
            check(self.absence == self.loop.world.absences, "linger: a timer of an absence that is over ends the run")


class Element(int):
    """The number of an element in its run, with the source that made it."""

    source: Source


@define(eq=False)
class Source:
    """One subscription to the flow that is shared."""

    world: World
    run: Run
    ended: Callable[[], None]
    asked: int = 0
    made: int = 0
    over: bool = False
    cancelled: bool = False
    cleaned: bool = False

    def request(self, n: int) -> None:
        self.world.check_lock()
        check(not self.over, "I3: the source is asked behind its end")
        check(not self.cancelled, "I3: the source is asked behind a cancel")
        self.asked += n
        wanted = max((each.cursor.goal for each in self.run.everybody), default=0)
        check(self.asked <= wanted, "I3: more is asked for than the fastest wants")

    def cancel(self) -> None:
        self.world.check_lock()
        check(not self.cancelled, "the source is cancelled twice")
        self.cancelled = True

    @property
    def open(self) -> bool:
        return not (self.over or self.cancelled)

    def moves(self) -> Iterator[Move]:
        if not self.cleaned and not self.over:
            yield from self._signals()
        if not self.cleaned and (self.over or self.cancelled):
            yield "the cleanup is done", self.clean

    def _signals(self) -> Iterator[Move]:
        # A cancel takes its time to arrive, so signals may come behind it.
        for n in self.world.bounds.lists:
            if n <= self.asked - self.made and (not self.cancelled or self.world.bounds.late):
                yield f"the source gives {n}", partial(self.give, n)
        if self.world.bounds.completes:
            yield "the source completes", lambda: self.end(None)
        if self.world.bounds.fails:
            yield "the source fails", lambda: self.end(FAILURE)

    def give(self, n: int) -> None:
        items = [Element(number) for number in range(self.made, self.made + n)]
        for each in items:
            each.source = self
        self.made += n
        with self.turn():
            self.run.on_chunk(items)

    @contextmanager
    def turn(self) -> Generator[None]:
        """Yield in a turn of the loop, if elements come that way."""
        for each in self.run.deliveries.values() if self.world.bounds.in_turns else ():
            each.budget.begin()
        yield
        for each in self.run.deliveries.values():
            each.budget.until = 0.0

    def end(self, error: BaseException | None) -> None:
        self.over = True
        if error is None:
            self.run.on_complete()
        else:
            self.run.on_error(error)

    def clean(self) -> None:
        self.cleaned = True
        self.ended()


class Taken(deque[ReaderChunk]):
    """Elements that have been taken and not given yet."""

    def extend(self, taken: Iterable[ReaderChunk]) -> None:
        super().extend(taken)
        readers = [each for each, _, _ in self]
        check(len(readers) == len(set(readers)), "I11: more is taken before all has been given")


@define(eq=False)
class Inlet:
    """The region of one subscription."""

    subscriber: Subscriber
    loop: Loop
    context: Context = field(factory=copy_context)
    reader: Reader = field(init=False)
    asked: int = 0
    wanted: int = 0
    expected: int = 0
    """The number of the element that is to come next."""
    first: int = 0
    ended: bool = False
    left: bool = False
    released: bool = False
    holds: set[object] = field(init=False, factory=set)

    def hold(self) -> Callable[[], None]:
        hold = object()
        self.holds.add(hold)
        return lambda: self._release(hold)

    def _release(self, hold: object) -> None:
        self.subscriber.world.check_lock()
        check(hold in self.holds, "a hold is released twice")
        self.holds.discard(hold)
        self.released = not self.holds

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        self.loop.call_soon(handle, value)

    def on_chunk(self, items: list[Any]) -> None:
        self.subscriber.world.check_lock()
        check(not self.ended, "I7: elements come behind the end")
        if self.left:  # a region that has been cancelled discards them
            check(self.subscriber.world.bounds.hurried, "a reader that has left is given elements")
            return
        check(
            items == list(range(self.expected, self.expected + len(items))),
            "I2: there is a gap, or something comes twice",
        )
        self.expected += len(items)
        check(self.expected - self.first <= self.wanted, "I2: more is given than was asked for")

    def on_error(self, error: BaseException) -> None:
        self._end(error)

    def on_complete(self) -> None:
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        self.subscriber.world.check_lock()
        check(not self.ended, "I7: the end is told twice")
        if self.left:
            check(self.subscriber.world.bounds.hurried, "a reader that has left hears of the end")
            return
        run = self.reader.broadcast
        check(self.expected == run.log.made, "I7: the end overtakes elements")
        self.ended = True
        self.subscriber.heard()


@define(eq=False)
class Subscriber:
    """Subscribes, asks, leaves, hears of the end, and may subscribe again in the middle of that."""

    world: World
    number: int
    inlet: Inlet | None = None

    @property
    def there(self) -> bool:
        return self.inlet is not None and not self.inlet.ended and not self.inlet.left

    def moves(self) -> Iterator[Move]:
        bounds, inlet = self.world.bounds, self.inlet
        if not self.there and self.world.may_subscribe:
            yield f"{self.number} subscribes", self.subscribe
        if inlet is not None and self.there:
            for n in bounds.asks:
                if inlet.asked < bounds.times:
                    yield f"{self.number} asks for {n}", partial(self.ask, n)
            yield f"{self.number} leaves", self.leave

    def subscribe(self) -> None:
        world, sharing = self.world, self.world.sharing
        inlet = self.inlet = Inlet(self, world.meeting if world.bounds.together else Loop(world))
        world.inlets.append(inlet)
        before = sharing.current
        inlet.expected = inlet.first = -1
        rest = world.rest if before is not None and not before.log.ended and not before.everybody else None
        inlet.reader = sharing.join(Reader, inlet)  # type: ignore[arg-type] # as much of an Inlet as it takes
        run, delivery = inlet.reader.broadcast, inlet.reader.delivery
        assert isinstance(run, Run)
        if not isinstance(delivery.taken, Taken):
            delivery.taken = Taken(delivery.taken)
        check(not run.left, "I5: one joins a run that has been left")
        check(not run.log.ended or not sharing.begins_anew_behind(run.log.error), "I5: one joins a run that has ended")
        start = run.log.made - min(run.log.made, sharing.replay)
        inlet.expected = inlet.first = start if rest is None else min(rest, start)
        check(
            inlet.reader.cursor.at == inlet.first,
            "I2: a newcomer begins elsewhere than with the replay, or what nobody has had",
        )
        world.met(run)
        world.rest = 0 if run is not before else world.rest

    def ask(self, n: int) -> None:
        assert self.inlet is not None
        self.inlet.asked += 1
        self.inlet.wanted += n
        self.inlet.reader.request(n)

    def leave(self) -> None:
        assert self.inlet is not None
        self.inlet.left = True
        run = self.inlet.reader.broadcast
        places = [(each.reader.cursor.at, each.first) for each in self.world.inlets if each.reader.broadcast is run]
        had = [at for at, first in places if at > first]
        self.world.rest = max([*had, self.inlet.reader.cursor.at])
        self.inlet.reader.cancel()
        if not any(each.there for each in self.world.subscribers):
            self.world.absences += 1

    def heard(self) -> None:
        """Subscribe again inside the end that is heard, as `retry` does, or do not."""
        if self.world.may_subscribe and self.world.choices.choose(2):
            self.world.choices.make("heard", f"{self.number} subscribes again, inside the end", self.subscribe)


@define(eq=False)
class World:
    """A shared flow with its source and its subscribers."""

    bounds: Bounds
    choices: Choices
    sharing: Sharing = field(init=False)
    home: Loop = field(init=False)
    meeting: Loop = field(init=False)
    """Where all subscribe who do so together."""
    subscribers: list[Subscriber] = field(init=False)
    inlets: list[Inlet] = field(factory=list)
    runs: list[Run] = field(factory=list)
    sources: list[Source] = field(factory=list)
    absences: int = 0
    rest: int = 0
    """The next subscriber begins with this element, if the last has left a run that is held open."""
    dropped: list[BaseException] = field(factory=list)
    discarded: list[Element] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        bounds = self.bounds
        linger = 1.0 if bounds.linger else None
        with hooks.using(on_error_dropped=self.dropped.append, on_discard=self._discard):
            self.sharing = Sharing(
                FLOW, bounds.lag, bounds.replay, None, bounds.start, bounds.restart, linger
            )  # fmt: skip
        self.home = Loop(self)
        self.meeting = Loop(self)
        self.subscribers = [Subscriber(self, n) for n in range(bounds.subscribers)]
        if bounds.held:
            self.sharing.holder = Holder(self.home, self.sharing.context)  # type: ignore[arg-type]

    def connect(self, _: Any, receiver: Run, context: Context, ended: Callable[[], None]) -> Subscription:
        """Stand for the engine: begin with the source."""
        self.check_lock()
        check(all(each.cleaned for each in self.sources), "I4: two connections are open")
        source = Source(self, receiver, ended)
        self.sources.append(source)
        receiver.in_turns = self.bounds.in_turns
        receiver.on_subscribe(source)
        return source

    def met(self, run: Run) -> None:
        """Take note of a run."""
        if run not in self.runs:
            self.runs.append(run)

    # -- what may happen

    @property
    def may_subscribe(self) -> bool:
        return len(self.inlets) < self.bounds.subscriptions

    @property
    def loops(self) -> list[Loop]:
        return [self.home, self.meeting] + [each.loop for each in self.inlets if each.loop is not self.meeting]

    def moves(self) -> list[Move]:
        found: list[Move] = []
        for number, loop in enumerate(self.loops):
            if loop.events:
                found.append((f"an event of loop {number}", loop.come))
            found += [("a timer", timer.ring) for timer in loop.timers]
        for source in self.sources:
            found += source.moves()
        for subscriber in self.subscribers:
            found += subscriber.moves()
        return found

    def run(self, known: set[object]) -> None:
        """Try one order of events."""
        with hooks.using(on_error_dropped=self.dropped.append, on_discard=self._discard):
            self._run(known)

    def _discard(self, element: object) -> None:
        self.check_lock()
        assert isinstance(element, Element)
        self.discarded.append(element)

    def _run(self, known: set[object]) -> None:
        """Make moves until there are none, or a situation has been met before."""
        while moves := self.moves():
            label, move = moves[self.choices.choose(len(moves))]
            self.choices.make("", label, move)
            self.come_to_nothing()
            if self.choices.free:  # what was prescribed has been looked at before
                self.check()
                state = self.state()
                if state in known:
                    raise Known
                known.add(state)

    def come_to_nothing(self) -> None:
        """Let those events come at once that change nothing, whenever they come: of those who have left."""
        if self.bounds.together:
            return
        for inlet in self.inlets:
            if (inlet.left or inlet.ended) and inlet.loop.events and inlet.reader.delivery.posted:
                while inlet.loop.events:
                    inlet.loop.come()

    # -- what must hold between any two moves

    def check(self) -> None:
        bounds, sharing = self.bounds, self.sharing
        for run in self.runs:
            log = run.log
            if run.everybody:
                behind = log.made - min(each.cursor.at for each in run.everybody)
                check(behind <= bounds.lag + bounds.replay, "I1: the fastest is too far ahead of the slowest")
            if sharing.current is run:
                check(not run.left, "I5: a run that has been left can be joined")
                closed = log.ended and sharing.begins_anew_behind(log.error)
                check(not closed, "I5: a run that has ended can be joined")
        for source in self.sources:
            self.check_discarded(source)
        if not any(loop.events for loop in self.loops):
            self.check_quiet()

    def check_discarded(self, source: Source) -> None:
        run, log = source.run, source.run.log
        discarded = [each for each in self.discarded if each.source is source]
        kept = [each.cursor.at for each in run.everybody]
        if self.sharing.current is run:
            kept += [log.head.first] if log.rest is None else [log.head.first, log.rest.at]
        for number in range(source.made):
            readers = [each for each in self.inlets if each.reader.broadcast is run and each.first <= number]
            had = any(number < each.reader.cursor.at for each in readers)
            expected = 0 if had or min(kept, default=log.made) <= number < log.made else 1
            times = sum(each == number for each in discarded)
            check(times == expected, f"I12: an element is discarded {times} times")

    def check_lock(self) -> None:
        check(not self.sharing.mutex.is_mine, "I10: somebody else's code runs under the lock")

    def check_quiet(self) -> None:
        for inlet in self.inlets:
            if inlet.ended or inlet.left:
                over = all(each.cleaned or each.open for each in self.sources)
                check(inlet.released or not over, "a hold is kept though all has been cleaned up")
                continue
            run, cursor = inlet.reader.broadcast, inlet.reader.cursor
            assert isinstance(run, Run)
            log = run.log
            check(not cursor.is_due, "I6: what is there and wanted is not given")
            check(not (log.ended and cursor.at == log.made), "I7: the end is not told")
            check(
                run.begun or not all(each.cleaned for each in self.sources), "I6: a run that is wanted does not begin"
            )
            slowest = min(each.cursor.at for each in run.everybody)
            wants = run.started and cursor.goal > log.made and log.made < slowest + self.bounds.lag
            if wants and run.begun and not log.ended:
                source = next(each for each in self.sources if each.run is run)
                check(source.asked > source.made, "I6: somebody waits, and nothing has been asked for")
        if not any(each.there for each in self.subscribers) and not self.bounds.held:
            check(not any(each.open for each in self.sources), "I8: nobody is there, and the source goes on")

    # -- the situation, whatever its subscribers and runs are called

    def state(self) -> object:
        there = sorted(filter(None, (self._state_of(each) for each in self.subscribers)))
        runs = tuple(self._state_of_run(run) for run in self._alive())
        return (len(self.inlets), tuple(there), runs, self._events(), len(self.home.timers))

    def _alive(self) -> list[Run]:
        """The runs that something refers to, in the order in which they were begun."""
        refers = {id(self.sharing.current), id(self.sharing.connected)}
        refers |= {
            id(each.inlet.reader.broadcast) for each in self.subscribers if each.inlet is not None and each.there
        }
        return [run for run in self.runs if id(run) in refers]

    def _state_of(self, subscriber: Subscriber) -> tuple[object, ...]:
        inlet = subscriber.inlet
        if inlet is None or not subscriber.there:
            # An event that is posted to a subscriber that has left may still begin a run.
            return (-1,)
        alive = self._alive()
        reader = inlet.reader
        run = next(n for n, each in enumerate(alive) if each is reader.broadcast)
        behind = reader.broadcast.log.made - reader.cursor.at
        return (
            run, len(inlet.loop.events), behind, reader.cursor.goal - reader.cursor.at,
            inlet.asked, reader.is_due, self._turn_of(reader),
        )  # fmt: skip

    def _turn_of(self, reader: Reader) -> tuple[object, ...]:
        """Return the place of a reader among those who have a turn."""
        delivery = reader.delivery
        due = next((n for n, each in enumerate(delivery.due) if each is reader), -1)
        taken = [(n, len(items), end is None) for n, (each, items, end) in enumerate(delivery.taken) if each is reader]
        return (delivery.posted, delivery.news, len(delivery.due), due, len(delivery.taken), tuple(taken))

    def _events(self) -> tuple[int, ...]:
        """The events that are posted to those who have left. They may still begin a run."""
        return (
            len(self.home.events),
            *sorted(len(each.loop.events) for each in self.inlets if each.left or each.ended),
        )

    def _state_of_run(self, run: Run) -> tuple[object, ...]:
        log = run.log
        source = next((each for each in self.sources if each.run is run), None)
        up = None if source is None else (source.asked - source.made, source.over, source.cancelled, source.cleaned)
        rest = None if log.rest is None else log.made - log.rest.at
        return (
            run is self.sharing.current, run is self.sharing.connected, run.begun, run.left, run.finished, run.started,
            run.asked - log.made, log.ended, log.error is None, rest, up, min(log.made, self.bounds.replay),
            log.made - log.settled, tuple((log.made - a, log.made - b) for a, b in log.owed), log.made - log.head.first,
        )  # fmt: skip
