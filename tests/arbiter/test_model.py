"""The arbiter in a model of the world around it: every order of events up to a bound is tried.

The world has one downstream and several sources. The downstream requests and cancels. The sources subscribe, deliver,
complete and fail. Each may do so at the top of the stack, or from inside a call that it receives. A source receives
``request`` and ``cancel``, the downstream receives ``on_chunk``, and both may act while the next source is subscribed
to. A run makes a number of *moves*. A party that can't move waits. Between two moves of the outermost level the accounts
must agree. The search skips situations that it has met before.

A violation is shown as the schedule that led to it, with the numbers that `replay` takes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import attrs
import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Subscription, hooks
from reactive_aio._arbiter import Coordinator, Inner, SubscriptionArbiter
from reactive_aio._core import budgets
from reactive_aio._plan import FlowLike, Inlet
from reactive_aio.spec import add_demand
from tests.schedules import Choices, Known, Move, Moves, Violation, check, explore, let_pass

SOURCES = 3
REQUESTS = (1, UNBOUNDED - 1)
"""The second one is bounded, and brings any other demand to the bound where it saturates (rule 3.17)."""


# -- the world


@define(eq=False)
class Chain(Coordinator):
    """Reads all sources, whether they complete or fail."""

    read: int = field(init=False, default=0)

    def on_source_complete(self) -> None:
        self.go_on(self.complete)

    def on_source_error(self, error: BaseException) -> None:
        self.go_on(lambda: self.fail(error))

    def go_on(self, end: Callable[[], None]) -> None:
        if self.read == SOURCES:
            end()
        else:
            self.read += 1
            self.advance(cast(FlowLike, self.read - 1))


@define(eq=False)
class Source:
    """A source, its own Subscription: says nothing that was not asked for, but may say it at any moment."""

    world: World
    number: int
    receiver: Inner
    demand: int = field(init=False, default=0)
    subscribed: bool = field(init=False, default=False)
    intruder: Intruder | None = field(init=False, default=None)
    ended: bool = field(init=False, default=False)
    cancelled: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        check(not self.ended, f"source {self.number} is asked after its end")
        check(not self.cancelled, f"source {self.number} is asked after it was cancelled")
        self.demand = min(self.demand + n, UNBOUNDED)
        self.world.check_source(self, exactly=False)
        self.world.react("request", self.moves)

    def cancel(self) -> None:
        check(self.world.cancelled, f"source {self.number} is cancelled, though downstream goes on")
        check(not self.ended, f"source {self.number} is cancelled after its end")
        check(not self.cancelled, f"source {self.number} is cancelled twice")
        self.cancelled = True
        self.world.react("cancel", self.moves)

    @property
    def state(self) -> tuple[object, ...]:
        return self.demand, self.subscribed, self.intruder is None, self.ended, self.cancelled

    @property
    def live(self) -> bool:
        return self.subscribed and not self.ended

    def moves(self) -> Iterator[Move]:
        name = f"source {self.number}"
        if not self.subscribed:
            yield f"{name} subscribes, late", self.subscribe
        elif self.intruder is None:
            yield f"{name} subscribes a second time", self.subscribe_again
        if self.live:
            if self.demand:
                yield f"{name} delivers", self.deliver
            yield (f"{name} fails", self.fail) if self.number == 1 else (f"{name} completes", self.complete)
        if self.ended and self.number == 0:
            yield f"{name} ends again", self.receiver.on_complete

    def subscribe(self) -> None:
        self.subscribed = True
        self.receiver.on_subscribe(self)

    def subscribe_again(self) -> None:
        self.intruder = Intruder()
        self.receiver.on_subscribe(self.intruder)
        check(self.intruder.cancelled == 1, f"the second subscription of source {self.number} is not cancelled")

    def deliver(self) -> None:
        if self.demand != UNBOUNDED:
            self.demand -= 1
        self.receiver.on_chunk([object()])

    def complete(self) -> None:
        self.ended = True
        self.receiver.on_complete()

    def fail(self) -> None:
        self.ended = True
        try:
            raise OSError(self.number)
        except OSError as error:
            self.receiver.on_error(error)


@define(eq=False)
class Intruder:
    """A subscription too many."""

    cancelled: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        raise Violation("a second subscription is asked for elements")

    def cancel(self) -> None:
        self.cancelled += 1


@define(eq=False)
class World:
    """All that the arbiter has to do with, and the accounts: the downstream, and the inlet of its region."""

    arbiter_type: type[SubscriptionArbiter]
    choices: Choices
    moves_left: int
    known: set[object]
    demand: int = field(init=False, default=0)
    cancelled: bool = field(init=False, default=False)
    ended: bool = field(init=False, default=False)
    sources: list[Source] = field(init=False, factory=list)
    chain: Chain = field(init=False)
    posted: list[Callable[[], None]] = field(init=False, factory=list)
    loop: object = field(init=False, factory=object)

    def run(self) -> None:
        """Begin with the first source, and make moves until none is left."""
        self.chain = Chain(cast(Inlet[Any], self))
        self.chain.arbiter = self.arbiter_type()
        self.chain.on_source_complete()
        self.check()
        while self.move("", self.outermost_moves):
            self.check()

    def move(self, call: str, moves: Moves) -> bool:
        """Make a move from inside a call, or wait."""
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

    def react(self, call: str, moves: Moves) -> None:
        """Make moves from inside a call."""
        while self.move(call, moves):
            pass

    def outermost_moves(self) -> Iterator[Move]:
        yield from self.downstream_moves()
        if self.posted:
            yield "what was posted runs", self.run_posted
        if self.cancelled:
            yield "downstream requests after it has cancelled", lambda: self.chain.request(1)
            yield "downstream cancels again", self.chain.cancel
        for source in self.sources:
            yield from source.moves()

    def run_posted(self) -> None:
        self.posted.pop(0)()

    def downstream_moves(self) -> Iterator[Move]:
        if not (self.cancelled or self.ended):
            for n in REQUESTS:
                yield f"downstream requests {n}", lambda n=n: self.request(n)
            yield "downstream cancels", self.cancel

    def request(self, n: int) -> None:
        self.demand = min(self.demand + n, UNBOUNDED)
        self.chain.request(n)

    def cancel(self) -> None:
        self.cancelled = True
        self.chain.cancel()

    # -- the inlet

    def given(self, flow: FlowLike, most: int) -> None:
        return None

    def is_given(self, flow: FlowLike) -> bool:
        return False

    def subscribe(self, flow: FlowLike, receiver: Inner, *, at_once: bool) -> None:
        check(not self.cancelled, "a source is subscribed to, though downstream has cancelled")
        check(all(source.ended for source in self.sources), "a source is subscribed to before the last one has ended")
        check(all(source.receiver is not receiver for source in self.sources), "a subscriber is used twice")
        source = Source(self, cast(int, flow), receiver)
        self.sources.append(source)
        self.react("subscribe", self.downstream_moves)
        # Late is one of its moves.
        if not self.moves_left or not self.choices.choose(2):
            self.choices.make("subscribe", f"source {source.number} subscribes", source.subscribe)
        self.react("subscribed", source.moves)

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        self.posted.append(lambda: handle(value))

    def on_chunk(self, items: list[Any]) -> None:
        check(not self.cancelled, "an element arrives, though downstream has cancelled")
        check(len(items) <= self.demand, "an element arrives that downstream did not request")
        if self.demand != UNBOUNDED:
            self.demand -= len(items)
        self.react("on_chunk", self.downstream_moves)

    def on_complete(self) -> None:
        check(not self.cancelled, "the end arrives, though downstream has cancelled")
        check(not self.ended, "the end arrives twice")
        check([True] * SOURCES == [each.ended for each in self.sources], "the end arrives before that of the sources")
        self.ended = True

    def on_error(self, error: BaseException) -> None:
        self.on_complete()

    # -- the accounts

    def check(self) -> None:
        """Compare the accounts while nobody is on the stack."""
        if self.cancelled:
            for source in self.sources:
                check(source.cancelled or not source.live, f"source {source.number} is left uncancelled")
        elif not self.ended:
            check(not self.sources[-1].ended or bool(self.posted), f"nothing follows source {self.sources[-1].number}")
            if self.sources[-1].live:
                self.check_source(self.sources[-1], exactly=True)

    def check_source(self, source: Source, *, exactly: bool) -> None:
        """Compare what a source has been asked for and has not delivered with what downstream wants."""
        account = f"source {source.number} has {source.demand} to deliver where downstream wants {self.demand}"
        check(source.demand <= self.demand, f"asked for twice: {account}")
        check(source.demand == self.demand or not exactly, f"lost: {account}")

    def situation(self) -> object:
        """Return the whole state that the next moves depend on."""
        arbiter = self.chain.arbiter
        return (
            self.moves_left,
            len(self.posted),
            (
                self.demand,
                self.cancelled,
                self.ended,
                self.chain.read,
                self.chain.busy,
                self.chain._next,
                self.chain._noted,
            ),
            tuple(self._name(getattr(arbiter, each.name)) for each in attrs.fields(type(arbiter))),
            tuple(
                (
                    *each.state,
                    each.receiver._owner is None,
                    each.receiver.ended,
                    each.receiver._subscription is not None,
                )
                for each in self.sources
            ),
        )

    def _name(self, value: object) -> object:
        return f"source {value.number}" if isinstance(value, Source) else value


def run(arbiter_type: type[SubscriptionArbiter], moves: int) -> Callable[[Choices, set[object]], None]:
    return lambda choices, known: World(arbiter_type, choices, moves, known).run()


def replay(arbiter_type: type[SubscriptionArbiter], moves: int, numbers: Sequence[int]) -> None:
    """Make the run that a violation has shown."""
    run(arbiter_type, moves)(Choices(numbers), set())


def explore_all(arbiter_type: type[SubscriptionArbiter], moves: int) -> set[str]:
    """Make every run of so many moves, and give the lines of all their schedules."""
    return explore(run(arbiter_type, moves), f"replay({arbiter_type.__name__}, {moves}, {{numbers}})")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let errors that come after a cancellation go unreported."""
    monkeypatch.setattr(budgets, "clock", lambda: 1.0)  # no time is ever up
    let_pass(monkeypatch)
    with hooks.using(on_error_dropped=lambda error: None):
        yield


