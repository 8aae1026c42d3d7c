"""Direct runs of windows and groups: an end that is awaited makes no driver, and nobody can tell."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, SourceConsumedError, hooks
from reactive_aio._core import budgets
from reactive_aio._core.notes import notes_of
from reactive_aio._plan import Buffered, BufferReader, Inlet
from reactive_aio._runtime import ends
from reactive_aio.extend import flow_of
from reactive_aio.operators.windowing.parting import TURNS
from reactive_aio.spec import UNBOUNDED, Subscription
from tests.runtime.test_direct import ENDS, Ticking, always_driven, driven

__all__ = ["driven"]

Chain = Callable[[Flow[Any]], Flow[Any]]

number: ContextVar[int] = ContextVar("number", default=0)


def fail_at_two(item: int) -> int:
    if item == 2:
        raise ValueError("two")
    return item


CHAINS: dict[str, Chain] = {
    "nothing": lambda flow: flow,
    "map": lambda flow: flow.map(lambda item: item + 1),
    "filter": lambda flow: flow.filter(lambda item: item % 2),
    "take": lambda flow: flow.take(2),
    "take none": lambda flow: flow.take(0),
    "skip": lambda flow: flow.skip(1),
    "scan": lambda flow: flow.scan(lambda a, b: a + b, 10),
    "start_with": lambda flow: flow.start_with(7),
    "buffer": lambda flow: flow.buffer(2).map(len),
    "pairwise": lambda flow: flow.pairwise().map(sum),
    "take_last": lambda flow: flow.take_last(2),
    "flat_map_iterable": lambda flow: flow.flat_map_iterable(range),
    "fails": lambda flow: flow.map(fail_at_two),
    "fails behind start_with": lambda flow: flow.start_with(1).map(fail_at_two),
}

SOURCES: dict[str, Callable[[], Flow[Any]]] = {
    "windows": lambda: Flow.range(7).window(3),
    "groups": lambda: Flow.range(7).group_by(lambda item: item % 2),
    "groups that fail": lambda: Flow.range(7).map(fail_at_two).group_by(lambda item: item % 2),
    "one by one": lambda: Flow.range(7).delay(0).window(3),
}


@define
class Seen:
    """The outcome of the ends of some windows or groups, and what the hooks were told."""

    results: list[object] = field(factory=list[object])
    discarded: list[object] = field(factory=list[object])
    dropped: list[str] = field(factory=list[str])


def told(error: BaseException) -> tuple[str, tuple[str, ...]]:
    return repr(error), tuple(note.partition(", chained at")[0] for note in notes_of(error))


async def outcomes(source: Callable[[], Flow[Any]], chain: Chain, end: Callable[[Flow[Any]], Awaitable[Any]]) -> Seen:
    """Await an end of each part, one after another, as far as one fails."""
    seen = Seen()
    dropped = seen.dropped
    with hooks.using(on_discard=seen.discarded.append, on_error_dropped=lambda error: dropped.append(repr(error))):
        await read(seen, source(), chain, end)
        for _ in range(TURNS + 2):  # for which a group_by that fails refers to its groups
            await asyncio.sleep(0)
        gc.collect()  # what a part keeps that nobody reads is discarded when it is garbage
    return seen


async def read(seen: Seen, source: Flow[Any], chain: Chain, end: Callable[[Flow[Any]], Awaitable[Any]]) -> None:
    try:
        async with source.open() as parts:
            async for part in parts:
                try:
                    seen.results.append(await end(chain(part)))
                except (ValueError, LookupError) as error:
                    seen.results.append(told(error))
    except ValueError as error:
        seen.results.append(("the whole", told(error)))


@pytest.mark.usefixtures("still")  # which turn a group is left in, when the flow fails, depends on the clock
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("source", SOURCES)
async def test_a_part_gives_what_it_gives_with_a_driver(
    source: str, chain: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directly = await outcomes(SOURCES[source], CHAINS[chain], ENDS[end])
    monkeypatch.setattr(ends, "_way", always_driven)
    driven = await outcomes(SOURCES[source], CHAINS[chain], ENDS[end])

    assert driven == directly


async def test_an_end_of_a_window_or_a_group_makes_no_driver(driven: list[object]) -> None:
    async with Flow.range(4).window(2).open() as windows, Flow.range(4).group_by(lambda n: n % 2).open() as groups:
        assert [[0, 1], [2, 3]] == [await window.to_list() async for window in windows]
        assert [2, 2] == [await group.map(str).count() async for group in groups]

    assert [] == driven


@define(eq=False)
class Upwards(Buffered[int]):
    """Keeps the numbers up to seven, as far as they have been requested."""

    asked: list[int] = field(factory=list[int])
    demand: int = 0
    kept: list[Any] | deque[Any] | tuple[()] = ()
    ended: bool = False
    given: int = 0

    def open(self, inlet: Inlet[int]) -> Subscription:
        """Refuse a region."""
        raise NotImplementedError

    def read_by(self, reader: BufferReader) -> None:
        """Begin."""
        number.set(9)

    def request(self, n: int) -> bool:
        """Note it, and keep as many numbers more."""
        self.asked.append(n)
        self.demand = n
        self.kept = list(range(self.given, min(self.given + n, 7)))
        self.given += len(self.kept)
        self.ended = self.given == 7
        return True

    def take(self) -> list[int] | None:
        """Return them."""
        kept, self.kept = list(self.kept), ()
        self.demand -= len(kept)
        return kept or None

    def finish(self) -> None:
        """End well."""

    def got(self) -> None:
        """Nothing: it never fails."""

    def missed(self, error: BaseException, dropped: Callable[[BaseException], None]) -> None:
        """Nothing: it never fails."""

    def leave(self, dropped: Callable[[BaseException], None]) -> None:
        """Note it."""
        self.asked.append(0)


async def test_no_more_is_requested_than_the_stages_need() -> None:
    everything, some, none = Upwards(), Upwards(), Upwards()

    assert 7 == await flow_of(everything).count()
    assert [UNBOUNDED] == everything.asked
    assert 4 == await flow_of(some).filter(lambda n: n > 3).first()
    assert [1, 1, 1, 1, 1, 0] == some.asked
    assert [] == await flow_of(none).take(0).to_list()
    assert [] == none.asked  # it has not begun to read, so it does not leave


async def test_a_source_runs_in_a_context_of_the_run() -> None:
    await flow_of(Upwards()).count()

    assert 0 == number.get()


async def test_a_second_end_is_refused() -> None:
    async with Flow.range(2).window(2).open() as windows:
        window = await anext(windows)
        await window.drain()
        with pytest.raises(SourceConsumedError, match=r"the window 0 was subscribed to a second time"):
            await window.map(str).to_list()


@pytest.mark.parametrize("source", ["windows", "groups"])
@pytest.mark.parametrize("second", ["count", "take none"])
async def test_a_second_end_leaves_the_part_to_its_first_reader(source: str, second: str) -> None:
    gate = asyncio.Event()

    async def items() -> Any:
        yield 1
        await gate.wait()
        yield 2

    async def twice(part: Flow[int]) -> list[int]:
        first = asyncio.ensure_future(part.to_list())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if second == "count":
            with pytest.raises(SourceConsumedError):
                await part.count()
        else:
            assert await part.take(0).to_list() == []
        gate.set()
        return await asyncio.wait_for(first, 5)

    flow = Flow.from_async_iterable(items)
    parts: Flow[Any] = flow.window(2) if source == "windows" else flow.group_by(lambda _: 0)
    reads = [asyncio.ensure_future(twice(part)) async for part in parts]
    assert await asyncio.gather(*reads) == [[1, 2]]


class Idle(Upwards):
    """Has nothing as yet."""

    def request(self, n: int) -> bool:
        """Wait."""
        return False


def test_a_task_that_its_loop_leaves_behind_leaves_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: unraisable.append(repr(raised.exc_value)))
    source, loop = Idle(), asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    task = loop.create_task(flow_of(source).count())
    loop.call_later(0.001, loop.stop)
    loop.run_forever()
    loop.close()
    del task, loop
    gc.collect()

    assert [0] == source.asked
    assert [] == unraisable


async def test_functions_see_the_variables_of_who_awaits() -> None:
    async with Flow.range(2).window(2).open() as windows:
        window = await anext(windows)
        number.set(5)

        assert [5, 5] == await window.map(lambda _: number.get()).to_list()


async def test_others_have_a_turn_while_a_part_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with Flow.range(200).window(200).open() as windows:
        window = await anext(windows)
        counting = asyncio.create_task(count())
        monkeypatch.setattr(budgets, "clock", Ticking(budgets.TURN / 4))
        assert 200 == await window.map(lambda item: item).count()
        counting.cancel()

    assert turns > 20


async def test_a_cancel_tells_of_what_was_kept_and_of_what_is_still_to_come() -> None:
    discarded: list[object] = []
    going_on = asyncio.Event()

    async def items() -> Any:
        yield 1
        yield 2
        await going_on.wait()
        yield 3
        yield 4

    with hooks.using(on_discard=discarded.append):
        async with Flow.from_async_iterable(items).group_by(lambda _: 0).open() as groups:
            reading = asyncio.create_task((await anext(groups)).skip(9).to_list())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            going_on.set()
            # Who comes behind a reader that has left gets a group of its own.
            assert [3, 4] == await (await anext(groups)).to_list()

    assert [] == [item for item in discarded if item in (3, 4)]


async def test_a_failure_and_a_cancel_at_the_same_time_go_to_the_hook() -> None:
    dropped: list[str] = []

    async def reads(window: Flow[int]) -> None:
        await window.map(fail_at_two).to_list()

    with hooks.using(on_error_dropped=lambda error: dropped.append(str(error))):
        async with Flow.of(2).window(1).open() as windows:
            reading = asyncio.create_task(reads(await anext(windows)))
            while not reading.done():
                await asyncio.sleep(0)
                if ends_now(reading):
                    reading.cancel()
            with suppress(asyncio.CancelledError, ValueError):
                await reading

    assert dropped in (["two"], [])


def ends_now(task: asyncio.Task[Any]) -> bool:
    """Return whether a task waits for a future that is done."""
    waits: Any = getattr(task, "_fut_waiter", None)
    return waits is not None and waits.done()
