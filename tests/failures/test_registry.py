"""Every operator and source of the registry, each of its steps in a user's code, with the kinds of exceptions in turn.

The steps are those of tests/grid/points.py: functions, elements of iterables, signals of publishers, awaits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any, Final

import pytest
from attrs import define, field, frozen

from reactive_aio import Flow, schedulers
from tests.conftest import LOOPS
from tests.failures.kinds import ALL_KINDS, Kind, shown, stands_for
from tests.failures.running import WHOLE, Bench, Leaks, none_go_wrong, outcome_of
from tests.grid.points import Points, WatchedPublisher, WatchedSubscriber, errors_in
from tests.registry import REGISTRY, AnyFlow, Entry, Settings

ELEMENTS: Final = 3
ENTRIES: Final = [entry for entry in REGISTRY if entry.pool != "processes" and entry.variant != "loop"]


BEYOND_CONTEXTLIB: Final = {"unsettable", "frozen"}
"""The resource of the registry is made with Python's contextlib, which replaces these kinds by another error."""


@define(eq=False)
class OddPoints(Points):
    """Points at which something other than an Exception may be raised."""

    kind: Kind = ALL_KINDS[0]
    odd: BaseException = field(init=False)

    open: int = 0

    def __attrs_post_init__(self) -> None:
        self.odd = self.kind.make()

    def step(self) -> None:
        """Take a step, or fail."""
        self.passed += 1
        if self.passed == self.fails_at:
            raise self.odd

    def _watched(self, value: Any) -> Any:
        watched: Any = super()._watched(value)
        return OddPublisher(self, watched.publisher) if isinstance(watched, WatchedPublisher) else watched


@frozen(eq=False)
class OddPublisher(WatchedPublisher):
    """A publisher that signals whatever is raised."""

    def subscribe(self, subscriber: Any) -> None:
        """Stand in between."""
        self.publisher.subscribe(OddSubscriber(self.points, subscriber))


@define(eq=False)
class OddSubscriber(WatchedSubscriber):
    """Where a step fails it cancels and signals, as it has to."""

    def _signal(self, signal: Callable[[], None], to_cancel: Any) -> None:
        if self.over:
            return
        try:
            self.points.step()
        except BaseException as error:
            self.over = True
            if to_cancel is not None:
                to_cancel.cancel()
            self.subscriber.on_error(error)
        else:
            signal()


async def for_each(flow: AnyFlow, points: Points) -> None:
    """Read with a function."""
    await flow.for_each(points.identity)


async def for_each_async(flow: AnyFlow, points: Points) -> None:
    """Read with an async function."""

    async def consume(_: Any) -> None:
        points.step()
        await asyncio.sleep(0)
        points.step()

    await flow.for_each(consume, max_concurrency=2)


async def opened(flow: AnyFlow, points: Points) -> None:
    """Read in a block that fails."""
    async with flow.open() as items:
        async for _ in items:
            points.step()


ENDS: Final[list[Callable[[AnyFlow, Points], Awaitable[None]]]] = [for_each, for_each_async, opened]


@frozen(eq=False)
class EntryCell:
    """An entry of the registry with one step that fails."""

    entry: Entry
    step: int
    kind: Kind
    end: int
    apart: bool
    loop_name: str

    @property
    def loop(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """Makes its loop."""
        return LOOPS[self.loop_name]

    def __str__(self) -> str:
        way = "apart" if self.apart else "fused"
        return f"{self.entry}, step {self.step} | {self.kind.name} | plain | {ENDS[self.end].__name__} | {way} | {self.loop_name}"

    async def run(self, bench: Bench) -> list[str]:
        """Run it, and tell what is wrong."""
        points, leaks, dropped = OddPoints(self.step, self.kind), Leaks(), list[BaseException]()
        leaks.begin()
        settings = Settings(
            prefetch=2,
            thread=schedulers.thread("registry") if self.entry.threaded else None,
            pool=schedulers.threads(2) if self.entry.pool else None,
        )

        def via(flow: AnyFlow) -> AnyFlow:
            watched = points.via(flow)
            return Flow.from_publisher(watched) if self.apart else watched

        with bench.dropped(dropped):
            run = ENDS[self.end]
            task = asyncio.create_task(
                outcome_of(lambda: run(self.entry.make(ELEMENTS, via, settings), points), points)
            )
        outcome = await bench.finish(task)
        left = await leaks.told(bench)
        if self.step == 0:
            STEPS[str(self.entry), self.end, self.apart] = points.passed
        return [
            *self._judge(points, outcome.error, dropped),
            *left,
            *(f"told to the loop: {each}" for each in bench.handled),
        ]

    def _judge(self, points: OddPoints, error: BaseException | None, dropped: list[BaseException]) -> list[str]:
        if not points.failed:
            return [] if error is None else [f"nothing was raised, and the end raised {shown(error)}"]
        told = [each for each in (error, *dropped) for one in errors_in(each) if one is points.odd]
        if error is not None and points.odd not in list(errors_in(error)):
            return [f"the end raised another error: {shown(error)}"]
        if not told:
            return [] if self.entry.recovers else ["it was told to nobody"]
        if not self.entry.recovers and error is not None and not stands_for(error, points.odd):
            return [f"the end raised {shown(error)} instead"]
        return [] if len(told) == 1 else [f"it was told {len(told)} times"]


STEPS: Final[dict[tuple[str, int, bool], int]] = {}
"""How many steps each entry has."""


def cells(entry: Entry, end: int, apart: bool, turns: Iterator[int]) -> Iterator[EntryCell]:
    """Yield a cell for each step: of each kind on each loop, or of the one whose turn it is."""
    for step in range(1, STEPS.get((str(entry), end, apart), 0) + 1):
        turn = next(turns)
        kinds = ALL_KINDS if WHOLE else [ALL_KINDS[turn % len(ALL_KINDS)]]
        loops = list(LOOPS) if WHOLE else [list(LOOPS)[turn % len(LOOPS)]]
        for kind in kinds:
            for loop in loops:
                if not (entry.method == "using" and kind.name in BEYOND_CONTEXTLIB):
                    yield EntryCell(entry, step, kind, end, apart, loop)


STARTS: Final = range(0, len(ENTRIES), 10) if WHOLE else [0]


@pytest.mark.costly
@pytest.mark.parametrize("start", STARTS)
def test_every_kind_arrives_from_every_step_of_every_operator_and_source(start: int) -> None:
    some = list(enumerate(ENTRIES))[start : start + 10] if WHOLE else list(enumerate(ENTRIES))
    # By turns: over the entries all kinds meet all ends, and each entry is read apart, or fused.
    ways = [
        (entry, end, apart)
        for at, entry in some
        for end in range(len(ENDS))
        for apart in (False, True)
        if WHOLE or (end, apart) == (at % len(ENDS), bool(at // len(ENDS) % 2))
    ]
    # Of whatever cells are asked for, these tell how many steps there are.
    none_go_wrong((EntryCell(entry, 0, ALL_KINDS[0], end, apart, "asyncio") for entry, end, apart in ways), only="")

    turns = count()
    none_go_wrong(cell for way in ways for cell in cells(*way, turns))
