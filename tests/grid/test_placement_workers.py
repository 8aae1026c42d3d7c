"""Where functions run when pools of workers take part: each element tells, and the plan is compared."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, schedulers
from tests.registry import AnyFlow

Told = tuple[tuple[str, int, int, str], ...]
"""The way of an element: the function, its process, and its thread by number and by name."""


@frozen
class Note:
    """A function that adds to an element where it was called; it can be sent to other processes."""

    name: str

    @property
    def __name__(self) -> str:  # how plans show it
        return self.name

    def __call__(self, told: Told) -> Told:
        thread = threading.current_thread()
        return (*told, (self.name, os.getpid(), threading.get_ident(), thread.name))


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, Any]]:
    # Kept open, since processes take a while to start.
    with schedulers.thread("a") as a, schedulers.threads(2) as threads, schedulers.processes(1) as processes:
        yield {"current": schedulers.current(), "a": a, "threads": threads, "processes": processes}


rows = st.lists(st.sampled_from(["map", "map", "current", "a", "threads", "processes"]), max_size=9)


def build(places: dict[str, Any], row: list[str]) -> AnyFlow:
    flow: AnyFlow = Flow.of(*[()] * 12)
    for number, what in enumerate(row):
        flow = flow.map(Note(f"map_{number}")) if what == "map" else flow.publish_on(places[what], prefetch=4)
    return flow


def planned(flow: AnyFlow) -> dict[str, str]:
    """Read off the description where each function is to run."""
    found: dict[str, str] = {}
    for line in flow.describe().splitlines():
        if line.startswith("R"):
            place = line[4:].split("   ")[0].strip()
            found |= {word[4:-1]: place for word in line.split() if word.startswith("map(map_")}
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
def test_every_function_runs_where_the_plan_says(places: dict[str, Any], row: list[str]) -> None:
    flow = build(places, row)
    plan = planned(flow)
    home = os.getpid(), threading.get_ident()
    assert [f"map_{n}" for n, what in enumerate(row) if what == "map"] == list(plan)

    for told in flow.run_sync():
        assert list(plan) == [name for name, *_ in told]
        for name, process, thread, thread_name in told:
            place = plan[name]
            if place.startswith("processes"):
                assert process != home[0]
            elif place.startswith("threads"):
                assert process == home[0]
                assert thread != home[1]
                assert thread_name != "a"
            elif place == "thread('a')":
                assert (process, thread_name) == (home[0], "a")
            else:
                assert place in {"current()", "the subscriber's loop"}
                assert (process, thread) == home
