"""Any failure on a worker arrives where the flow is awaited, and the workers go on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, SourceCancelledError, hooks, schedulers
from reactive_aio._fusion import ChunkWork, Origin, Placed
from reactive_aio._remote.frames import Decoder
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable
from reactive_aio.schedulers.base import Report
from tests.schedulers import work
from tests.subscribers import Recorder, ended_by

LIMIT = 60.0
"""Seconds after which a wait in a test has failed."""

odd = pytest.mark.parametrize("kind", work.ODD, ids=lambda kind: kind.__name__)


def arriving(kind: type[BaseException]) -> type[BaseException]:
    return SourceCancelledError if issubclass(kind, asyncio.CancelledError) else kind


@pytest.fixture(scope="module")
def pool() -> Iterator[Any]:
    with schedulers.processes(1) as pool:
        yield pool


async def pid(pool: Any) -> int:
    (pid,) = await Flow.of(0).publish_on(pool).map(work.pid).to_list()
    return pid


# -- on processes


@odd
async def test_whatever_a_function_raises_arrives_behind_what_came_before_it(pool: Any, kind: Any) -> None:
    before, recorder = await pid(pool), Recorder(9)
    Flow.range(5).publish_on(pool).map(work.Raising(kind)).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert [0, 1] == recorder.items
    assert arriving(kind) is type(recorder.error)
    assert before == await pid(pool)


@odd
async def test_whatever_the_pickling_of_an_element_raises_arrives(pool: Any, kind: Any) -> None:
    before, recorder = await pid(pool), Recorder(9)
    Flow.of(0, 1, work.Unpicklable(kind), 3).publish_on(pool).map(work.same).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert [0, 1] == recorder.items
    assert arriving(kind) is type(recorder.error)
    assert before == await pid(pool)


@odd
async def test_whatever_the_unpickling_of_an_element_raises_arrives(pool: Any, kind: Any) -> None:
    before, recorder = await pid(pool), Recorder(9)
    Flow.of(0, 1, work.Homeless(kind), 3).publish_on(pool).map(work.same).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert [0, 1] == recorder.items
    assert arriving(kind) is type(recorder.error)
    assert before == await pid(pool)


@odd
async def test_whatever_the_pickling_of_a_result_raises_arrives(pool: Any, kind: Any) -> None:
    before = await pid(pool)

    assert arriving(kind) is type(await ended_by(Flow.of(kind).publish_on(pool).map(work.Unpicklable)))
    assert before == await pid(pool)


@odd
async def test_whatever_the_unpickling_of_a_result_raises_arrives(pool: Any, kind: Any) -> None:
    before, recorder = await pid(pool), Recorder(9)
    Flow.of(0, 1, kind, 3).publish_on(pool).map(work.homeless).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert [0, 1] == recorder.items
    assert arriving(kind) is type(recorder.error)
    assert before == await pid(pool)


async def test_a_result_for_which_there_is_no_memory_here_fails_the_flow(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    want, before = Decoder._want, await pid(pool)

    def short(decoder: Decoder, size: int) -> bytearray:
        if size > 1_000_000:
            raise MemoryError
        return want(decoder, size)

    monkeypatch.setattr(Decoder, "_want", short)

    assert MemoryError is type(await ended_by(Flow.of(10_000_000).publish_on(pool).map(bytes)))
    assert before == await pid(pool)


# -- what can't be let go of


@define(eq=False)
class Heard:
    """Records what the workers say (Reports)."""

    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    said: list[str] = field(init=False, factory=list[str])
    news: asyncio.Event = field(init=False, factory=asyncio.Event)

    def say(self, word: str) -> None:
        def take() -> None:
            self.said.append(word)
            self.news.set()

        self.loop.call_soon_threadsafe(take)

    def reported(self, report: Report) -> None:
        self.say("nothing" if report.failure is None else type(report.failure).__name__)

    def sent(self, chunk: int, size: int) -> None:
        pass

    def cleanup_failed(self, error: BaseException) -> None:
        self.say(f"{type(error).__name__}: {error}")

    def lost(self, error: BaseException) -> None:
        self.say(f"lost: {error}")

    def released(self, join: Callable[[], None] | None = None) -> None:
        self.say("released")

    async def until(self, word: str) -> None:
        while word not in self.said:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), LIMIT)


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "for this flow"])
@pytest.mark.parametrize("make", [schedulers.threads, schedulers.processes], ids=["threads", "processes"])
async def test_an_end_that_is_awaited_raises_what_cannot_be_let_go_of(make: Any, kept: bool) -> None:
    workers, dropped = make(1), list[BaseException]()
    if kept:
        workers.open()
    with hooks.using(on_error_dropped=dropped.append), pytest.raises(work.OwnError, match="stuck"):
        await Flow.of(7).publish_on(workers, prefetch=1).flat_map_iterable(work.Stuck(work.OwnError)).take(2).to_list()
    workers.close()

    assert [] == dropped


@pytest.mark.parametrize("make", [schedulers.threads, schedulers.processes], ids=["threads", "processes"])
async def test_where_the_flow_fails_too_it_is_a_note_and_goes_to_the_hook(make: Any) -> None:
    dropped = list[BaseException]()
    flow = Flow.of(7).publish_on(make(1), prefetch=1).flat_map_iterable(work.Stuck(work.OwnError))
    with hooks.using(on_error_dropped=dropped.append), pytest.raises(ZeroDivisionError) as raised:
        await flow.publish_on(schedulers.current()).map(lambda n: n / 0).to_list()

    assert ["stuck"] == [str(error) for error in dropped]
    assert any("OwnError: stuck" in note for note in raised.value.__notes__)


def doing(*stages: Any) -> ChunkWork:
    return ChunkWork("the region", tuple(Placed(stage, Origin("here.py", 1)) for stage in stages))


@pytest.mark.parametrize("kind", [work.FalseError, work.OwnError, SystemExit], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "for this region"])
@pytest.mark.parametrize("make", [schedulers.threads, schedulers.processes], ids=["threads", "processes"])
async def test_what_cannot_be_let_go_of_is_told_before_the_region_is_released(make: Any, kept: bool, kind: Any) -> None:
    workers, heard = make(1), Heard()
    if kept:
        workers.open()
    region = workers.add_region(doing(FlatMapIterable(work.Stuck(kind))), 1, copy_context(), heard)
    region.submit(0, [7], 0)
    await heard.until("nothing")
    region.leave(heard.released)
    await heard.until("released")
    workers.close()

    assert ["nothing", f"{kind.__name__}: stuck", "released"] == heard.said


@pytest.mark.parametrize("make", [schedulers.threads, schedulers.processes], ids=["threads", "processes"])
async def test_a_cleanup_that_fails_behind_a_failure_is_told_behind_it(make: Any) -> None:
    heard = Heard()
    region = make(1).add_region(doing(work.StuckStage(), Map(work.Raising(ValueError))), 9, copy_context(), heard)
    region.submit(0, [2], 0)
    await heard.until("OSError: stuck")
    region.leave(heard.released)
    await heard.until("released")

    assert ["ValueError", "OSError: stuck", "released"] == [word for word in heard.said if word != "nothing"]


async def test_a_failure_behind_a_result_that_cannot_be_pickled_is_told() -> None:
    heard = Heard()
    region = schedulers.processes(1).add_region(doing(Map(work.lock_then_fail)), 9, copy_context(), heard)
    region.submit(0, [0, 1], 0)
    await heard.until("ValueError: behind")
    region.leave(heard.released)
    await heard.until("released")

    assert ["nothing", "TypeError", "ValueError: behind", "released"] == heard.said


async def test_a_failure_that_comes_when_nobody_waits_any_more_is_told(tmp_path: Any) -> None:
    with schedulers.processes(1) as pool:
        heard = Heard()
        region = pool.add_region(doing(Map(work.fail_when_let)), 9, copy_context(), heard)
        sign = tmp_path / "sign"
        os.mkfifo(sign)
        region.submit(0, [str(sign)], 0)
        let = await asyncio.to_thread(os.open, sign, os.O_WRONLY)  # when it is in the function
        region.leave(heard.released)
        os.close(let)
        await heard.until("released")

    assert ["ValueError", "released"] == heard.said
