"""The virtual loop: time passes at once, and never ahead of a thread."""

import asyncio
import concurrent.futures
import functools
import socket
import threading
import time
from collections.abc import Awaitable, Callable

import anyio.to_thread
import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.testing import DeadlockError, VirtualTimeLoop, run_virtual, settle


def loop() -> VirtualTimeLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, VirtualTimeLoop)
    return running


def test_a_day_of_timers_is_as_many_jumps_as_timers_and_no_real_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []

    async def day() -> None:
        real = loop()._real.select
        monkeypatch.setattr(loop()._real, "select", lambda timeout=None: (waits.append(timeout), real(timeout))[1])
        for _ in range(24 * 60):
            await asyncio.sleep(60)
        assert 86400 == loop().time()
        assert 24 * 60 == loop().jumps

    run_virtual(day())

    assert {0} == set(waits)


def test_timers_fire_in_the_order_of_their_times() -> None:
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, loop().time()))

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, seconds in [("late", 3600), ("early", 0.1), ("middle", 2)]:
                tasks.create_task(sleeper(name, seconds))

    run_virtual(main())

    assert [("early", 0.1), ("middle", 2), ("late", 3600)] == seen


def test_what_is_ready_runs_before_time_passes() -> None:
    async def main() -> float:
        timer = asyncio.create_task(asyncio.sleep(1))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not timer.done()
        return loop().time()

    assert 0 == run_virtual(main())


async def endlessly() -> None:
    while True:
        await asyncio.sleep(0)


def test_a_loop_that_is_busy_without_end_does_not_stop_the_clock_for_ever() -> None:
    async def main() -> float:
        busy = asyncio.create_task(endlessly())
        await asyncio.sleep(0.03)
        busy.cancel()
        return loop().time()

    start = time.monotonic()
    with asyncio.Runner(loop_factory=functools.partial(VirtualTimeLoop, patience=0.02)) as runner:
        assert 0.03 == runner.run(main())
    assert 0.03 <= time.monotonic() - start


def test_a_cancelled_timer_is_not_jumped_to() -> None:
    async def main() -> float:
        loop().call_later(5, print).cancel()
        await asyncio.sleep(7)
        return loop().jumps

    assert 1 == run_virtual(main())


def test_timeouts_of_users_code_take_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return loop().time()

    assert 3600 == run_virtual(main())


# -- deadlock


def test_waiting_for_what_can_not_come_is_an_error_that_names_the_tasks() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"the loop: Task-\d+ waits in [\w.<>]*main at [^ ;]*test_virtual\.py:\d+$"):
        run_virtual(main())


def test_a_deadlock_names_the_innermost_line_of_the_program() -> None:
    async def helper() -> None:
        await asyncio.gather(Flow[int].never().first())

    async def main() -> None:
        await helper()

    with pytest.raises(DeadlockError, match=r"Task-\d+ waits in [\w.<>]*helper at [^ ;]*test_virtual\.py:\d+"):
        run_virtual(main())


@pytest.mark.parametrize("kept", [True, False])
def test_a_thread_of_a_scheduler_that_waits_for_nothing_does_not_hide_a_deadlock(kept: bool) -> None:
    async def main() -> None:
        thread = schedulers.thread("idle")
        if kept:
            async with thread:
                await Flow.never().drain()
        await Flow.never().subscribe_on(thread).drain()

    with pytest.raises(DeadlockError, match="nothing is scheduled"):
        run_virtual(main())


def test_the_loop_can_be_used_after_a_deadlock() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        with pytest.raises(DeadlockError):
            runner.run(asyncio.Event().wait())
        assert "after" == runner.run(asyncio.sleep(1, "after"))


def test_a_loop_on_another_thread_waits_for_those_who_call_it() -> None:
    virtual = VirtualTimeLoop()
    thread = threading.Thread(target=virtual.run_forever)
    thread.start()

    answer = asyncio.run_coroutine_threadsafe(asyncio.sleep(3600, "an hour later"), virtual).result(60)
    virtual.call_soon_threadsafe(virtual.stop)
    thread.join()
    virtual.close()

    assert "an hour later" == answer


# -- threads


async def job_of_asyncio(job: Callable[[], None]) -> None:
    await asyncio.to_thread(job)


async def job_of_anyio(job: Callable[[], None]) -> None:
    await anyio.to_thread.run_sync(job)


async def job_of_a_pool(job: Callable[[], None]) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        await asyncio.wrap_future(pool.submit(job))


