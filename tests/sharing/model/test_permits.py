"""The permits of a hub: every order in which emitters come, wait, are woken and are cancelled, while readers take and leave.

The code is the library's own, from `Emission` down. The invariants are I12 of the shared flow, and I9:

- The reserved permits and those of unread elements are together no more than the lag.
- Nobody waits while a permit is free.
- The first in the queue is served first.
- An element that was taken is delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import hooks
from reactive_aio._core import budgets
from reactive_aio.errors import HubClosedError
from reactive_aio.operators.sharing.broadcast import Broadcast
from reactive_aio.operators.sharing.emission import Emission, Idle, Offer, Waiter
from reactive_aio.operators.sharing.log import Log
from reactive_aio.operators.sharing.mutex import Mutex
from reactive_aio.operators.sharing.reader import Reader
from tests.schedules import Choices, Known, Move, Violation, check, explore

from .test_model import Plant
from .world import Loop

pytestmark = pytest.mark.stress  # what the orders of events give is no matter of the Python

LAGS = {1: 3, 2: 4}
"""How many emitters come, by the lag: as many as it takes for one of them to overtake another."""


@define(eq=False)
class Emitter:
    """A task that emits one element: it enters, may wait, is woken, and goes on when its turn comes, unless it is cancelled before."""

    world: Hub
    number: int
    state: str = "new"
    waiter: Waiter | None = None

    def moves(self) -> Iterator[Move]:
        if self.state == "new":
            yield f"{self.number} emits", self.emit
        if self.state in {"waits", "woken"}:
            yield f"{self.number} is cancelled", self.cancel
        if self.state == "woken":
            yield f"{self.number} goes on", self.go_on

    def emit(self) -> None:
        emission = self.world.emission
        made = emission.log.made
        if emission.offer(self.number) in {Offer.TAKEN, Offer.UNWANTED}:
            ahead = any(each.state in {"waits", "woken"} for each in self.world.emitters)
            check(not ahead, "I9: one who comes does not heed those who wait")
            self.taken(made)
            return
        try:
            self.waiter = Waiter(self.wake)
            emission._wait(self.waiter)
        except HubClosedError:
            self.state = "refused"
            return
        if self.state == "new":  # it may have been woken inside
            self.state = "waits"

    def wake(self) -> None:
        check(not self.world.emission.mutex.is_mine, "I10: somebody is woken under the lock")
        if not self.world.emission.log.ended:
            first = next((each for each in self.world.line if each.state == "waits"), self)
            check(first is self, "I9: one who came later is served first")
        if self.state in {"new", "waits"}:
            self.state = "woken"

    def cancel(self) -> None:
        assert self.waiter is not None
        self.state = "cancelled"
        self.world.emission._withdraw(self.waiter)

    def go_on(self) -> None:
        assert self.waiter is not None
        made = self.world.emission.log.made
        try:
            self.world.emission._add_with_permit(self.waiter, self.number)
        except HubClosedError:
            self.state = "refused"
        else:
            self.taken(made)

    def taken(self, made: int) -> None:
        self.state = "emitted"
        went_by = self.world.emission.log.made == made
        (self.world.gone if went_by else self.world.emitted).append(self.number)


@define(eq=False)
class Region:
    """A region that reads the hub."""

    loop: Loop
    context: Any = field(factory=copy_context)
    given: list[int] = field(factory=list)
    asked: int = 0
    from_: int = 0
    ended: bool = False
    left: bool = False
    reader: Reader = field(init=False)

    def hold(self) -> Any:
        return lambda: None

    def post(self, handle: Any, value: Any) -> None:
        self.loop.call_soon(handle, value)

    def on_chunk(self, items: list[int]) -> None:
        check(not self.left, "a reader that has left is given elements")
        self.given += items

    def on_complete(self) -> None:
        self.ended = True


@define(eq=False)
class Hub:
    """A hub with some emitters and one reader, who may leave and come again."""

    choices: Choices
    idle: Idle
    lag: int
    replay: int = 0
    emission: Emission = field(init=False)
    emitters: list[Emitter] = field(init=False)
    line: list[Emitter] = field(factory=list)
    """In the order in which they came."""
    emitted: list[int] = field(factory=list)
    """In the order of the log."""
    gone: list[int] = field(factory=list)
    """Emitted for nobody."""
    discarded: list[object] = field(factory=list)
    regions: list[Region] = field(factory=list)
    absences: int = 0

    def __attrs_post_init__(self) -> None:
        with hooks.using(on_discard=self.discard):
            self.emission = Emission(self.lag, Log(self.replay), Mutex(), self.idle)
        self.emitters = [Emitter(self, n) for n in range(LAGS[self.lag])]

    def discard(self, element: object) -> None:
        self.check_lock()
        self.discarded.append(element)

    def check_lock(self) -> None:
        check(not self.emission.mutex.is_mine, "I10: an event is posted under the lock")

    # -- what may happen

    @property
    def region(self) -> Region | None:
        return next((each for each in self.regions if not each.left and not each.ended), None)

    def moves(self) -> list[Move]:
        found = [(f"an event of reader {n}", each.loop.come) for n, each in enumerate(self.regions) if each.loop.events]
        for emitter in self.emitters:
            found += emitter.moves()
        region = self.region
        if region is None and len(self.regions) < 2:
            found.append(("somebody reads", self.read))
        if region is not None:
            found.append(("the reader leaves", partial(self.leave, region)))
            if region.asked < 2:
                found.append(("the reader asks", partial(self.ask, region)))
        if not self.emission.log.ended:
            found.append(("the hub ends", lambda: self.emission.close(None)))
        return found

    def read(self) -> None:
        region = Region(Loop(self))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as much of a world as it takes
        region.reader = self.emission.join(Reader, region)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - likewise
        region.from_ = region.reader.cursor.at
        self.regions.append(region)

    def ask(self, region: Region) -> None:
        region.asked += 1
        region.reader.request(1)

    def leave(self, region: Region) -> None:
        region.left = True
        region.reader.cancel()

    def run(self, known: set[object]) -> None:
        while moves := self.moves():
            label, move = moves[self.choices.choose(len(moves))]
            for emitter in self.emitters:
                if label == f"{emitter.number} emits":
                    self.line.append(emitter)
            self.choices.make("", label, move)
            if self.choices.free:
                self.check()
                state = self.state()
                if state in known:
                    raise Known
                known.add(state)

    # -- what must hold

    def check(self) -> None:
        emission, log = self.emission, self.emission.log
        reserved = sum(each.state == "woken" for each in self.emitters) if not log.ended else 0
        window = log.window
        waits = any(each.state == "waits" for each in self.emitters)
        if not log.ended:
            check(window + reserved <= emission.lag + self.replay, "I9: more permits are given than there are")
            check(not waits or window + reserved >= emission.lag, "I9: a permit is free, and somebody waits")
        else:
            check(not waits, "I9: somebody waits for nothing")
        for each in self.regions:
            check(len(each.given) <= each.asked, "more is given than was asked for")
        kept = self.idle == "wait" and len(self.regions) <= 1 and not self.replay
        if kept and (region := self.region) is not None and not region.loop.events:
            wanted = self.emitted[: region.asked]
            check(region.given == wanted, "I9: what has been taken is not delivered")
        self.check_discarded()

    def check_discarded(self) -> None:
        log = self.emission.log
        there = [each.reader.cursor.at for each in self.regions if not each.reader.over]
        kept = min([log.head.first, *there] + ([] if log.rest is None else [log.rest.at]))
        lost = list(self.gone)
        for number, element in enumerate(self.emitted):
            had = any(each.from_ <= number < each.reader.cursor.at for each in self.regions)
            lost += [] if had or number >= kept else [element]
        check(sorted(self.discarded, key=str) == sorted(lost, key=str), "I12: what nobody gets is not discarded once")

    def state(self) -> object:
        log, region = self.emission.log, self.region
        reader = None if region is None else (log.made - region.reader.cursor.at, region.asked, region.reader.is_due)
        rest = None if log.rest is None else log.made - log.rest.at
        waiting = tuple(each.state for each in self.line if each.state in {"waits", "woken"})
        new = sum(each.state == "new" for each in self.emitters)
        events = tuple(len(each.loop.events) for each in self.regions)
        freely = self.emission._until - log.made if self.emission.mutex.untouched else 0
        replay = log.made - log.head.first if self.replay else 0
        granted = len(self.emission._granted)
        unread = log.made - log.settled, tuple((log.made - a, log.made - b) for a, b in log.owed)
        return waiting, new, reader, rest, log.ended, events, len(self.regions), granted, freely, replay, unread


def tried_all(idle: Idle, replay: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try all with each lag."""
    for lag in LAGS:
        tried(idle, lag, replay, monkeypatch)


