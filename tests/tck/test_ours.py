"""Everything of ours keeps the rules: each entry of the registry, fused and apart, at several prefetches, on each loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

import pytest
from attrs import frozen

from reactive_aio import Flow, schedulers
from reactive_aio.schedulers.processes import ProcessPool
from reactive_aio.schedulers.thread import ThreadScheduler
from reactive_aio.schedulers.threads import ThreadPool
from reactive_aio.tck import PublisherVerification, verify
from reactive_aio.testing import AdversarialLoop
from tests import selection
from tests.conftest import LOOPS
from tests.registry import REGISTRY, AnyFlow, Entry, Settings
from tests.tck.where import somewhere

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

PREFETCHES = [1, 2, 256]

FACTORIES: dict[str, LoopFactory] = LOOPS | {f"seed-{seed}": partial(AdversarialLoop, seed) for seed in (1, 2)}


def fused(flow: AnyFlow) -> AnyFlow:
    """Leave the steps in one region."""
    return flow


def apart(flow: AnyFlow) -> AnyFlow:
    """Have the next step speak to this flow by the contract."""
    return Flow.from_publisher(flow)


@frozen
class Case(selection.Case):
    entry: Entry
    via: Callable[[AnyFlow], AnyFlow]
    prefetch: int
    loop: str

    def axes(self) -> dict[Hashable, Hashable]:
        return {"entry": str(self.entry), "via": self.via, "prefetch": self.prefetch, "loop": self.loop}

    def __str__(self) -> str:
        prefetch = f"-prefetch-{self.prefetch}" if self.entry.prefetches else ""
        return f"{self.entry}-{self.via.__name__}{prefetch}-{self.loop}"


def loops_for(via: Callable[[AnyFlow], AnyFlow]) -> list[str]:
    """Return the loops of this machine, and an order of callbacks that only this way of putting flows together has."""
    return [*LOOPS, "seed-1" if via is fused else "seed-2"]


CASES = [
    Case(entry, via, prefetch, loop)
    for entry in REGISTRY
    for via in (fused, apart)
    for prefetch in (PREFETCHES if entry.prefetches else PREFETCHES[-1:])
    for loop in loops_for(via)
]

EVERYWHERE = {(fused, "asyncio"), (apart, "seed-2")}
"""The cases that run on each Python. The others take a minute or two, and run on the default one alone."""


def marked(case: Case) -> Any:
    return pytest.param(case, id=str(case), marks=[] if (case.via, case.loop) in EVERYWHERE else pytest.mark.stress)


@pytest.fixture(scope="module")
def thread() -> Iterator[ThreadScheduler]:
    with schedulers.thread("conformance") as scheduler:
        yield scheduler


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPool]:
    with schedulers.threads(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPool]:
    with schedulers.processes(2) as pool:
        Flow.range(9).publish_on(pool, prefetch=1).map(str).run_sync()  # until they have started
        yield pool


def has_nothing_to_do(pool: ThreadPool | ProcessPool) -> bool:
    """Return whether all chunks and all ends have been reported, as far as the loops that read them are there."""
    if isinstance(pool, ThreadPool):
        return pool._team is None or pool._team in pool._team
    members: list[Any] = [member for member in pool._members if not member.loop.is_closed()]
    return not any(member._left or any(member._channels.values()) for member in members)


def loops_of(thread: ThreadScheduler) -> Callable[[], list[asyncio.AbstractEventLoop]]:
    worker = thread._worker
    assert worker is not None
    return lambda: [worker.loop]


@pytest.mark.costly
@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_an_entry_of_the_registry_keeps_all_rules(case: Case, request: pytest.FixtureRequest) -> None:
    entry, settings = case.entry, Settings(case.prefetch)
    environment = somewhere(FACTORIES[case.loop])
    if entry.threaded:
        thread: ThreadScheduler = request.getfixturevalue("thread")
        loops = loops_of(thread)
        settings = Settings(case.prefetch, thread, loops()[0])
        # Without patience: what a boundary to somebody else's loop sets is a timer to look after it, for ever.
        environment = somewhere(FACTORIES[case.loop], loops, patience=0)
    if entry.pool:
        pool: ThreadPool | ProcessPool = request.getfixturevalue(entry.pool)
        settings = Settings(case.prefetch, pool=pool)
        environment = somewhere(FACTORIES[case.loop], idle=partial(has_nothing_to_do, pool))

    class Verification(PublisherVerification):
        def create_publisher(self, elements: int) -> Any:
            return entry.make(elements, case.via, settings)

        def create_failed_publisher(self) -> Any:
            return entry.fail(0, case.via, settings)

    Verification.environment = environment
    results = verify(Verification)
    found = {result.about.name: f"{result.outcome}: {result.text}" for result in results if result.outcome != "held"}
    if entry.ends_late:
        found.pop("test_optional_spec105_publisher_theEndNeedsNoFurtherDemand", None)

    assert {} == found, "\n\n".join(found.values())