# -- the arbiter


@pytest.mark.costly
def test_demand_is_neither_lost_nor_asked_for_twice_and_nothing_is_left_uncancelled_in_any_order_of_events() -> None:
    lines = explore_all(SubscriptionArbiter, moves=6)

    # It did get everywhere: up to the last source, and from inside calls from inside calls.
    assert {
        "source 2 subscribes, late",
        "source 1 subscribes a second time",
        "    source 1 fails",
        "      source 2 completes",
        "        downstream cancels",
        "downstream requests after it has cancelled",
    } <= lines


Scenario = dict[str, Callable[[SubscriptionArbiter, list[int]], None]]


@define(eq=False)
class Asked:
    """A subscription that adds up what is requested from it."""

    total: list[int]

    def request(self, n: int) -> None:
        self.total.append(n)

    def cancel(self) -> None:
        self.total.append(-UNBOUNDED)


def request(n: int) -> Callable[[SubscriptionArbiter, list[int]], None]:
    return lambda arbiter, total: arbiter.request(n)


def switch(*produced: int) -> Callable[[SubscriptionArbiter, list[int]], None]:
    """Go over to another source, after the one before has delivered what is given."""

    def move(arbiter: SubscriptionArbiter, total: list[int]) -> None:
        for n in produced:
            arbiter.produced(n)
        arbiter.ended()
        total.clear()
        arbiter.switch_to(Asked(total))

    return move