def tried(idle: Idle, lag: int, replay: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Try all; give the number of situations."""
    met: set[object] = set()

    def run(choices: Choices, known: set[object]) -> None:
        try:
            Hub(choices, idle, lag, replay).run(known)
        finally:
            met.update(known)

    monkeypatch.setattr(budgets, "clock", lambda: 0.0)
    monkeypatch.setattr(Log, "is_held_up", lambda *_: False)  # no time passes here, so nobody is too slow
    explore(run, "run(Choices({numbers}), set())")
    return len(met)


@pytest.mark.parametrize("replay", [0, 1])
@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("idle", ["wait", "drop"])
def test_the_permits_add_up_in_every_order_of_events(
    idle: Idle, lag: int, replay: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(idle, lag, replay, monkeypatch) > 100


PLANTS = {
    "the permit of one who is cancelled is lost": Plant(
        Emission, "_withdraw", "(self._granted, self._waiting)", "(self._waiting,)", "I9",
    ),
    "it does not go to the next": Plant(
        Emission, "_withdraw", "then = self._settle()", "then = None", "I9",
    ),
    "the latest is served first": Plant(
        Emission, "_grant", "popleft()", "pop()", "I9",
    ),
    "those who wait do not hear of the end": Plant(
        Emission, "close", "_wake(refused)", "pass", "I9",
    ),
    "one who comes does not heed those who wait": Plant(
        Emission, "offer", "self._waiting or self._granted", "False", "I9",
    ),
    "it does not heed them in a burst either": Plant(
        Emission, "takes", "self._waiting or self._granted or", "", "I9",
    ),
    "one who emits does not notice that somebody else has been there": Plant(
        Mutex, "__enter__", "get_ident(), False", "get_ident(), self.untouched", "I9|I12",
    ),
    "more is added in a burst than there is room for": Plant(
        Emission, "takes", "least + self.lag", "least + self.lag + 1", "I9",
    ),
    "nobody is woken when the last reader has left": Plant(
        Emission, "_deserted", "(then := self._settle()) is not None", "False", "I9", "drop",
    ),
    "nobody is woken when an element goes by": Plant(
        Emission, "_add_with_permit", "if not self.log.readers", "if False", "I9", "drop",
    ),
    "an element that falls out of the replay unread is lost": Plant(
        Emission, "_add", "if not log.readers:", "if False:", "I12", "drop, with a replay",
    ),
    "an element of the replay is discarded": Plant(
        Broadcast, "_let_go", "if self._may_be_joined:", "if False:", "I12", "drop, with a replay",
    ),
    "all may add while there is no reader": Plant(
        Emission, "_settle", "self._waiting and self._room > 0", "self._waiting and not self.log.readers", "I9", "drop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = PLANTS[name]
    plant.sow(monkeypatch)

    with pytest.raises(Violation, match=plant.said):
        tried_all("drop" if "drop" in plant.world else "wait", int("replay" in plant.world), monkeypatch)
