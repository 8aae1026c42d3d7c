"""Flows of given elements that a combinator reads: they signal as a region would, and none is made for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._runtime import assemble
from reactive_aio._runtime.given import Given
from tests.subscribers import Recorder, idle


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """Those that are made."""
    found: list[Given] = []

    def make(*arguments: Any) -> Given:
        found.append(Given(*arguments))
        return found[-1]

    monkeypatch.setattr(assemble, "Given", make)
    return found


COMBINED: dict[str, Flow[int]] = {
    "concat": Flow.of(1, 2).concat(Flow.range(3, 5), Flow.empty(), Flow.from_iterable([5])),
    "concat_map": Flow.of(1, 3, 5).concat_map(lambda n: Flow.range(n, min(n + 2, 6))),
    "flat_map": Flow.of(1, 3, 5).flat_map(lambda n: Flow.range(n, min(n + 2, 6)), max_concurrency=1),
    "concat_eager": Flow.concat_eager(Flow.of(1, 2), Flow.of(3, 4), Flow.of(5)),
    "zip": Flow.of(1, 2, 3, 4, 5).zip(Flow.range(9)).map(lambda pair: pair[0]),
    "repeat": Flow.of(1).repeat(3).scan(lambda total, n: total + n).concat(Flow.of(4, 5)),
    "switch_if_empty": Flow[int].empty().switch_if_empty(Flow.range(1, 6)),
}


@pytest.mark.parametrize("name", COMBINED)
async def test_they_signal_all_under_whatever_demand(name: str, made: list[Given]) -> None:
    assert [1, 2, 3, 4, 5] == await COMBINED[name].to_list()

    recorder = Recorder()
    COMBINED[name].subscribe(recorder)
    for n in range(1, 6):
        recorder.request(1)
        await idle()
        assert [*range(1, n + 1)] == recorder.items
    await recorder.over.wait()
    assert [n async for n in COMBINED[name]] == [1, 2, 3, 4, 5]
    assert made


async def test_no_signal_comes_inside_a_request(made: list[Given]) -> None:
    recorder = Recorder()
    Flow.of(1, 2).concat(Flow.of(3)).subscribe(recorder)
    await idle()

    recorder.request(3)
    assert [] == recorder.items
    await idle()
    assert [1, 2, 3] == recorder.items
    assert 2 == len(made)


async def test_what_is_cancelled_signals_nothing_any_more() -> None:
    recorder = Recorder()
    Flow.range(10**9).concat(Flow.of(1)).subscribe(recorder)
    await idle()
    recorder.request(10**9)
    recorder.cancel()
    await idle()

    assert [] == recorder.items


async def test_a_long_one_gives_others_their_turn() -> None:
    turns = 0

    async def beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(beside())
    await Flow.range(10**6).concat(Flow.of(1)).count()
    other.cancel()

    assert 3 < turns


@pytest.mark.parametrize("other", ["with a stage", "of an iterator", "elsewhere"])
async def test_other_flows_have_a_region(other: str, made: list[Given]) -> None:
    with schedulers.thread("elsewhere") as place:
        flow = {
            "with a stage": Flow.of(1).map(int),
            "of an iterator": Flow.from_iterable(iter([1])),
            "elsewhere": Flow.of(1).subscribe_on(place),
        }[other]
        assert [1, 1] == await flow.concat(Flow.of(1)).to_list()

    assert len(made) == (0 if other == "elsewhere" else 1)  # there, what follows a flow elsewhere is read elsewhere too
