"""Every order of events around a shared flow, up to a bound. The model also finds each of the planted bugs."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from itertools import count, repeat
from typing import Any

import pytest
from attrs import frozen

from reactive_aio._core import budgets
from reactive_aio._runtime import connect
from reactive_aio.operators.sharing.broadcast import Broadcast
from reactive_aio.operators.sharing.delivery import Delivery
from reactive_aio.operators.sharing.log import Log
from reactive_aio.operators.sharing.run import Run
from reactive_aio.operators.sharing.shared import Sharing
from tests.schedules import Choices, Violation, explore

from .world import Bounds, World

pytestmark = pytest.mark.stress  # what the orders of events give is no matter of the Python

WORLDS = {
    "two who come and go": Bounds(fails=False, late=True),
    "two who retry": Bounds(completes=False),
    "a lag of two": Bounds(lag=2, subscriptions=2, asks=(1, 2), lists=(1, 2), fails=False),
    "a lag of eight": Bounds(lag=8, subscriptions=2, asks=(1, 10), lists=(8,), completes=False, fails=False),
    "two on one loop": Bounds(together=True, late=True),
    "two on one loop in a hurry": Bounds(together=True, hurried=True),
    "two on one loop in a hurry with lists": Bounds(
        together=True, hurried=True, lag=2, subscriptions=2, asks=(1, 2), lists=(1, 2), fails=False
    ),
    "one loop held open in a hurry": Bounds(together=True, hurried=True, held=True, completes=False, fails=False),
    "one loop in turns": Bounds(together=True, in_turns=True, late=True),
    "one loop in turns in a hurry": Bounds(together=True, in_turns=True, hurried=True),
    "one loop in turns with lists": Bounds(
        together=True, in_turns=True, lag=2, subscriptions=2, asks=(1, 2), lists=(1, 2), fails=False
    ),
    "one loop in turns in a hurry with lists": Bounds(
        together=True, in_turns=True, hurried=True, lag=2, subscriptions=2, asks=(1, 2), lists=(1, 2), fails=False
    ),
    "one loop in turns with a replay": Bounds(together=True, in_turns=True, replay=1, fails=False),
    "one loop in turns held open": Bounds(together=True, in_turns=True, held=True, completes=False, fails=False),
    "three": Bounds(subscribers=3, subscriptions=4, completes=False, fails=False),
    "three with a lag of two": Bounds(subscribers=3, subscriptions=3, lag=2, completes=False, fails=False),
    "a replay": Bounds(replay=1, fails=False),
    "a replay beyond the lag": Bounds(replay=2, subscriptions=2, times=2, fails=False),
    "a cache": Bounds(replay=1, restart="never", fails=False),
    "a cache of what has not failed": Bounds(replay=1, restart="after_error"),
    "who wait for each other": Bounds(start=2, fails=False),
    "held open": Bounds(held=True, completes=False, fails=False),
    "held open to the end": Bounds(held=True, subscriptions=2, fails=False),
    "held open for a while": Bounds(held=True, linger=True, completes=False, fails=False),
}


def tried(bounds: Bounds, monkeypatch: pytest.MonkeyPatch) -> set[object]:
    """Try all; give the situations that there were."""
    met: set[object] = set()

    def run(choices: Choices, known: set[object]) -> None:
        world = World(bounds, choices)
        monkeypatch.setattr(connect, "connected", world.connect)
        try:
            world.run(known)
        finally:
            met.update(known)

    clock = count() if bounds.hurried else repeat(0)  # the time of a turn is up at the second look, or never
    monkeypatch.setattr(budgets, "clock", lambda: float(next(clock)))
    monkeypatch.setattr(Log, "is_held_up", lambda *_: False)  # no time passes here, so nobody is too slow
    explore(run, "run(Choices({numbers}), set())")
    return met


@pytest.mark.costly
@pytest.mark.parametrize("name", WORLDS)
def test_the_invariants_hold_in_every_order_of_events(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(tried(WORLDS[name], monkeypatch)) > 40


# -- planted bugs


@frozen
class Plant:
    """A bug: a change of the text of a function, and what the model says of it."""

    owner: type
    function: str
    before: str
    after: str
    said: str
    world: str = "two who come and go"

    def sow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the changed function in the place of the right one."""
        function: Callable[..., Any] = inspect.unwrap(getattr(self.owner, self.function))
        text = textwrap.dedent(inspect.getsource(function))
        assert 1 == text.count(self.before), "the text that is to be changed is not there once"
        module = sys.modules[self.owner.__module__]
        made: dict[str, Any] = {}
        # The names of the types stay unread: annotations are text.
        exec("from __future__ import annotations\n" + text.replace(self.before, self.after), vars(module), made)
        monkeypatch.setattr(self.owner, self.function, made[self.function])


