"""An engine written outside of the library runs what it can, and the event loop the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from tests.outside import shards as module
from tests.outside.shards import from_shards

SHARDS: tuple[list[int], ...] = ([3, 1, 4], [], [1, 5], [9, 2, 6])


def halved(n: int) -> int:
    return n // 2


def is_odd(n: int) -> bool:
    return n % 2 == 1


async def later(n: int) -> int:
    return n + 1


CHAINS: dict[str, Callable[[Flow[Any]], Any]] = {
    "nothing": lambda flow: flow.to_list(),
    "elements": lambda flow: flow.map(halved).filter(is_odd).to_list(),
    "a count": lambda flow: flow.filter(is_odd).count(),
    "a sum behind a map": lambda flow: flow.map(halved).sum(),
    "sorted": lambda flow: flow.sort_by().map(str).to_list(),
    "the whole": lambda flow: flow.scan(lambda a, b: a + b, 0).to_list(),
    "some": lambda flow: flow.map(halved).take(4).map(str).to_list(),
    "numbered": lambda flow: flow.index().map(str).to_list(),
    "awaited": lambda flow: flow.map(halved).map_async(later).to_list(),
    "twice": lambda flow: flow.map(halved).repeat(2).count(),
    "on and on": lambda flow: flow.repeat().map(halved).take(20).to_list(),
    "concat": lambda flow: flow.map(halved).concat(flow.filter(is_odd)).map(str).to_list(),
    "concat with others": lambda flow: flow.concat(Flow.range(3)).map(halved).to_list(),
    "a sum of several": lambda flow: flow.concat(flow).sum(),
    "behind a boundary": lambda flow: flow.map(halved).publish_on(schedulers.current()).map(str).to_list(),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=list(CHAINS))
async def test_a_flow_gives_the_same_on_the_engine_as_on_the_event_loop(chain: Callable[[Flow[Any]], Any]) -> None:
    there, here = from_shards(*SHARDS), Flow.from_iterable([n for shard in SHARDS for n in shard])

    assert await chain(here) == await chain(there)


THREADS: set[int] = set()


def noting(n: int) -> int:
    THREADS.add(threading.get_ident())
    return n


async def test_the_stages_are_run_where_the_shards_lie() -> None:
    await from_shards([1], [2]).map(noting).to_list()

    assert THREADS
    assert threading.get_ident() not in THREADS


def test_the_plan_shows_what_has_been_rewritten() -> None:
    flow = from_shards([1], [2]).map(halved).concat(from_shards([3])).filter(is_odd).scan(max, 0)

    assert [
        "built:",
        "    concat(Flow.from_shards().map(halved), Flow.from_shards()).filter(is_odd).scan(max, 0)",
        "rewritten:",
        "    join: concat() is one source of the shards",
        "    lower: filter(is_odd) is run by the shards",
    ] == flow.describe(rewrites=True).splitlines()[:5]


def test_what_cannot_be_sent_is_refused_where_it_is_chained() -> None:
    line = "test_engine.py"
    with pytest.raises(TypeError, match=rf"map\(<lambda>\), chained at .*{line}:\d+, can't be sent to the shards: "):
        from_shards([1]).map(halved).map(lambda n: n + 1)
    from_shards([1]).take(1).map(lambda n: n + 1)  # runs on the event loop


async def test_a_failure_names_the_operator_and_where_it_was_chained() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        await from_shards([1, 0]).map(inverse).to_list()

    assert any("in map(inverse), chained at" in note for note in raised.value.__notes__)


def inverse(n: int) -> float:
    return 1 / n


def test_an_engine_is_a_page_or_two_of_code() -> None:
    assert len(Path(module.__file__).read_text().splitlines()) <= 150
