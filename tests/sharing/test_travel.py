"""An object that has subscribers in this process can't go to another one. The refusal names it."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow, Hub, State, processor, schedulers
from reactive_aio._remote.pickling import by_value_dumps
from tests.schedulers.work import square

THINGS: dict[str, tuple[str, Callable[[], Any]]] = {
    "share": ("a shared flow", lambda: Flow.range(3).share()),
    "share of what can't be pickled either": ("a shared flow", lambda: Flow.range(3).map(lambda n: n).share()),
    "what follows a share": ("a shared flow", lambda: Flow.range(3).share().map(str)),
    "a share inside of a flow": ("a shared flow", lambda: Flow.of(1).merge(Flow.range(3).share())),
    "hub": ("a hub", lambda: Hub(idle="drop")),
    "the flow of a hub": ("a hub", lambda: Hub(idle="drop").flow),
    "state": ("a State", lambda: State(1)),
    "the flow of a state": ("a State", lambda: State(1).flow),
    "processor": ("a processor", lambda: processor(lambda flow: flow)),
    "processor with a lag": ("a processor", lambda: processor(lambda flow: flow, lag=8)),
    "thread": ("a scheduler", lambda: schedulers.thread("reader")),
    "threads": ("a scheduler", lambda: schedulers.threads(2)),
    "processes": ("a scheduler", lambda: schedulers.processes(2)),
}


@pytest.fixture(params=THINGS)
def thing(request: pytest.FixtureRequest) -> Any:
    words, make = THINGS[request.param]
    return words, make()


def test_to_pickle_it_is_refused_by_name(thing: tuple[str, Any]) -> None:
    words, made = thing
    with pytest.raises(TypeError, match=f"^{words} can't be pickled: "):
        pickle.dumps(made)


async def test_to_pickle_the_scheduler_of_an_event_loop_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^a scheduler can't be pickled: "):
        pickle.dumps(schedulers.loop(asyncio.get_running_loop()))


@pytest.mark.skipif(by_value_dumps() is None, reason="needs cloudpickle")
def test_a_function_that_captures_it_is_refused_when_the_flow_is_built(thing: tuple[str, Any]) -> None:
    words, made = thing
    here = Flow.range(3).publish_on(schedulers.processes(1))
    with pytest.raises(
        TypeError, match=rf"^map\(.*\), chained at .*, can't be sent to a worker process: .*{words} can't"
    ):
        here.map(lambda n: (n, made))


async def test_the_flow_that_multicast_gives_its_function_is_refused_by_name() -> None:
    given: list[Flow[int]] = []

    def twice(flow: Flow[int]) -> Flow[int]:
        given.append(flow)
        return flow.merge(flow)

    multicast = Flow.range(3).multicast(twice)
    await multicast.to_list()
    with pytest.raises(TypeError, match=r"the flow that multicast\(\) passes to its function can't be pickled"):
        pickle.dumps(given[0])


async def test_a_multicast_travels_as_it_is_run_anew_by_each_subscriber() -> None:
    copy: Flow[tuple[int, int]] = pickle.loads(pickle.dumps(Flow.range(3).multicast(with_the_next)))

    assert [(0, 1), (1, 2)] == await copy.to_list()


def with_the_next(flow: Flow[int]) -> Flow[tuple[int, int]]:
    return flow.zip(flow.skip(1))


async def test_what_comes_back_from_processes_is_shared_here() -> None:
    shared = Flow.range(50).publish_on(schedulers.processes(1)).map(square).share(start=2)

    assert (40425, 49 * 49) == tuple(await asyncio.gather(shared.sum(), shared.max()))
