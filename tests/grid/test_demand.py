"""Every operator under demand: no more comes than is requested; `tests.catalogue` has what it asks for and keeps."""

from __future__ import annotations

import asyncio

import pytest

from reactive_aio import UNBOUNDED, Flow
from reactive_aio.testing import run_virtual
from tests.grid.points import HERE
from tests.registry import Entry, Settings, Via
from tests.subscribers import Recorder

ELEMENTS = 9
DEMANDS = [1, 2, 3, UNBOUNDED]


async def rest() -> None:
    """Let everything happen that will, on virtual time."""
    await asyncio.sleep(3600)


demands = pytest.mark.parametrize("demand", DEMANDS, ids=lambda n: "unbounded" if n == UNBOUNDED else str(n))
entries = pytest.mark.parametrize("entry", HERE, ids=str)


@demands
@entries
def test_as_many_elements_come_as_are_requested_each_time(entry: Entry, demand: int) -> None:
    async def main(via: Via) -> None:
        whole = await entry.make(ELEMENTS, via, Settings(prefetch=2)).to_list()
        recorder, requested = Recorder(), 0
        entry.make(ELEMENTS, via, Settings(prefetch=2)).subscribe(recorder)
        await rest()
        assert recorder.items == []
        while requested < ELEMENTS:
            recorder.request(demand)
            requested += demand
            await rest()
            assert recorder.items == whole[:requested]
        if not entry.ends_late:
            assert recorder.kinds[-1] == "complete", "behind the last element the end needs no demand"
        recorder.cancel()

    run_virtual(main(lambda flow: flow))
    run_virtual(main(Flow.from_publisher))
