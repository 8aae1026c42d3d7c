"""threads(n): blocking functions side by side, in order, and nothing left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import frozen

from reactive_aio import Flow, SchedulerClosedError, SourceCancelledError, hooks, schedulers
from reactive_aio._fusion import Stage, Transform
from reactive_aio.schedulers.threads import _Thread
from reactive_aio.testing import VirtualTimeLoop
from tests.schedulers import work
from tests.subscribers import Recorder, ended_by

LIMIT = 60.0
"""Seconds after which a wait in a test has failed."""


@frozen
class NeverBegins(Stage[Any, Any]):
    kind: type[BaseException]

    def transform(self) -> Transform[Any, Any]:
        raise self.kind("odd")

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return items


who: ContextVar[str] = ContextVar("who", default="nobody")


def left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("threads(")]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert left() == []


async def test_blocking_functions_run_side_by_side_and_their_results_come_in_order() -> None:
    together = threading.Barrier(4)

    def meet(n: int) -> int:
        together.wait(LIMIT)
        return n

    assert await Flow.range(4).publish_on(schedulers.threads(4)).map(meet).to_list() == [0, 1, 2, 3]


async def test_no_more_than_n_run_at_a_time() -> None:
    running: list[int] = []
    most: list[int] = []
    together = threading.Barrier(3)

    def work(n: int) -> int:
        running.append(n)
        together.wait(LIMIT)
        most.append(len(running))
        together.wait(LIMIT)
        running.remove(n)
        return n

    await Flow.range(51).publish_on(schedulers.threads(3), prefetch=6).map(work).count()  # chunks of one

    assert {3} == set(most)


async def test_the_loop_goes_on_while_a_function_blocks() -> None:
    gate = threading.Event()

    def wait(n: int) -> bool:
        return gate.wait(LIMIT)

    async def open_gate() -> None:
        await asyncio.sleep(0)
        gate.set()

    task = asyncio.ensure_future(open_gate())
    assert await Flow.range(2).publish_on(schedulers.threads(2)).map(wait).to_list() == [True, True]
    await task


async def test_functions_run_on_the_threads_and_what_needs_the_whole_stream_on_the_loop() -> None:
    here = threading.get_ident()
    places: list[tuple[str, bool]] = []

    def at(place: str) -> Any:
        def note(item: Any) -> Any:
            places.append((place, threading.get_ident() == here))
            return item

        return note

    flow = Flow.range(3).map(at("before")).publish_on(schedulers.threads(2)).map(at("on")).filter(at("on") and bool)
    await flow.take(2).map(at("behind")).to_list()

    assert {place for place in places if place[0] == "before"} == {("before", True)}
    assert {place for place in places if place[0] == "on"} == {("on", False)}
    assert {place for place in places if place[0] == "behind"} == {("behind", True)}


async def test_threads_start_only_as_there_is_work() -> None:
    seen: list[int] = []

    def count(n: int) -> int:
        seen.append(len(left()))
        return n

    await Flow.of(0).publish_on(schedulers.threads(8), prefetch=1).map(count).to_list()
    assert seen == [1]

    # A result may be there before its thread is free again, so each element may find the others' threads busy.
    await Flow.range(5).publish_on(schedulers.threads(8), prefetch=1).map(count).to_list()
    assert max(seen) <= 5


def giving(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Have the machine give so many threads and no more."""
    start, given = _Thread.start, iter(range(threads))

    def started(thread: _Thread) -> None:
        if next(given, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(_Thread, "start", started)


async def test_where_the_machine_gives_fewer_threads_these_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    giving(monkeypatch, 1)

    assert await Flow.range(50).publish_on(schedulers.threads(3)).map(str).count() == 50


async def test_where_the_machine_gives_no_thread_the_flow_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    giving(monkeypatch, 0)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        await Flow.range(50).publish_on(schedulers.threads(3)).map(str).count()


@pytest.mark.parametrize("how", ["end", "failure", "cancel", "leave"])
async def test_when_the_terminal_returns_the_threads_are_gone(how: str) -> None:
    def work(n: int) -> int:
        if how == "failure" and n == 50:
            raise OSError("fifty")
        return n

    flow = Flow.range(1_000).publish_on(schedulers.threads(3), prefetch=16).map(work)
    if how == "end":
        await flow.count()
    elif how == "failure":
        with pytest.raises(OSError, match="fifty"):
            await flow.count()
    elif how == "leave":
        assert await flow.first() == 0
    else:
        task = asyncio.ensure_future(flow.for_each(lambda n: time.sleep(0.001)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert left() == []


async def test_a_cancel_waits_for_the_function_that_runs_and_starts_no_other() -> None:
    began, gate = threading.Event(), threading.Event()
    calls: list[int] = []

    def work(n: int) -> int:
        calls.append(n)
        began.set()
        gate.wait(LIMIT)
        return n

    task = asyncio.ensure_future(Flow.range(100).publish_on(schedulers.threads(1)).map(work).to_list())
    while not began.is_set():
        await asyncio.sleep(0)
    task.cancel()
    for _ in range(50):
        await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert calls == [0]


async def test_the_context_of_the_subscriber_is_current_and_changes_stay_where_they_are_made() -> None:
    def look(n: int) -> str:
        seen = who.get()
        who.set(f"{n}")
        return seen

    who.set("me")
    seen = await Flow.range(4).publish_on(schedulers.threads(2), prefetch=1).map(look).to_list()

    assert seen == ["me"] * 4
    assert who.get() == "me"


async def test_a_generator_that_waits_for_demand_keeps_its_context_and_is_closed_with_the_flow() -> None:
    closed = threading.Event()

    def many(n: int) -> Iterator[int]:
        token = who.set("inside")
        try:
            for k in range(1_000_000):
                yield k
                assert who.get() == "inside"
        finally:
            who.reset(token)
            closed.set()

    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        flow = Flow.range(1).publish_on(schedulers.threads(2), prefetch=2).flat_map_iterable(many)
        assert await flow.take(100).to_list() == list(range(100))

    assert closed.is_set()
    assert dropped == []


@pytest.mark.parametrize("kind", work.ODD, ids=lambda kind: kind.__name__)
async def test_whatever_a_function_raises_arrives_and_the_threads_go_on(kind: type[BaseException]) -> None:
    error = kind("odd")

    def fail(n: int) -> int:
        raise error

    async with schedulers.threads(1) as pool:
        raised = await ended_by(Flow.of(1).publish_on(pool).map(fail))
        assert "in map(fail)" in raised.__notes__[0]
        assert ["1"] == await Flow.of(1).publish_on(pool).map(str).to_list()

    assert error is (raised if kind is not asyncio.CancelledError else raised.__cause__)


@pytest.mark.parametrize("kind", work.ODD, ids=lambda kind: kind.__name__)
async def test_whatever_a_stage_raises_as_it_begins_arrives_and_the_threads_go_on(kind: type[BaseException]) -> None:
    async with schedulers.threads(1) as pool:
        raised = await ended_by(Flow.of(1).publish_on(pool).then(NeverBegins(kind)))
        assert ["1"] == await Flow.of(1).publish_on(pool).map(str).to_list()

    assert (kind if kind is not asyncio.CancelledError else SourceCancelledError) is type(raised)


async def test_an_open_pool_serves_many_flows_with_the_same_threads() -> None:
    idents: set[int] = set()
    async with schedulers.threads(2) as pool:
        flow = Flow.range(20).publish_on(pool, prefetch=4).map(lambda n: idents.add(threading.get_ident()) or n)
        results = await asyncio.gather(*(flow.to_list() for _ in range(10)))
        assert 1 <= len(left()) <= 2

    assert results == [list(range(20))] * 10
    assert len(idents) <= 2


async def test_flows_on_a_pool_that_is_closed_fail() -> None:
    began, gate = threading.Event(), threading.Event()

    def work(n: int) -> int:
        began.set()
        gate.wait(LIMIT)
        return n

    pool = schedulers.threads(2)
    async with pool:
        recorder = Recorder(10)
        Flow.range(5).publish_on(pool).map(work).subscribe(recorder)
        while not began.is_set():
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, gate.set)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert type(recorder.error) is SchedulerClosedError
    with pytest.raises(SchedulerClosedError, match=r"threads\(2\) has been closed"):
        await Flow.range(5).publish_on(pool).map(str).to_list()


async def test_a_flow_that_waits_for_demand_keeps_no_thread_from_others() -> None:
    async with schedulers.threads(1) as pool:
        waiting = Recorder(1)
        Flow.range(1).publish_on(pool, prefetch=1).flat_map_iterable(lambda n: range(100)).subscribe(waiting)
        while not waiting.items:
            await asyncio.sleep(0)

        assert await Flow.range(3).publish_on(pool).map(str).to_list() == ["0", "1", "2"]
        waiting.request(1_000)
        await asyncio.wait_for(waiting.over.wait(), LIMIT)
        assert waiting.items == list(range(100))


def test_a_pool_that_is_closed_while_a_job_is_put_still_ends() -> None:
    pool = schedulers.threads(1)
    closing = threading.Thread(target=pool.close, daemon=True)

    class ClosedMeanwhile:
        """The queue of the jobs. The pool is closed just before the first job is taken."""

        def __init__(self, jobs: Any) -> None:
            self.get, self._put = jobs.get, jobs.put

        def put(self, job: Any) -> None:
            if closing.ident is None:
                closing.start()
                closing.join(0.1)  # it waits, or has told the threads to end
            self._put(job)

    async def main() -> None:
        with pytest.raises(SchedulerClosedError):
            await Flow.never().start_with(1).publish_on(pool.open()).map(str).to_list()

    assert pool.open()._team is not None
    pool._team._jobs = ClosedMeanwhile(pool._team._jobs)
    asyncio.run(main())
    closing.join(LIMIT)
    assert not closing.is_alive(), "it waits for a job that nobody does"


def test_each_call_that_ends_the_threads_is_told_of_it_once() -> None:
    told: list[str] = []
    pool = schedulers.threads(1).open()
    team = pool._team
    assert team is not None
    team.put(lambda: None)

    def once_more() -> None:
        told.append("first")
        team.stop(lambda: told.append("second"))

    team.stop(once_more)
    team.join()

    assert ["first", "second"] == told


def test_virtual_time_does_not_pass_while_a_function_runs() -> None:
    async def main(pool: Any) -> float:
        loop = asyncio.get_running_loop()
        sleeper = asyncio.ensure_future(asyncio.sleep(3600))
        await Flow.range(4).publish_on(pool).map(lambda n: time.sleep(0.005)).count()
        passed = loop.time()
        sleeper.cancel()
        return passed

    with schedulers.threads(2) as pool, asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        for _ in range(3):
            assert runner.run(main(pool)) < 3600
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main(schedulers.threads(2))) < 3600


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_the_number_of_threads_is_a_count(n: Any, error: Any) -> None:
    with pytest.raises(error, match="threads"):
        schedulers.threads(n)