@pytest.mark.parametrize(
    ("before", "at_once", "left"),
    [
        ([], [switch(), request(5)], 5),
        ([switch(), request(5)], [switch(3), request(4)], 6),
        ([switch(), request(2)], [switch(2), request(1), request(1)], 2),
        ([switch(), request(5)], [switch(3), switch(), request(4)], 6),
    ],
    ids=["first source", "switch", "switch and two requests", "switch over an empty source"],
)
def test_the_last_source_is_asked_for_what_is_left_in_whatever_order_switches_and_requests_meet(
    before: list[Callable[[SubscriptionArbiter, list[int]], None]],
    at_once: list[Callable[[SubscriptionArbiter, list[int]], None]],
    left: int,
) -> None:
    for order in itertools.permutations(at_once):
        arbiter, total = SubscriptionArbiter(), list[int]()
        for move in (*before, *order):
            move(arbiter, total)

        assert left == arbiter.requested
        assert left == sum(total)


def test_a_source_that_meets_a_cancellation_is_cancelled_in_whatever_order_switch_request_and_cancel_meet() -> None:
    cancel = lambda arbiter, total: arbiter.cancel()  # noqa: E731 - a move like the others
    for order in itertools.permutations([switch(3), request(4), cancel]):
        arbiter, total = SubscriptionArbiter(), list[int]()
        for move in (switch(), request(5), *order):
            move(arbiter, total)

        assert -UNBOUNDED == total[-1]


# -- defects of published arbiters. There they occur between threads, here where one call comes from inside another.
# RxJava 3 and Mutiny (1), Mutiny (2), the blog, RxJava 3, Reactor and Mutiny (3), Reactive4JavaFlow (4), Reactor (5)