PLANTS = {
    "a newcomer joins behind the cancel": Plant(
        Run, "_cancelled", "self.sharing.leave(self)", "pass", "I5",
    ),
    "a run that has ended stays open": Plant(
        Run, "_over", "self.sharing.begins_anew_behind(error)", "False", "I5",
    ),
    "the window does not move when the slowest leaves": Plant(
        Broadcast, "_gone", "(then := self._settle()) is not None", "(then := None) is not None", "I6",
    ),
    "the end overtakes elements": Plant(
        Broadcast, "_take", "log.ended and cursor.at == log.made", "log.ended", "I7",
    ),
    "elements are given without demand": Plant(
        Log, "take", "cursor.goal - cursor.at", "9", "I2",
    ),
    "there is no window": Plant(
        Run, "_missing", "log.places.least + self.lag", "log.goals.greatest", "I1",
    ),
    "a newcomer begins where the slowest is": Plant(
        Run, "admit", "yield from self._join(reader)",
        "yield from self._join(reader)\n    slow = min((each.cursor for each in self.everybody), key=lambda each: each.at)\n"
        "    self.log.places.move(reader.cursor.at, slow.at)\n    reader.cursor.node, reader.cursor.at = slow.node, slow.at",
        "I2",
    ),
    "a run begins while the cleanup of another is going on": Plant(
        Run, "begin", "or self.sharing.connected is not None", "", "I4",
    ),
    "nobody begins the run that has waited": Plant(
        Sharing, "begun_next", "for reader in run.everybody", "for reader in ()", "I6",
    ),
    "a request is forgotten where something is unread": Plant(
        Broadcast, "want", "reader.cursor.is_due and reader.delivery.note(reader)", "False", "I6",
    ),
    "news is forgotten while a turn is to come": Plant(
        Broadcast, "_told", "each.news = True\n            continue", "continue", "I[67]", "two on one loop in a hurry",
    ),
    "who is due behind others who were given first is forgotten": Plant(
        Delivery, "hand_out", "if again or", "if", "I[67]", "two on one loop in a hurry",
    ),
    "more is taken before all has been given": Plant(
        Delivery, "come", "again = bool(self.taken)", "again = False", "I11", "two on one loop in a hurry",
    ),
    "what is left when the time is up gets no turn": Plant(
        Delivery, "put_off", "not posted", "False", "I[67]", "two on one loop in a hurry",
    ),
    "a list is given at once to those who do not want all of it": Plant(
        Log, "pass_by", "cursor.goal < made", "False", "I2", "one loop in turns with lists",
    ),
    "a list is given at once though another is still to be given": Plant(
        Run, "_given_at_once", "not here.is_idle", "not (here.is_idle or here.taken)", "I11",
        "one loop in turns in a hurry with lists",
    ),
    "a list that was given at once is not in the replay": Plant(
        Log, "pass_by", "if self.replay:", "if False:", "I2", "one loop in turns with a replay",
    ),
    "a reader is given the list of another one who has asked for more": Plant(
        Log, "take_all", "and cursor.goal == goal", "", "I2", "two on one loop in a hurry with lists",
    ),
    "what is wanted is asked for twice": Plant(
        Run, "_settle", "self.asked += missing", "pass", "I3",
    ),
    "a window is always asked for in bulk": Plant(
        Run, "_missing", "(self.asked > log.made or log.made not in log.places)", "True", "I6", "a lag of eight",
    ),
    "what nobody has had is left out": Plant(
        Log, "leave", "keeps and not self.readers", "False", "I2|I12", "held open",
    ),
    "an element that only a slow reader had to get is lost": Plant(
        Log, "_settle", "self.owed.append((self.settled, first))", "pass", "I12", "a lag of two",
    ),
    "an element that was owed is still owed when it has been taken": Plant(
        Log, "take", "self.owed or at > self.settled", "at > self.settled", "I12", "three with a lag of two",
    ),
    "an element of the replay is discarded": Plant(
        Broadcast, "_let_go", "if self._may_be_joined:", "if False:", "I12", "a cache",
    ),
    "unread elements are lost when the source ends": Plant(
        Run, "_over", "calls += self._let_go(*self.log.keep_no_more())", "pass", "I12", "held open to the end",
    ),
    "unread elements are lost when nobody comes": Plant(
        Run, "close", "yield from self._let_go(*self.log.keep_no_more())", "pass", "I12", "held open for a while",
    ),
    "two timers wait for somebody": Plant(
        Sharing, "_nobody_came", "run.log.rest is absence", "run.log.rest is not None", "linger", "held open for a while",
    ),
}  # fmt: skip


@pytest.mark.costly
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = PLANTS[name]
    plant.sow(monkeypatch)

    with pytest.raises(Violation, match=plant.said):
        tried(WORLDS[plant.world], monkeypatch)
