"""Asking a loop whether it is at rest: on every kind of loop, with regions on threads."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._clocks.bystanders import Bystanders
from reactive_aio._clocks.windows import Window, settle_here
from reactive_aio.schedulers.thread import ThreadScheduler
from reactive_aio.testing import AdversarialLoop, VirtualTimeLoop, settle
from tests.subscribers import Recorder

try:
    import uvloop
except ImportError:
    uvloop = None

LOOPS: dict[str, Any] = {
    "virtual": VirtualTimeLoop,
    "real clock": lambda: VirtualTimeLoop(virtual=False),
    "adversarial": lambda: AdversarialLoop(1),
    "asyncio": asyncio.new_event_loop,
}
if uvloop is not None:
    LOOPS["uvloop"] = uvloop.new_event_loop


@pytest.fixture(params=list(LOOPS))
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
        yield runner


async def relay(event: asyncio.Event, steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)
    event.set()


def test_it_waits_for_tasks_however_many_steps_they_need(runner: asyncio.Runner) -> None:
    async def main() -> bool:
        done = asyncio.Event()
        task = asyncio.create_task(relay(done, 1000))
        await settle(within=60)
        assert task.done()
        return done.is_set()

    assert runner.run(main())


def test_other_threads_are_looked_at_when_nothing_is_left_to_run_here() -> None:
    async def main() -> int:
        done, looks = asyncio.Event(), 0

        def busy() -> None:
            nonlocal looks
            looks += 1
            assert done.is_set()

        task = asyncio.create_task(relay(done, 1000))
        await settle_here(busy, 60)
        assert task.done()
        return looks

    assert 1 == asyncio.run(main())


def test_it_waits_for_plain_callbacks_and_what_they_schedule(runner: asyncio.Runner) -> None:
    async def main() -> int:
        loop, left = asyncio.get_running_loop(), [100]

        def again() -> None:
            left[0] -= 1
            if left[0]:
                loop.call_soon(again)

        loop.call_soon(again)
        await settle()
        return left[0]

    assert 0 == runner.run(main())


def test_it_leaves_timers_alone(runner: asyncio.Runner) -> None:
    async def main() -> bool:
        timer = asyncio.create_task(asyncio.sleep(3600))
        await settle()
        timer.cancel()
        return timer.done()

    assert not runner.run(main())


def test_of_two_callers_each_finds_the_loop_at_rest(runner: asyncio.Runner) -> None:
    at_work: list[str] = []

    async def caller(name: str) -> None:
        await settle()
        assert not at_work
        at_work.append(name)
        await relay(asyncio.Event(), 10)
        at_work.remove(name)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(caller("a"))
            tasks.create_task(caller("b"))

    runner.run(main())


def test_a_caller_that_gives_up_leaves_the_others_their_turns(runner: asyncio.Runner) -> None:
    settled: list[str] = []

    async def caller(name: str) -> None:
        await settle()
        settled.append(name)

    async def main() -> None:
        first, second, third = (asyncio.create_task(caller(name)) for name in ("first", "second", "third"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, third)

    runner.run(main())

    assert ["first", "third"] == settled


def test_a_caller_may_be_cancelled_at_any_turn(runner: asyncio.Runner) -> None:
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        for turns in range(8):
            asking = asyncio.create_task(settle())
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        await settle()

    runner.run(main())

    assert [] == reported


def test_a_loop_that_never_rests_is_an_error(runner: asyncio.Runner) -> None:
    async def main() -> None:
        busy = asyncio.create_task(relay(asyncio.Event(), 10**9))
        try:
            with pytest.raises(TimeoutError):
                await settle(within=0.05)
        finally:
            busy.cancel()

    runner.run(main())


def test_each_of_two_callers_is_told_in_its_own_time_of_a_loop_that_never_rests(runner: asyncio.Runner) -> None:
    async def main() -> None:
        busy = asyncio.create_task(relay(asyncio.Event(), 10**9))
        try:
            outcomes = await asyncio.gather(settle(within=0.02), settle(within=0.01), return_exceptions=True)
        finally:
            busy.cancel()
        assert [TimeoutError, TimeoutError] == [type(outcome) for outcome in outcomes]

    runner.run(main())


@pytest.mark.parametrize("regions", ["asyncio", "uvloop"])
def test_it_waits_for_regions_on_threads_and_for_no_more_than_their_work(
    runner: asyncio.Runner, regions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if regions not in LOOPS:
        pytest.skip("uvloop is not installed")
    monkeypatch.setattr(ThreadScheduler, "_new_loop", lambda _, of_a_test: LOOPS[regions]())

    async def main() -> None:
        subscriber = Recorder()
        one, other = schedulers.thread("one"), schedulers.thread("other")
        flow = Flow.range(20_000).subscribe_on(one).filter(lambda n: n % 3 == 0).publish_on(other, prefetch=16)
        flow.map(str).publish_on(schedulers.current(), prefetch=8).subscribe(subscriber)
        for wanted in range(0, 300, 50):
            await settle()
            assert wanted == len(subscriber.items)
            subscriber.request(50)
        await settle()
        subscriber.cancel()
        await settle()

    runner.run(main())

    assert not {"one", "other"} & {thread.name for thread in threading.enumerate()}


def test_time_passes_an_idle_region_on_a_loop_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadScheduler, "_new_loop", lambda _, of_a_test: asyncio.new_event_loop())

    async def main() -> None:
        subscriber = Recorder(request=1)
        Flow.range(9).publish_on(schedulers.thread("idle")).publish_on(schedulers.current()).subscribe(subscriber)
        await asyncio.sleep(86400)
        assert [0] == subscriber.items
        subscriber.cancel()
        await settle()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


def test_time_does_not_pass_a_region_that_waits_for_a_timer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadScheduler, "_new_loop", lambda _, of_a_test: asyncio.new_event_loop())

    async def slow(emit: Any) -> None:
        await asyncio.sleep(0.02)
        await emit("at last")

    async def main() -> list[str]:
        async with asyncio.timeout(1000):
            return await Flow.create(slow).subscribe_on(schedulers.thread("slow")).to_list()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert ["at last"] == runner.run(main())


def test_a_thread_that_is_started_for_a_region_is_at_work_before_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    started, begun, run = threading.Event(), threading.Event(), threading.Thread.run

    def run_late(thread: threading.Thread) -> None:
        if thread.name == "late":
            started.set()
            begun.wait()
        run(thread)

    monkeypatch.setattr(threading.Thread, "run", run_late)
    flow = Flow.range(3).subscribe_on(schedulers.thread("late"))
    other = threading.Thread(target=flow.run_sync)
    other.start()
    started.wait()

    found = Bystanders().busy(settling=True)
    begun.set()
    other.join()

    assert found == "thread 'late' is at work"


def test_a_thread_that_starts_while_others_are_asked_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    bystanders = Bystanders()
    ask, go_on = Bystanders._ask, threading.Event()
    started = threading.Thread(target=go_on.wait)

    def asked(self: Bystanders, *arguments: Any, **named: Any) -> str | None:
        reason = ask(self, *arguments, **named)
        started.start()
        return reason

    with asyncio.Runner() as runner, schedulers.thread("asked") as thread:
        assert [0] == runner.run(Flow.range(1).publish_on(thread).to_list())
        monkeypatch.setattr(Bystanders, "_ask", asked)
        try:
            assert "a thread has just started" == bystanders.busy(settling=True)
        finally:
            go_on.set()
            started.join()


def test_a_loop_that_is_about_to_stop_is_at_work() -> None:
    loop = asyncio.new_event_loop()
    windows: list[Window] = []
    loop.call_soon(loop.stop)
    loop.call_soon(Window(loop, windows.append).open)

    loop.run_forever()
    loop.close()

    assert [True] == [window.heard for window in windows]


def test_a_loop_that_stops_within_a_look_at_it_leaves_no_profile_function_on_its_thread(runner: asyncio.Runner) -> None:
    before = sys.getprofile()
    loop = runner.get_loop()

    async def main() -> None:
        loop.call_soon(loop.stop)
        await settle()

    asking = loop.create_task(main())
    loop.run_forever()

    assert before == sys.getprofile()

    loop.run_until_complete(asking)
    assert before == sys.getprofile()


async def test_a_timer_that_has_run_out_is_waited_for() -> None:
    loop, seen = asyncio.get_running_loop(), list[int]()
    loop.call_at(loop.time(), seen.append, 1)

    await settle()

    assert [1] == seen