@define(eq=False)
class AddsOnSwitch(SubscriptionArbiter):
    """Adds what was requested between two sources to what is left, in which it is counted already."""

    between: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        super().request(n)
        if self._current is None:
            self.between = add_demand(self.between, n)

    def switch_to(self, subscription: Subscription) -> None:
        super().switch_to(subscription)
        between, self.between = self.between, 0
        if between and not self.cancelled:
            subscription.request(between)


@define(eq=False)
class AsksTwiceWhenSwitchAndRequestMeet(SubscriptionArbiter):
    """Passes a request on that comes during a switch, and once more at the end of the switch."""

    switching: bool = field(init=False, default=False)
    missed: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        if self.switching:
            self.missed = add_demand(self.missed, n)
        super().request(n)

    def switch_to(self, subscription: Subscription) -> None:
        self.switching = True
        super().switch_to(subscription)
        self.switching = False
        missed, self.missed = self.missed, 0
        if missed and self._current is subscription:
            subscription.request(missed)


@define(eq=False)
class ForgetsNextWhileSwitching(SubscriptionArbiter):
    """Asks the next source before it is the current one, so that a cancellation in between sees neither."""

    coming: Subscription | None = field(init=False, default=None)

    def request(self, n: int) -> None:
        if self.coming is None:
            super().request(n)
        elif not self.cancelled:
            self.requested = add_demand(self.requested, n)
            self.coming.request(n)

    def switch_to(self, subscription: Subscription) -> None:
        if self.cancelled:
            subscription.cancel()
            return
        self.coming = subscription
        if self.requested:
            subscription.request(self.requested)
        if self.coming is subscription:
            self._current, self.coming = subscription, None

    def ended(self) -> None:
        super().ended()
        self.coming = None


@define(eq=False)
class LosesRequestsBetweenSources(SubscriptionArbiter):
    """Writes what is requested between two sources where it should be added."""

    def request(self, n: int) -> None:
        if self._current is None and not self.cancelled:
            self.requested = n
        else:
            super().request(n)


@define(eq=False)
class ForgetsWhatWasProducedBeforeAnEmptySource(SubscriptionArbiter):
    """Knows of one switch what was produced before it, but not of two with nothing in between."""

    produced_last: int = field(init=False, default=0)
    produced_before: int = field(init=False, default=0)

    def produced(self, n: int) -> None:
        super().produced(n)
        self.produced_last += n

    def ended(self) -> None:
        super().ended()
        if not self.produced_last:
            self.requested = add_demand(self.requested, self.produced_before)
        self.produced_before, self.produced_last = self.produced_last, 0


def violation_of(arbiter_type: type[SubscriptionArbiter]) -> str:
    """Return the shortest violation with its schedule, and see that it can be replayed."""
    for moves in range(1, 8):
        try:
            explore_all(arbiter_type, moves)
        except Violation as violation:
            found = violation
            break
    else:
        return "none"
    with pytest.raises(Violation, match=re.escape(str(found))):
        eval(found.__notes__[-1].partition("again by: ")[2])
    return "\n".join([str(found), *found.__notes__])


def test_model_catches_an_arbiter_that_adds_on_switch() -> None:
    assert "asked for twice: source 0 has 2 to deliver where downstream wants 1" in violation_of(AddsOnSwitch)


def test_model_catches_an_arbiter_that_asks_twice_when_switch_and_request_meet() -> None:
    assert "asked for twice: source 0" in violation_of(AsksTwiceWhenSwitchAndRequestMeet)


def test_model_catches_an_arbiter_that_forgets_the_next_source_while_it_switches() -> None:
    assert "is left uncancelled" in violation_of(ForgetsNextWhileSwitching)


def test_model_catches_an_arbiter_that_loses_a_request_between_sources() -> None:
    assert "lost: source 0" in violation_of(LosesRequestsBetweenSources)


def test_model_catches_an_arbiter_that_forgets_what_was_produced_before_an_empty_source() -> None:
    found = violation_of(ForgetsWhatWasProducedBeforeAnEmptySource)

    assert "asked for twice: source 2" in found
    assert "source 1 fails" in found


def test_a_violation_is_shown_as_the_schedule_that_replays_it() -> None:
    expected = """\
lost: source 0 has 1 to deliver where downstream wants 2
    downstream requests 1
    downstream requests 1
    source 0 subscribes
    again by: replay(LosesRequestsBetweenSources, 2, [1, 1])"""

    assert expected == violation_of(LosesRequestsBetweenSources)