async def job_of_a_thread(job: Callable[[], None]) -> None:
    here, done = loop(), asyncio.Event()

    def run() -> None:
        job()
        here.call_soon_threadsafe(done.set)

    threading.Thread(target=run).start()
    await done.wait()


async def job_of_a_region(job: Callable[[], None]) -> None:
    def step(_: int) -> None:
        job()

    await Flow.range(1).subscribe_on(schedulers.thread("region")).map(step).count()


async def job_of_one_who_holds(job: Callable[[], None]) -> None:
    here, done = loop(), asyncio.Event()
    release = here.hold()

    def run() -> None:
        job()
        here.call_soon_threadsafe(done.set)
        release()

    BEFORE.submit(run)
    await done.wait()


# A pool that no loop of a test has started.
BEFORE = concurrent.futures.ThreadPoolExecutor(1)
BEFORE.submit(int).result()

JOBS = [job_of_asyncio, job_of_anyio, job_of_a_pool, job_of_a_thread, job_of_a_region, job_of_one_who_holds]


@pytest.mark.parametrize("run_job", JOBS)
def test_time_does_not_pass_a_thread_at_work(run_job: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    """The job goes on until the loop has had nothing to run: one that jumps does so then."""
    resting = threading.Event()

    def watching(wait: Callable[[float | None], object]) -> Callable[[float | None], object]:
        def watched(timeout: float | None) -> object:
            if timeout is None or timeout > 0:
                resting.set()
            return wait(timeout)

        return watched

    def job() -> None:
        resting.wait(5)
        time.sleep(0.01)  # not to be waited for, but to be jumped over

    async def main() -> float:
        selector = loop()._selector
        selector.wait = watching(selector.wait)
        async with asyncio.timeout(1000):
            await run_job(job)
        return loop().time()

    assert 0 == run_virtual(main())


def test_time_passes_again_when_the_threads_of_the_pool_are_idle() -> None:
    async def main() -> int:
        await asyncio.to_thread(int)
        await anyio.to_thread.run_sync(int)
        await asyncio.sleep(1_000_000)
        return loop().jumps

    assert 1 == run_virtual(main())


def test_a_job_that_outlives_its_future_is_still_at_work() -> None:
    go = threading.Event()

    async def main() -> None:
        job = asyncio.create_task(asyncio.to_thread(go.wait))
        await settle_but_for_threads()
        job.cancel()
        await asyncio.wait([job])
        with pytest.raises(TimeoutError, match="hold"):
            await settle(within=0.05)
        go.set()
        await settle()
        assert 0 == loop().time()

    async def settle_but_for_threads() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    run_virtual(main())


def test_beside_a_thread_at_work_a_timer_falls_due_as_it_would_in_reality() -> None:
    go = threading.Event()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.to_thread(go.wait)
        assert 0.05 == loop().time()
        go.set()

    start = time.monotonic()
    run_virtual(main())

    assert 0.05 <= time.monotonic() - start


def test_time_does_not_pass_an_open_socket_unless_told_so() -> None:
    async def main() -> int:
        here, there = socket.socketpair()
        with here, there:
            loop().add_reader(here, int)
            await asyncio.sleep(0.02)
            loop().remove_reader(here)
        return loop().jumps

    assert 0 == run_virtual(main())
    with asyncio.Runner(loop_factory=functools.partial(VirtualTimeLoop, instant_io=True)) as runner:
        assert 1 == runner.run(main())


def test_servers_and_clients_work_on_it() -> None:
    async def main() -> bytes:
        served = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readline()).upper())
            writer.close()
            await writer.wait_closed()
            served.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            await served.wait()
        return answer

    assert b"HELLO\n" == run_virtual(main())


def test_the_clock_can_be_the_real_one() -> None:
    async def main() -> float:
        start = time.monotonic()
        await asyncio.sleep(0.02)
        return time.monotonic() - start

    with asyncio.Runner(loop_factory=functools.partial(VirtualTimeLoop, virtual=False)) as runner:
        assert 0.015 <= runner.run(main())


@pytest.mark.parametrize("seconds", [1e7, 1e9, 1e12])
def test_timers_fall_due_however_far_the_clock_has_come(seconds: float) -> None:
    async def main() -> float:
        await asyncio.sleep(seconds)
        await asyncio.sleep(0.5)
        return asyncio.get_running_loop().time()

    assert seconds + 0.5 == run_virtual(main())
