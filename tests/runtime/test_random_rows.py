"""Random rows of stages, under a clock that jumps: the same elements arrive as under one that stands still."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest
from attrs import define, field, frozen

from reactive_aio import Flow, schedulers
from reactive_aio._core import budgets
from reactive_aio._fusion import Stage, Template, Transform
from tests.runtime.test_stages_that_say_nothing import ENDS

Row = Callable[[Flow[Any]], Flow[Any]]


@frozen
class Copies(Stage[Any, Any]):
    """Several for each, by a generator."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            yield from (item, item)


@frozen
class Chained(Stage[Any, Any]):
    """Several for each, by an iterator of another kind than a generator."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return itertools.chain.from_iterable((item, item) for item in items)


@frozen
class Framed(Stage[Any, Any]):
    """Some before all, and some behind, and each three times in between."""

    def prelude(self) -> Iterable[Any]:
        return 7, 8, 9

    def finish(self) -> Iterable[Any]:
        return 1, 2, 3

    template = Template("""
        for item in (item, item, item):
            $rest
    """)


@define
class Held(Transform[Any, Any]):
    """Holds three elements, and then gives all of them."""

    held: list[Any] = field(factory=list[Any])

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.held.append(item)
            if len(self.held) == 3:
                yield from self.finish()

    def finish(self) -> Iterable[Any]:
        given, self.held = self.held, []
        return given


@frozen
class Holds(Stage[Any, Any]):
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        return Held()


def _same(item: Any) -> Any:
    return item


ROWS: list[Row] = [
    *[lambda flow, stage=stage: flow.then(stage) for stage in (Copies(), Chained(), Framed(), Holds())],
    lambda flow: flow.flat_map_iterable(lambda n: [n] * 70),
    lambda flow: flow.flat_map_iterable(lambda n: (each for each in (n, n))),
    lambda flow: flow.map_batches(lambda batch: batch * 40, size=2),
    lambda flow: flow.buffer(3).flat_map_iterable(_same),
    lambda flow: flow.take(50),
    lambda flow: flow.skip(2),
    lambda flow: flow.take_last(30),
    lambda flow: flow.filter(lambda n: n % 2 == 0),
    lambda flow: flow.sort_by(lambda n: -n),
    lambda flow: flow.index().map(lambda pair: pair[0] % 50),
    lambda flow: flow.publish_on(schedulers.current(), prefetch=3),
]


async def counting() -> AsyncIterator[int]:
    for n in range(6):
        yield n


SOURCES: list[Callable[[], Flow[Any]]] = [
    lambda: Flow.range(6),
    lambda: Flow.from_async_iterable(counting),
    lambda: Flow.empty().concat(Flow.range(6)),
]


def made(rng: random.Random) -> Flow[Any]:
    """Return a flow that is made by chance, of a few hundred elements at most."""
    flow = rng.choice(SOURCES)()
    for _ in range(rng.randint(1, 5)):
        flow = rng.choice(ROWS)(flow)
    return flow.take(500)


@define
class Jumping:
    """A clock that jumps at some looks at it, by more than a turn."""

    rng: random.Random
    chance: float
    ahead: float = 0.0

    def now(self) -> float:
        if self.rng.random() < self.chance:
            self.ahead += 2 * budgets.TURN
        return self.ahead


@pytest.mark.parametrize("seed", range(150))
async def test_all_of_it_arrives_whenever_the_time_is_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    flow = made(rng)
    monkeypatch.setattr(budgets, "clock", lambda: 0.0)
    expected = await flow.to_list()

    for end in (ENDS[0], ENDS[5], ENDS[6]):  # by async for, over a boundary, in the region
        monkeypatch.setattr(budgets, "clock", Jumping(rng, rng.choice([0.1, 0.5, 1.0])).now)
        collect: Any = end.values[0]
        assert expected == await collect(flow)
