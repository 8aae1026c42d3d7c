"""Shared flows and hubs against an oracle: a list of what has been made, and the place of each reader in it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, Hub, Offer, Publisher
from tests.subscribers import Recorder, idle

Move = tuple[str, int, int]
"""The action, the number of the subscriber that takes it, and an amount."""

MOVES: Final = st.lists(
    st.tuples(st.sampled_from(["come", "ask", "ask", "leave", "offer", "offer"]), st.integers(0, 5), st.integers(1, 6)),
    max_size=40,
)


@define(eq=False)
class Place:
    """One who reads: from which element on, and up to which it has asked."""

    recorder: Recorder
    first: int
    goal: int

    def at(self, made: int) -> int:
        """Return the element that it takes next, when it has taken what there is."""
        return min(self.goal, made)


@define(eq=False)
class Oracle:
    """The expected state of a log, for each way to fill it."""

    lag: int
    replay: int
    made: int = 0
    there: list[Place] = field(factory=list)
    gone: list[tuple[Place, int]] = field(factory=list)
    """Those who have left, and what they had been given."""

    @property
    def slowest(self) -> int:
        return min(each.at(self.made) for each in self.there)

    @property
    def room(self) -> int:
        return self.lag - (self.made - self.slowest if self.there else 0)

    def come(self, publisher: Publisher[int], asked: int) -> None:
        """Have one more subscribe, who begins with the replay."""
        recorder = Recorder(asked)
        publisher.subscribe(recorder)
        first = max(self.made - self.replay, 0)
        self.there.append(Place(recorder, first, first + asked))

    def of(self, which: int) -> Place | None:
        return self.there[which % len(self.there)] if self.there else None

    def ask(self, which: int, n: int) -> None:
        if (place := self.of(which)) is not None:
            place.recorder.request(n)
            place.goal += n

    def leave(self, which: int) -> None:
        if (place := self.of(which)) is not None:
            place.recorder.cancel()
            self.there.remove(place)
            self.gone.append((place, len(place.recorder.items)))

    def check(self) -> None:
        for each in self.there:
            assert list(range(each.first, max(each.first, each.at(self.made)))) == each.recorder.items
        for each, number in self.gone:
            assert number == len(each.recorder.items)


@settings(deadline=None, max_examples=60)
@given(MOVES, st.integers(1, 5), st.integers(0, 4))
def test_a_shared_flow_gives_each_what_the_oracle_says(moves: list[Move], lag: int, replay: int) -> None:
    async def main() -> None:
        shared = Flow.range(1_000_000).share(lag=lag, replay=replay)
        oracle = Oracle(lag, replay)
        for what, which, n in moves:
            if what == "come" and len(oracle.there) < 4:
                oracle.come(shared, n)
            elif what == "ask":
                oracle.ask(which, n)
            elif what == "leave":
                oracle.leave(which)
            await idle()
            made_by(oracle)
            oracle.check()
            assert len(oracle.there) == shared.subscribers
        for _ in range(len(oracle.there)):
            oracle.leave(0)
        await idle()

    asyncio.run(main())


def made_by(oracle: Oracle) -> None:
    """Have as much made as the fastest wants and the slowest allows; with nobody there the run is over."""
    if not oracle.there:
        oracle.made = 0
        return
    before = -1
    while oracle.made != before:
        before = oracle.made
        wanted = max(each.goal for each in oracle.there)
        oracle.made = max(before, min(wanted, oracle.slowest + oracle.lag))


@settings(deadline=None, max_examples=60)
@given(MOVES, st.integers(1, 5), st.integers(0, 4))
def test_a_hub_takes_and_gives_what_the_oracle_says(moves: list[Move], lag: int, replay: int) -> None:
    async def main() -> None:
        hub: Hub[int] = Hub(idle="drop", lag=lag, replay=replay)
        oracle = Oracle(lag, replay)
        for what, which, n in moves:
            if what == "come" and len(oracle.there) < 4:
                oracle.come(hub, n)
            elif what == "ask":
                oracle.ask(which, n)
            elif what == "leave":
                oracle.leave(which)
            elif what == "offer":
                offered(oracle, hub, n)
            await idle()
            oracle.check()
        hub.complete()
        for _ in range(len(oracle.there)):
            oracle.leave(0)
        await idle()
        assert Offer.CLOSED is hub.offer(0)

    asyncio.run(main())


def offered(oracle: Oracle, hub: Hub[Any], n: int) -> None:
    """Offer some elements, as far as there is room before anybody can take one of them."""
    taken = oracle.made
    room = oracle.room if oracle.there or oracle.replay else 0
    for _ in range(n):
        if not oracle.there and not oracle.replay:
            assert Offer.UNWANTED is hub.offer(taken)
        elif room > 0 or not oracle.there:
            assert Offer.TAKEN is hub.offer(taken)
            room, taken = room - 1, taken + 1
        else:
            assert Offer.FULL is hub.offer(taken)
    oracle.made = taken
