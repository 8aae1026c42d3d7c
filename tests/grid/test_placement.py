"""Where each function of the user's runs: on the loop, thread and process that the plan says, wherever it is placed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from attrs import define, field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive_aio import Emitter, Flow, hooks, schedulers
from reactive_aio._plan import Plan
from reactive_aio.schedulers.base import Scheduler
from tests.registry import AnyFlow


@frozen
class Place:
    """Where a function was called."""

    process: int
    thread: int
    loop: int

    @staticmethod
    def here() -> Place:
        return Place(os.getpid(), threading.get_ident(), id(asyncio.get_running_loop()))


@define
class Places:
    """The schedulers of a test, each with the place it stands for."""

    by_name: dict[str, tuple[Scheduler, Place | None]] = field(factory=dict)

    def scheduler(self, name: str) -> Scheduler:
        return self.by_name[name][0]

    def of(self, scheduler: Scheduler | None, home: Place) -> Place:
        for known, place in self.by_name.values():
            if known is scheduler:
                return place or home
        assert scheduler is None
        return home


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with schedulers.thread("a") as a, schedulers.thread("b") as b, schedulers.thread("c") as host:
        # The loop of the third is used as a loop that somebody else runs.
        far = Flow.of(0).subscribe_on(host).map(lambda _: asyncio.get_running_loop()).run_sync()[0]
        yield Places(
            {
                "current": (schedulers.current(), None),
                "a": (a, there(a)),
                "b": (b, there(b)),
                "loop": (schedulers.loop(far), there(host)),
            }
        )


def there(scheduler: Scheduler) -> Place:
    return Flow.of(0).subscribe_on(scheduler).map(lambda _: Place.here()).run_sync()[0]


@define
class Seen:
    """The places in which each function was called."""

    of: dict[str, set[Place]] = field(factory=dict)

    def note(self, name: str) -> None:
        self.of.setdefault(name, set()).add(Place.here())

    def noting(self, name: str, result: Callable[[Any], Any] = lambda item: item) -> Callable[[Any], Any]:
        def function(item: Any) -> Any:
            self.note(name)
            return result(item)

        function.__name__ = name
        return function


def source(seen: Seen, kind: str) -> AnyFlow:
    def iterate() -> Iterator[int]:
        seen.note("source")
        yield from range(20)

    async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
        for n in range(20):
            seen.note("source")
            await emit(n)

    def register(emitter: Emitter[int]) -> Callable[[], None]:
        seen.note("source")
        for n in range(20):
            emitter.next(n)
        emitter.complete()
        return lambda: seen.note("source")

    def make() -> AnyFlow:
        seen.note("source")
        return Flow.range(20).map(seen.noting("source"))

    if kind == "iterator":
        return Flow.from_iterable(iterate())
    if kind == "coroutine":
        return Flow.create(produce)
    if kind == "callback":
        return Flow.from_callback(register)
    return Flow.defer(make)


STEPS: dict[str, Callable[[AnyFlow, Callable[[Any], Any]], AnyFlow]] = {
    "map": lambda flow, function: flow.map(function),
    "filter": lambda flow, function: flow.filter(lambda item: function(item) is item),
    "flat": lambda flow, function: flow.flat_map_iterable(lambda item: (function(item),)),
    "collect": lambda flow, function: flow.buffer(2).flat_map_iterable(lambda items: [function(n) for n in items]),
}
PLACEMENTS = ["publish_on", "subscribe_on"]
rows = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(STEPS)), st.just("")),
        st.tuples(st.sampled_from(PLACEMENTS), st.sampled_from(["current", "a", "b", "loop"])),
    ),
    max_size=8,
)


def build(places: Places, seen: Seen, kind: str, row: list[tuple[str, str]]) -> tuple[AnyFlow, list[str]]:
    flow, names = source(seen, kind), list[str]()
    for number, (what, where) in enumerate(row):
        if what == "publish_on":
            flow = flow.publish_on(places.scheduler(where), prefetch=4)
        elif what == "subscribe_on":
            flow = flow.subscribe_on(places.scheduler(where))
        else:
            names.append(f"{what}_{number}")
            flow = STEPS[what](flow, seen.noting(names[-1]))
    return flow, names


def planned(places: Places, flow: AnyFlow, row: list[tuple[str, str]], home: Place) -> dict[str, Place]:
    """Read off the plan where the source and each step are to run."""
    plan = Plan.of(flow)
    assert len(plan.regions) == 1 + sum(what == "publish_on" for what, _ in row)
    # Of several subscribe_on the one nearest to the source counts.
    moved = [places.scheduler(where) for what, where in row if what == "subscribe_on"]
    assert plan.regions[0].scheduler is (moved[0] if moved else None)
    expected = {"source": places.of(plan.regions[0].scheduler, home)}
    at = 0
    for number, (what, _) in enumerate(row):
        if what == "publish_on":
            at += 1
        elif what != "subscribe_on":
            expected[f"{what}_{number}"] = places.of(plan.regions[at].scheduler, home)
    return expected


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["iterator", "coroutine", "callback", "defer"]), rows)
def test_every_function_runs_where_the_plan_says(places: Places, kind: str, row: list[tuple[str, str]]) -> None:
    seen = Seen()
    flow, _ = build(places, seen, kind, row)

    async def main() -> Place:
        await flow.for_each(seen.noting("end"))
        return Place.here()

    home = asyncio.run(main())

    # Ends come home.
    expected = planned(places, flow, row, home) | {"end": home}
    assert {name: {place} for name, place in expected.items()} == seen.of


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
def test_the_description_names_the_same_places(places: Places, row: list[tuple[str, str]]) -> None:
    seen = Seen()
    flow, names = build(places, seen, "iterator", row)
    region_of: dict[str, str] = {}
    for line in flow.describe().splitlines():
        if line.startswith("R"):
            place = line[4:].split("   ")[0].strip()
            region_of |= {name: place for name in names if f"({name})" in line}

    async def main() -> Place:
        await flow.for_each(lambda _: None)
        return Place.here()

    home = asyncio.run(main())

    words = {"current()": home, "the subscriber's loop": home}
    words |= {each.name: place for each, place in places.by_name.values() if place is not None}
    for name, place in region_of.items():
        assert {words[next(word for word in words if place.startswith(word))]} == seen.of[name]


async def test_what_a_subscriber_of_ones_own_hears_comes_where_the_last_region_runs(places: Places) -> None:
    heard: list[Place] = []
    over = threading.Event()

    class Listener:
        def on_subscribe(self, subscription: Any) -> None:
            heard.append(Place.here())
            subscription.request(10)

        def on_next(self, _: Any) -> None:
            heard.append(Place.here())

        def on_error(self, error: BaseException) -> None:
            raise error

        def on_complete(self) -> None:
            heard.append(Place.here())
            over.set()

    Flow.range(3).publish_on(places.scheduler("a")).subscribe(Listener())
    await asyncio.to_thread(over.wait)

    assert [places.by_name["a"][1]] * 5 == heard


async def test_hooks_and_drops_are_told_where_their_region_runs(places: Places) -> None:
    seen = Seen()
    with hooks.using(on_discard=seen.noting("hook")):
        flow = Flow.range(5000).on_backpressure_drop(seen.noting("on_drop")).subscribe_on(places.scheduler("b"))
        await flow.publish_on(places.scheduler("a"), prefetch=4).map(seen.noting("map")).to_list()

    here = {name: place for name, (_, place) in places.by_name.items()}
    assert {"hook": {here["b"]}, "on_drop": {here["b"]}, "map": {here["a"]}} == seen.of


async def test_no_flow_starts_a_thread_by_itself() -> None:
    before = set(threading.enumerate())
    during: set[threading.Thread] = set()

    def look(item: Any) -> Any:
        during.update(threading.enumerate())
        return item

    flow = Flow.interval(1e-4).on_backpressure_buffer(9).map(look).publish_on(schedulers.current()).take(5)
    await flow.concat(Flow.from_async_iterable(flow)).retry(1).to_list()

    assert during <= before
