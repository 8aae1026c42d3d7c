"""One given element through stateless stages, inside a combinator: all is as in a region, and none is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._fusion import Stage
from reactive_aio._runtime import assemble
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio.errors import SourceCancelledError
from tests.registry import AnyFlow

TURNS = 3
"""More than one, since the first one begins the flow."""

Combine = Callable[[AnyFlow], AnyFlow]

COMBINED: dict[str, Combine] = {
    "flat_map": lambda inner: Flow.range(2).flat_map(lambda _: inner),
    "concat_map": lambda inner: Flow.range(2).concat_map(lambda _: inner),
    "exhaust_map": lambda inner: Flow.range(2).exhaust_map(lambda _: inner),
    "repeat": lambda inner: inner.repeat(2),
    "concat": lambda inner: Flow.concat(inner, inner),
}
combined = pytest.mark.parametrize("combine", COMBINED.values(), ids=COMBINED)


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The inputs of the regions that were made."""
    found: list[str] = []

    class Counted(RegionDriver):
        __slots__ = ()

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            found.append(self.region.source)

    monkeypatch.setattr(assemble, "RegionDriver", Counted)
    return found


def fail(_: object) -> object:
    raise LookupError("broken")


@combined
async def test_no_region_is_made_for_the_flows_behind_the_first(combine: Combine, regions: list[str]) -> None:
    assert [-8, -8] == await combine(Flow.of(7).map(lambda n: ~n).filter(bool)).to_list()

    # The first one comes before there is demand where nobody maps it.
    assert 1 >= sum(source.startswith("of(7)") for source in regions)


@combined
async def test_an_element_that_is_let_through_by_no_stage_is_none(combine: Combine) -> None:
    assert [] == await combine(Flow.of(7).filter(lambda _: False)).to_list()


@combined
async def test_a_failure_has_the_notes_that_a_region_would_give_it(combine: Combine) -> None:
    with pytest.raises(LookupError) as here:
        await combine(Flow.of(7).map(str).map(fail)).to_list()
    with pytest.raises(LookupError) as there:
        await combine(Flow.of(7).scan(lambda _, n: n, 0).skip(1).map(str).map(fail)).to_list()

    def without_lines(error: BaseException) -> list[str]:
        return [note.partition(" at ")[0] for note in error.__notes__]

    assert "in map(fail), chained" == without_lines(here.value)[0]
    assert without_lines(there.value) == without_lines(here.value)


async def test_retry_tries_again_until_there_is_an_element(regions: list[str]) -> None:
    tries: list[int] = []

    def third_time(n: int) -> int:
        tries.append(n)
        if len(tries) < 3:
            raise LookupError
        return n

    assert [7] == await Flow.of(7).map(third_time).retry().to_list()

    assert [7] * 3 == tries
    assert 1 >= sum(source.startswith("of(7)") for source in regions)


async def test_the_failure_that_retry_gives_up_with_has_the_notes_of_its_attempt() -> None:
    failures = iter([LookupError("first"), LookupError("second"), LookupError("third")])

    def failing(_: object) -> object:
        raise next(failures)

    with pytest.raises(LookupError, match="third") as caught:
        await Flow.of(7).map(str).map(failing).retry(2).to_list()

    located, given_up = caught.value.__notes__
    assert "in map(failing), chained" == located.partition(" at ")[0]
    assert ", on element #0 of of(7), chained" in located
    assert given_up.startswith("given up after 2 retries: ")


@pytest.mark.parametrize(
    ("raised", "arrives"), [(StopIteration(), RuntimeError), (asyncio.CancelledError(), SourceCancelledError)]
)
async def test_another_failure_stands_for_one_that_means_something_to_python(
    raised: BaseException, arrives: type[BaseException]
) -> None:
    def failing(_: object) -> object:
        raise raised

    with pytest.raises(arrives) as caught:
        await Flow.of(7).map(failing).retry(1, errors=arrives).to_list()

    located, given_up = caught.value.__notes__
    assert "in map(failing), chained" == located.partition(" at ")[0]
    assert given_up.startswith("given up after 1 retries: ")


async def test_each_has_a_context_of_its_own() -> None:
    seen: ContextVar[int] = ContextVar("seen", default=0)

    def note(n: int) -> int:
        before = seen.get()
        seen.set(n)
        return before

    assert [0, 0, 0] == await Flow.of(1, 2, 3).flat_map(lambda n: Flow.of(n).map(note)).to_list()
    assert 0 == seen.get()


@pytest.mark.parametrize(
    "inner",
    [
        Flow.of(7).take(1),
        Flow.of(7).scan(max),
        Flow.of(7).start_with(7),
        Flow.of(7).flat_map_iterable(lambda n: [n]),
    ],
    ids=["that stops", "with a state", "with a prelude", "that may give many"],
)
async def test_others_have_a_region(inner: Flow[int], regions: list[str]) -> None:
    await Flow.range(2).concat_map(lambda _: inner).to_list()

    assert 2 == sum(source.startswith(("of(7", "start")) for source in regions)


async def test_a_stage_of_ones_own_is_begun_once_for_each_subscription() -> None:
    begun: list[int] = []

    class Begun(Stage[int, int]):
        def transform(self) -> Begun:
            begun.append(1)
            return self

        def apply(self, items: Any) -> Any:
            yield from items

    assert [1, 1] == await Flow.range(2).concat_map(lambda _: Flow.of(1).then(Begun())).to_list()
    assert [1, 1] == begun


async def test_attempts_without_end_give_others_their_turn() -> None:
    task = asyncio.ensure_future(Flow.of(1).map(fail).retry().to_list())
    for _ in range(TURNS):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
