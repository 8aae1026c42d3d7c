"""Where the functions of operators that read flows run, and those of the flows that they read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import define, field
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, schedulers
from tests.grid.test_placement import Place, Places, Seen, there
from tests.registry import AnyFlow


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with schedulers.thread("a") as a, schedulers.thread("b") as b:
        yield Places({"current": (schedulers.current(), None), "a": (a, there(a)), "b": (b, there(b))})


def plainly(flow: AnyFlow, _seen: Seen, _name: str) -> AnyFlow:
    return flow.map(_seen.noting(_name))


def awaiting(flow: AnyFlow, seen: Seen, name: str) -> AnyFlow:
    async def function(item: Any) -> Any:
        await asyncio.sleep(0)
        seen.note(name)
        return item

    return flow.map_async(function)


def again(flow: AnyFlow, seen: Seen, name: str) -> AnyFlow:
    return flow.retry(1).map(seen.noting(name))


def at_the_end(flow: AnyFlow, seen: Seen, name: str) -> AnyFlow:
    return flow.do_finally(lambda: seen.note(name))


def giving(flow: AnyFlow, seen: Seen, name: str) -> AnyFlow:
    return flow.concat(Flow.of(0).map(seen.noting(f"{name} given"))).map(seen.noting(name))


def making(flow: AnyFlow, seen: Seen, name: str) -> AnyFlow:
    return flow.flat_map(lambda item: Flow.of(item).map(seen.noting(name)))


STEPS: dict[str, Callable[[AnyFlow, Seen, str], AnyFlow]] = {
    "map": plainly,
    "map_async": awaiting,
    "retry": again,
    "do_finally": at_the_end,
    "concat": giving,
    "flat_map": making,
}
Row = list[tuple[str, str]]
rows = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(STEPS)), st.just("")),
        st.tuples(st.sampled_from(["publish_on", "subscribe_on"]), st.sampled_from(["current", "a", "b"])),
    ),
    max_size=8,
)


@define
class Level:
    """The part of a flow between two operators that read flows. The first level begins with the source."""

    regions: list[tuple[str | None, list[str]]] = field(factory=lambda: [(None, list[str]())])
    """Where each region was put, and the functions in it."""
    moved: str | None = None
    """The scheduler of the first ``subscribe_on``."""
    given: list[str] = field(factory=list[str])
    """The functions of a flow that the operator was given."""


def levels(row: Row) -> list[Level]:
    found = [Level([(None, ["source"])])]
    for number, (what, where) in enumerate(row):
        if what == "publish_on":
            found[-1].regions.append((where, []))
        elif what == "subscribe_on":
            found[-1].moved = found[-1].moved or where
        else:
            if what != "map":
                found.append(Level())
            found[-1].regions[-1][1].append(f"{what}_{number}")
            if what == "concat":
                found[-1].given.append(f"{what}_{number} given")
    return found


def expected(row: Row) -> dict[str, str]:
    """Say where each function is to run, by the name of the scheduler; current is where the subscriber is."""
    stretches = levels(row)
    # Where each belongs is where what it places nowhere runs.
    homes = ["current"]
    for level in reversed(stretches):
        homes.insert(0, homes[0] if level.moved in (None, "current") else str(level.moved))
    found: dict[str, str] = {}
    before = "current"
    for level, given_home, home in zip(stretches, homes, homes[1:], strict=False):
        ends = given_home if before == "current" else before
        for where, names in level.regions:
            if where is not None:
                ends = home if where == "current" else where
            found |= dict.fromkeys(names, ends)
        found |= dict.fromkeys(level.given, given_home)
        if level.regions[-1][0] is not None:
            before = str(level.regions[-1][0])
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
def test_what_follows_a_boundary_runs_behind_it_and_what_is_read_stays_where_it_was(places: Places, row: Row) -> None:
    seen = Seen()
    flow: AnyFlow = Flow.range(3).map(seen.noting("source"))
    for number, (what, where) in enumerate(row):
        if what == "publish_on":
            flow = flow.publish_on(places.scheduler(where), prefetch=4)
        elif what == "subscribe_on":
            flow = flow.subscribe_on(places.scheduler(where))
        else:
            flow = STEPS[what](flow, seen, f"{what}_{number}")

    async def main() -> Place:
        await flow.for_each(seen.noting("end"))
        return Place.here()

    home = asyncio.run(main())

    there = {name: place or home for name, (_, place) in places.by_name.items()}
    assert {name: {there[where]} for name, where in expected(row).items()} | {"end": {home}} == seen.of


async def test_a_function_that_an_end_awaits_runs_where_it_is_awaited(places: Places) -> None:
    heard: set[Place] = set()

    async def function(_: int) -> None:
        heard.add(Place.here())

    await Flow.range(3).publish_on(places.scheduler("a")).for_each(function, max_concurrency=2)

    assert {Place.here()} == heard


async def test_what_follows_workers_runs_with_the_subscriber() -> None:
    seen = Seen()
    flow = Flow.range(3).publish_on(schedulers.thread("far")).publish_on(schedulers.threads(2)).map(str)
    await flow.do_finally(lambda: seen.note("finally")).to_list()

    assert {"finally": {Place.here()}} == seen.of


async def test_a_flow_to_go_on_with_that_is_given_stays_and_one_that_is_made_belongs_to_the_function(
    places: Places,
) -> None:
    seen = Seen()
    failing = Flow.of(0).publish_on(places.scheduler("a")).map(lambda n: 1 // n)
    await failing.on_error_resume_next(Flow.of(1).map(seen.noting("given"))).to_list()
    await failing.on_error_resume_next(lambda _: Flow.of(1).map(seen.noting("made"))).to_list()

    assert {"given": {Place.here()}, "made": {places.by_name["a"][1]}} == seen.of


def test_the_plan_says_where_operators_that_read_flows_run() -> None:
    thread = schedulers.thread("far")
    flow = Flow.of(1).publish_on(thread, prefetch=8).concat(Flow.of(2)).map(str)

    assert flow.describe().splitlines() == [
        "R1  thread('far')   concat() -> map(str)",
        "",
        "where concat reads:",
        "    R1  the subscriber's loop   of(1)",
        "     |  boundary, prefetch 8",
        "    R2  thread('far')           (elements pass as they are)",
        "",
        "where concat reads:",
        "    R1  the subscriber's loop   of(2)",
    ]


async def test_strict_mode_judges_a_flow_that_ends_on_a_thread(places: Places) -> None:
    flow = Flow.range(3).publish_on(places.scheduler("a")).strict()

    assert [0, 1, 2] == await flow.to_list()


async def test_what_is_called_on_a_source_on_virtual_time_goes_by_its_clock(places: Places) -> None:
    hours = Flow.interval(3600.0).subscribe_on(schedulers.virtual_time()).debounce(60.0).take(3)

    assert [0, 1, 2] == await asyncio.wait_for(hours.to_list(), 60)
