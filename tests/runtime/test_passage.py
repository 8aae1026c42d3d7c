"""A combinator that another one reads has no region of its own, and signals as if it had one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from reactive_aio import Backoff, Flow, hooks, schedulers
from reactive_aio._runtime.passage import Passage
from reactive_aio.errors import SourceConsumedError
from reactive_aio.testing import run_virtual
from tests.subscribers import Recorder, idle


@pytest.fixture
def passages(monkeypatch: pytest.MonkeyPatch) -> list[Passage]:
    """Those that are made."""
    made: list[Passage] = []
    make = Passage.__init__

    def noted(passage: Passage, *arguments: Any) -> None:
        make(passage, *arguments)
        made.append(passage)

    monkeypatch.setattr(Passage, "__init__", noted)
    return made


async def numbers() -> AsyncGenerator[int]:
    for n in range(1, 4):
        yield n


def failing(times: int) -> Flow[int]:
    """A flow that fails behind two elements, so many times, and then has three."""
    left = [times]

    async def some() -> AsyncGenerator[int]:
        yield 1
        yield 2
        if left[0]:
            left[0] -= 1
            raise OSError("down")
        yield 3

    return Flow.from_async_iterable(some)


def shifted(flow: Flow[int]) -> Flow[int]:
    """Return a flow with stages that keep no state."""
    return flow.map(lambda n: n - 1).filter(lambda n: n >= 0).map(lambda n: n + 1)


ROWS: dict[str, Callable[[], Flow[int]]] = {
    "timeout, retry": lambda: Flow.from_async_iterable(numbers).timeout(5).retry(2),
    "retry, on_error_return": lambda: Flow.from_async_iterable(numbers).retry(2).on_error_return(0),
    "concat, repeat": lambda: Flow.of(1).concat(Flow.of(2), Flow.of(3)).repeat(1).retry(),
    "do_on_error, do_finally": lambda: (
        Flow.from_async_iterable(numbers).do_on_error(print).do_finally(int).checkpoint("here").retry()
    ),
    "defer, switch_if_empty": lambda: (
        Flow.defer(lambda: Flow.from_async_iterable(numbers)).switch_if_empty(Flow.of(9)).on_error_complete()
    ),
    "on_error_map, on_error_resume_next": lambda: (
        failing(1).on_error_map(lambda error: LookupError(str(error))).on_error_resume_next(Flow.of(3))
    ),
    "a window": lambda: Flow.from_async_iterable(numbers).window(2).concat_map(lambda window: window),
    "a window with a step": lambda: Flow.from_async_iterable(numbers).window(2).concat_map(shifted),
    "groups": lambda: Flow.from_async_iterable(numbers).group_by(str).flat_map(lambda group: group, prefetch=1),
    "groups with a step": lambda: Flow.from_async_iterable(numbers).group_by(str).flat_map(shifted, prefetch=1),
}


@pytest.mark.parametrize("row", ROWS)
async def test_it_signals_all_under_whatever_demand(row: str, passages: list[Passage]) -> None:
    assert [1, 2, 3] == await ROWS[row]().to_list()

    recorder = Recorder()
    ROWS[row]().subscribe(recorder)
    for n in range(1, 4):
        recorder.request(1)
        await idle()
        assert [*range(1, n + 1)] == recorder.items
    recorder.request(1)
    await recorder.over.wait()
    assert [1, 2, 3] == [n async for n in ROWS[row]()]
    assert passages
    assert all(passage.closed for passage in passages)


async def test_each_attempt_has_its_own_end(passages: list[Passage]) -> None:
    log: list[object] = []
    flow = failing(2).do_on_error(log.append).do_finally(lambda: log.append("over")).retry(5).on_error_complete()

    assert [1, 2, 1, 2, 1, 2, 3] == await flow.to_list()

    assert ["OSError", "OSError", "str", "str", "str"] == sorted(type(each).__name__ for each in log)
    assert passages


async def test_the_failure_of_groups_that_are_being_cancelled_is_reported_once(passages: list[Passage]) -> None:
    async def some() -> AsyncGenerator[int]:
        for n in range(8):
            if n % 2:
                await asyncio.sleep(0)
            yield n
        raise OSError("broken")

    dropped: list[BaseException] = []
    groups = Flow.from_async_iterable(some).group_by(lambda n: n % 4, prefetch=4)
    with hooks.using(on_error_dropped=dropped.append):
        taken = await groups.flat_map(lambda group: group, prefetch=1).filter(lambda n: n != 3).take(7).to_list()

    assert [0, 1, 2, 4, 5, 6, 7] == taken
    assert ["broken"] == [str(error) for error in dropped]
    assert len(passages) == 4


@pytest.mark.parametrize("step", [shifted, lambda flow: flow])
async def test_a_group_of_an_operator_on_another_event_loop_needs_a_boundary(
    step: Callable[[Flow[int]], Flow[int]], passages: list[Passage]
) -> None:
    endless = Flow.of(1, 2, 3).concat(
        Flow[int].never()
    )  # else the operator has ended, and needs its event loop no more
    groups = endless.group_by(lambda n: n % 2).publish_on(schedulers.thread("elsewhere"))

    assert {1, 2, 3} == {*await groups.flat_map(step).take(3).to_list()}
    assert not [passage for passage in passages if "group" in passage.region.source]


@pytest.mark.parametrize(
    "stage",
    [lambda flow: flow.take(1), lambda flow: flow.map(lambda n: n / 0), lambda flow: flow.take_while(lambda n: n > 1)],
    ids=["take", "a failure", "take_while"],
)
async def test_a_combinator_stops_behind_the_element_that_is_enough_for_the_stages_behind_it(
    stage: Callable[[Flow[int]], Flow[float]], passages: list[Passage]
) -> None:
    begun: list[int] = []

    def begin() -> Flow[int]:
        begun.append(len(begun))
        return Flow.of(1)

    await stage(Flow.defer(begin).repeat(9).retry()).on_error_complete().to_list()

    assert [0] == begun
    assert passages


async def test_a_group_that_is_read_for_the_second_time_fails_its_reader() -> None:
    twice = Flow.of(1, 2).group_by(lambda n: 0).flat_map(lambda group: group.concat(group))

    with pytest.raises(SourceConsumedError, match="serves only one reader"):
        await twice.to_list()


async def test_no_signal_comes_inside_a_request() -> None:
    recorder = Recorder()
    Flow.of(1, 2).concat(Flow.of(3)).retry().on_error_complete().subscribe(recorder)
    await idle()

    recorder.request(3)
    assert [] == recorder.items
    await idle()
    assert [1, 2, 3] == recorder.items


def test_what_leaves_in_the_middle_of_a_signal_leaves_no_timer() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        endless = Flow.of(1).repeat().timeout(60).retry().on_error_complete()
        assert [] == await endless.take_while(lambda _: False).to_list()
        await idle()
        assert [] == [each for each in vars(loop).get("_scheduled", ()) if not each.cancelled()]
        return loop.time() - begun

    assert 0 == run_virtual(main())


def test_a_failed_cleanup_behind_a_timeout_goes_to_the_hook_and_the_next_attempt_is_made() -> None:
    attempts: list[int] = []

    async def stuck() -> AsyncGenerator[int]:
        attempts.append(len(attempts))
        try:
            if len(attempts) == 1:
                await asyncio.Event().wait()
            yield len(attempts)
        finally:
            if len(attempts) == 1:
                raise OSError("not closed")

    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        flow = Flow.from_async_iterable(stuck).timeout(5).retry(Backoff(1, max_retries=1)).on_error_return(0)
        assert [2] == run_virtual(flow.to_list())

    assert ["not closed"] == list(map(str, dropped))


async def test_a_cleanup_that_fails_while_the_combinator_goes_on_fails_that_one_and_not_its_reader() -> None:
    async def badly_closed() -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            raise OSError("not closed")

    flow = Flow.from_async_iterable(badly_closed).take(1).concat(Flow.never()).on_error_return(0)

    assert [1, 0] == await flow.retry(1).to_list()


async def test_what_a_function_raises_when_it_is_subscribed_to_is_handled_by_the_reader() -> None:
    def fail() -> None:
        raise OSError("not today")

    assert [0] == await Flow.of(1).do_on_subscribe(fail).on_error_return(0).to_list()
    with pytest.raises(OSError, match="not today") as raised:
        await Flow.of(1).do_on_subscribe(fail).retry(1).to_list()
    assert "in do_on_subscribe(fail)" in "".join(raised.value.__notes__)


@pytest.mark.parametrize("levels", [3, 40, 1000])
async def test_a_row_may_be_as_long_as_one_likes(levels: int) -> None:
    flow = Flow.from_async_iterable(numbers)
    for _ in range(levels):
        flow = flow.retry(1).on_error_map(lambda error: error)

    assert [1, 2, 3] == await flow.to_list()


async def test_a_snapshot_shows_the_source_behind_it() -> None:
    async with Flow.from_async_iterable(numbers).timeout(5).retry(1).open() as items:
        assert 1 == await anext(items)
        (region,) = items.snapshot().regions
        assert 1 <= region.delivered <= 2


@pytest.mark.parametrize("end", ["complete", "error"])
@pytest.mark.parametrize(
    "outer",
    [
        lambda flow: flow.retry(0),
        lambda flow: flow.concat(Flow.empty()),
        lambda flow: flow.concat().timeout(60).retry(0),
        lambda flow: flow,
    ],
    ids=["retry", "concat", "three", "none"],
)
async def test_the_end_of_the_flow_waits_for_what_a_flow_that_is_read_elsewhere_does_behind_its_own(
    outer: Callable[[Flow[int]], Flow[int]], end: str
) -> None:
    entered, gate = threading.Event(), threading.Event()

    def late() -> None:
        entered.set()
        assert gate.wait(60)

    source = Flow.range(3) if end == "complete" else Flow.range(3).concat(Flow.error(OSError("down")))
    with schedulers.thread("far") as far:
        ending = asyncio.create_task(outer(source.do_finally(late)).subscribe_on(far).to_list())
        assert await asyncio.to_thread(entered.wait, 60)
        await idle()
        was_over = ending.done()
        gate.set()
        await asyncio.wait([ending])

    assert not was_over
    assert (ending.exception() is None) == (end == "complete")
