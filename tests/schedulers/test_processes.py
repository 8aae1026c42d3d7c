"""processes(n): order, bounds, failures with everything that belongs to them, deaths, and nothing left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, RemoteError, SchedulerClosedError, WorkerDiedError, hooks, schedulers
from reactive_aio._remote.pickling import by_value_dumps
from reactive_aio.schedulers._team import Team
from tests.schedulers import work
from tests.subscribers import Recorder

LIMIT = 60.0
"""Seconds after which a wait in a test has failed."""
ROOT = Path(__file__).parents[2]

by_value = pytest.mark.skipif(by_value_dumps() is None, reason="needs cloudpickle")


def children() -> set[int]:
    """The processes that this one has started and that are there, dead or alive."""
    found = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())], stdout=subprocess.PIPE, check=False)
    lines = [line.split() for line in found.stdout.decode().splitlines()]
    return {int(pid) for pid, command, *_ in lines if command != "ps"}


def keepers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("processes(")}


@pytest.fixture(scope="module")
def pool() -> Iterator[Any]:
    with schedulers.processes(2) as pool:
        yield pool


@pytest.fixture
def started() -> Iterator[Any]:
    """The processes and threads that the test has started. At the end there are none left."""
    processes, threads = children(), keepers()

    def since() -> set[Any]:
        return (children() - processes) | (keepers() - threads)

    yield since
    assert not since()


async def until(condition: Any) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


# -- elements


async def test_results_come_in_order_from_other_processes(pool: Any) -> None:
    pids = set(await Flow.range(200).publish_on(pool, prefetch=32).map(work.busy).map(work.pid).to_list())

    assert await Flow.range(500).publish_on(pool).map(work.square).to_list() == [n * n for n in range(500)]
    assert os.getpid() not in pids
    assert len(pids) == 2


@pytest.mark.parametrize("prefetch", [1, 2, 7, 1024])
async def test_any_prefetch_will_do(pool: Any, prefetch: int) -> None:
    flow = Flow.range(100).publish_on(pool, prefetch=prefetch).map(work.square).filter(bool).map(str)

    assert await flow.to_list() == [str(n * n) for n in range(1, 100)]


async def test_a_function_that_makes_many_of_one_waits_for_demand(pool: Any) -> None:
    flow = Flow.of(10**12, 3).publish_on(pool, prefetch=4).flat_map_iterable(work.many)

    assert await flow.take(100).to_list() == list(range(100))


async def test_one_region_after_another(pool: Any) -> None:
    flow = Flow.range(50).publish_on(pool, prefetch=8).map(work.square).publish_on(pool, prefetch=4).map(str)

    assert await flow.skip(48).to_list() == ["2304", "2401"]


async def test_large_arrays_travel_in_memory_of_their_own(pool: Any) -> None:
    np = pytest.importorskip("numpy")
    arrays = [np.full(200_000, n, dtype=np.float64) for n in range(4)]

    seen = await Flow.from_iterable(arrays).publish_on(pool).map(work.addresses).to_list()
    made = await Flow.of(1_000, 1_000_000).publish_on(pool).map(work.zeros).map(work.same).to_list()

    assert seen == [(True, 200_000.0 * n) for n in range(4)]
    assert [array.nbytes for array in made] == [8_000, 8_000_000]
    made[1][0] = 1.0


async def test_only_what_is_large_leaves_the_pickle() -> None:
    np = pytest.importorskip("numpy")
    from reactive_aio._remote.pickling import LARGE, dumps

    buffers: Any = []
    data = dumps([np.zeros(10), np.zeros(100_000), np.zeros((400, 400)).T], buffers)

    assert [buffer.raw().nbytes for buffer in buffers] == [800_000, 1_280_000]
    assert len(data) < LARGE


# -- what is refused


def test_what_cannot_be_pickled_is_refused_by_operator_and_line() -> None:
    lock = threading.Lock()
    flow = Flow.range(3).publish_on(schedulers.processes(2)).map(str)

    with pytest.raises(TypeError) as raised:
        flow.filter(lambda n: lock.locked() or n)
    line = sys._getframe().f_lineno - 1

    assert str(raised.value).startswith(f"filter(<lambda>), chained at {__file__}:{line}, can't be sent to a worker")
    assert raised.value.__cause__ is not None


def test_an_event_loop_in_a_closure_is_refused() -> None:
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(TypeError, match="can't be sent to a worker process"):
            Flow.range(3).publish_on(schedulers.processes(2)).map(lambda n: loop.time())
    finally:
        loop.close()


def test_what_stays_on_the_loop_may_capture_anything() -> None:
    lock = threading.Lock()
    flow = Flow.range(3).publish_on(schedulers.processes(2)).map(str)

    flow.take(1).map(lambda n: (lock, n))
    flow.publish_on(schedulers.current()).map(lambda n: (lock, n))


def test_an_async_function_is_refused_as_everywhere() -> None:
    async def fetch(n: int) -> int:
        return n

    with pytest.raises(TypeError, match="async def"):
        Flow.range(3).publish_on(schedulers.processes(2)).map(fetch)


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (1.5, TypeError), (None, TypeError)])
def test_the_number_of_processes_is_a_count(n: Any, error: Any) -> None:
    with pytest.raises(error, match="processes"):
        schedulers.processes(n)


@by_value
async def test_lambdas_travel_by_value_where_cloudpickle_is_there(pool: Any) -> None:
    k = 3

    assert await Flow.range(3).publish_on(pool).map(lambda n: n * k).to_list() == [0, 3, 6]


# -- failures


async def test_a_failure_arrives_as_itself_behind_what_came_before_it(pool: Any) -> None:
    discarded: list[Any] = []
    got: list[Any] = []
    with (
        hooks.using(on_discard=discarded.append),
        pytest.raises(ZeroDivisionError, match="division by zero") as raised,
    ):
        await Flow.range(100).publish_on(pool, prefetch=16).map(work.divide).map(str).for_each(got.append)

    note, trace = raised.value.__notes__
    assert got == [str(1 / (5 - n)) for n in range(5)]
    assert note.startswith(f"in map(divide), chained at {__file__}:")
    assert "on element #5 of publish_on(processes(2), prefetch=16), chained at" in note
    assert trace.startswith("traceback in worker process ")
    assert "return 1 / (5 - n)" in trace
    assert len(discarded) >= 10


@pytest.mark.parametrize(("fn", "kind"), [(work.raise_odd, work.OddError), (work.raise_held, RemoteError)])
async def test_an_awkward_exception_arrives_or_is_stood_in_for(pool: Any, fn: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"code 0|HeldError: held 0"):
        await Flow.range(3).publish_on(pool).map(fn).to_list()


async def test_a_result_that_cannot_be_pickled_fails_behind_those_before_it(pool: Any) -> None:
    got: list[Any] = []
    with pytest.raises(TypeError, match="cannot pickle") as raised:
        await Flow.range(9).publish_on(pool).map(work.lock_at_3).for_each(got.append)

    assert got == [0, 1, 2]
    assert "an element that leaves a worker process has to be picklable" in raised.value.__notes__


async def test_an_element_that_cannot_be_pickled_fails_behind_those_before_it(pool: Any) -> None:
    got: list[Any] = []
    elements = [0, 1, 2, threading.Lock(), 4, 5, 6, 7, 8, 9]
    with pytest.raises(TypeError, match="cannot pickle") as raised:
        await Flow.from_iterable(elements).publish_on(pool).map(work.same).for_each(got.append)

    assert got == [0, 1, 2]
    assert "it is element #3" in raised.value.__notes__


async def test_a_failure_before_the_boundary_comes_behind_its_elements(pool: Any) -> None:
    got: list[Any] = []
    with pytest.raises(OSError, match="upstream"):
        await (
            Flow.range(20).concat(Flow.error(OSError("upstream"))).publish_on(pool).map(work.same).for_each(got.append)
        )

    assert got == list(range(20))


# -- context


async def test_the_named_variables_of_the_subscriber_are_current_in_the_functions(started: Any) -> None:
    work.trace.set("mine")
    work.other.set("mine too")
    async with schedulers.processes(1, context=[work.trace]) as pool:
        flow = Flow.range(2).publish_on(pool).map(work.seen)
        assert await flow.to_list() == [("mine", "none")] * 2
        work.trace.set("changed")
        assert await flow.to_list() == [("changed", "none")] * 2


def test_a_variable_that_a_worker_cannot_find_is_refused() -> None:
    from contextvars import ContextVar

    with pytest.raises(TypeError, match="'hidden' is no global of a module"):
        schedulers.processes(1, context=[ContextVar("hidden")])
    one: Any = work.trace
    with pytest.raises(TypeError, match=r"Write context=\[trace\]"):
        schedulers.processes(1, context=one)
    with pytest.raises(TypeError, match="takes context variables, not str"):
        schedulers.processes(1, context=["trace"])
    other: Any
    for other in (None, 3, "", "trace"):
        with pytest.raises(TypeError, match=rf"context={other!r}\): context takes a list of variables, not "):
            schedulers.processes(1, context=other)


# -- deaths


@pytest.mark.parametrize(
    ("fn", "how"), [(work.exit_at_3, "exited with code 7"), (work.kill_at_3, "was killed by SIGKILL")]
)
async def test_a_worker_that_dies_in_a_function_is_a_typed_error(fn: Any, how: str, started: Any) -> None:
    with pytest.raises(WorkerDiedError, match=rf"worker process \d+ of processes\(2\) {how}"):
        await asyncio.wait_for(Flow.range(99).publish_on(schedulers.processes(2)).map(fn).to_list(), LIMIT)

    assert not started()


async def test_a_worker_that_dies_idle_fails_the_flow_that_waits_and_is_replaced_for_the_next(started: Any) -> None:
    async with schedulers.processes(2) as pool:
        recorder = Recorder(1)
        Flow.range(1).concat(Flow.never()).publish_on(pool).map(work.pid).subscribe(recorder)
        await until(lambda: recorder.items)
        os.kill(recorder.items[0], signal.SIGKILL)
        await asyncio.wait_for(recorder.over.wait(), LIMIT)

        assert type(recorder.error) is WorkerDiedError
        assert await Flow.range(3).publish_on(pool).map(work.square).to_list() == [0, 1, 4]
    assert not started()


async def test_a_worker_that_dies_while_nobody_uses_it_is_replaced(started: Any) -> None:
    async with schedulers.processes(1) as pool:
        (pid,) = await Flow.of(1).publish_on(pool).map(work.pid).to_list()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: pool._team is None)  # the death is known

        assert await Flow.of(1).publish_on(pool).map(work.pid).to_list() != [pid]
    assert not started()


async def test_a_worker_that_dies_at_its_start_is_a_typed_error(started: Any) -> None:
    with pytest.raises(WorkerDiedError, match="exited with code 9"):
        await asyncio.wait_for(Flow.of(1).publish_on(schedulers.processes(1)).map(work.DiesHere()).to_list(), LIMIT)


async def test_a_worker_that_is_killed_before_it_has_begun_is_a_typed_error(started: Any) -> None:
    recorder = Recorder(9)
    Flow.range(9).publish_on(schedulers.processes(1)).map(work.NeverBegins()).subscribe(recorder)
    await until(lambda: len(started()) == 2)  # and the thread that looks after it
    (pid,) = (each for each in started() if isinstance(each, int))
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert type(recorder.error) is WorkerDiedError
    await until(lambda: not started())


# -- life


@pytest.mark.parametrize("how", ["end", "failure", "leave"])
async def test_when_the_terminal_returns_the_processes_are_gone(how: str, started: Any) -> None:
    flow = Flow.range(100).publish_on(schedulers.processes(2), prefetch=8)
    if how == "end":
        assert await flow.map(work.square).count() == 100
    elif how == "failure":
        with pytest.raises(ZeroDivisionError):
            await flow.map(work.divide).count()
    else:
        assert await flow.map(work.square).first() == 0

    assert not started()


async def test_a_cancel_ends_a_worker_in_the_middle_of_a_function(tmp_path: Path, started: Any) -> None:
    sign = tmp_path / "sign"
    task = asyncio.ensure_future(Flow.of(str(sign)).publish_on(schedulers.processes(1)).map(work.forever).to_list())
    await until(lambda: sign.exists() and sign.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, LIMIT)

    assert not started()


async def test_an_open_pool_serves_many_flows_with_the_same_processes(started: Any) -> None:
    async with schedulers.processes(2) as pool:
        flow = Flow.range(40).publish_on(pool, prefetch=4).map(work.pid)
        pids = set().union(*await asyncio.gather(*(flow.to_list() for _ in range(8))))
        assert len(pids) <= 2
        assert pids <= started()

    assert not started()


async def test_flows_on_two_event_loops_share_a_pool(pool: Any) -> None:
    flow = Flow.range(50).publish_on(pool, prefetch=4).map(work.square)

    here, there = await asyncio.gather(flow.to_list(), asyncio.to_thread(flow.run_sync))

    assert here == there == [n * n for n in range(50)]


async def test_flows_on_a_pool_that_is_closed_fail(started: Any) -> None:
    pool = schedulers.processes(1)
    async with pool:
        recorder = Recorder(1)
        Flow.range(1).concat(Flow.never()).publish_on(pool).map(work.same).subscribe(recorder)
        await until(lambda: recorder.items)
    await asyncio.wait_for(recorder.over.wait(), LIMIT)

    assert type(recorder.error) is SchedulerClosedError
    with pytest.raises(SchedulerClosedError):
        await Flow.of(1).publish_on(pool).map(work.same).to_list()


def test_each_call_that_ends_the_processes_is_told_of_it_once() -> None:
    told: list[str] = []
    team = Team("processes(0)", 0, lambda team, error: None)

    def once_more() -> None:
        told.append("first")
        team.stop(lambda: told.append("second"))

    team.stop(once_more)
    team.join()

    assert ["first", "second"] == told


async def test_flows_that_are_left_at_any_moment_leave_a_pool_in_good_order(pool: Any) -> None:
    for turns in range(0, 200, 7):
        task = asyncio.ensure_future(Flow.range(10**9).publish_on(pool, prefetch=16).map(work.busy).to_list())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert await Flow.range(3).publish_on(pool).map(work.square).to_list() == [0, 1, 4]


# -- programs


def run(*command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], input=text, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )


def test_a_flow_that_runs_while_the_interpreter_exits_hangs_up_its_channels(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import atexit\n"
        "from reactive_aio import Flow, schedulers\n"
        "def late():\n"
        "    print(Flow.range(3).publish_on(schedulers.processes(1)).map(abs).run_sync())\n"
        'if __name__ == "__main__":\n'
        "    atexit.register(late)\n"
        "    Flow.range(3).map(abs).run_sync()  # makes a finalizer: those shut down before `late` is called\n"
    )

    done = run("-W", "always::ResourceWarning", str(path))

    assert ("[0, 1, 2]\n", "") == (done.stdout, done.stderr)


PROGRAM = """
import sys
from reactive_aio import Flow, schedulers

class Point:
    def __init__(self, x): self.x = x

def moved(point):
    return Point(point.x + 1)

def main():
    flow = Flow.of(1, 2).map(Point).publish_on(schedulers.processes(2)).map(moved)
    print([type(p) is Point and p.x for p in flow.run_sync()])

"""
GUARD = 'if __name__ == "__main__":\n    main()\n'


def test_a_program_whose_main_part_is_guarded_runs(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + GUARD)

    assert run("-O", str(path)).stdout == "[2, 3]\n"


@pytest.mark.costly
def test_a_program_whose_main_part_is_not_guarded_gets_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "main()\n")

    done = run(str(path))

    assert done.returncode == 1
    assert 'Put the code of the program under `if __name__ == "__main__":`' in done.stderr


@pytest.mark.costly
def test_workers_have_the_arguments_of_the_program_however_long(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import sys\nfrom reactive_aio import Flow, schedulers\n"
        "def told(_):\n    return sys.argv, sys.stdin.read()\n"
        'if __name__ == "__main__":\n'
        "    sys.argv += ['x' * 1000] * 200 + ['\\udcff']\n"
        "    print([(sys.argv, '')] == Flow.of(1).publish_on(schedulers.processes(1)).map(told).run_sync())\n"
    )
    done = run(str(path))

    assert "True\n" == done.stdout, done.stderr


@pytest.mark.costly
@by_value
@pytest.mark.parametrize("way", ["-c", "stdin"])
def test_a_program_without_a_file_runs(way: str) -> None:
    text = PROGRAM + "main()\n"

    done = run("-c", text) if way == "-c" else run("-", text=text)

    assert done.stdout == "[2, 3]\n", done.stderr


def test_without_cloudpickle_an_interactive_function_is_refused_in_words() -> None:
    hidden = "import sys; sys.modules['cloudpickle'] = sys.modules['pyspark'] = None\n"
    done = run("-c", hidden + PROGRAM + "try: main()\nexcept TypeError as error: print(error)\n")

    assert "defined in an interactive session" in done.stdout, done.stderr
    assert "install cloudpickle" in done.stdout


@pytest.mark.costly
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_program_quietly(tmp_path: Path) -> None:
    path, sign = tmp_path / "program.py", tmp_path / "sign"
    path.write_text(
        "from reactive_aio import Flow, schedulers\nfrom tests.schedulers import work\n"
        f"Flow.of({str(sign)!r}).publish_on(schedulers.processes(1)).map(work.forever).run_sync()\n"
    )
    with subprocess.Popen(
        [sys.executable, str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as program:
        try:
            await_sign(sign)
            worker = int(sign.read_text())
            os.killpg(program.pid, signal.SIGINT)
            _, errors = program.communicate(timeout=LIMIT)
        finally:
            program.kill()

    assert "worker" not in errors.replace(str(ROOT), "")
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not Path(f"/proc/{worker}").exists()


@pytest.mark.costly
def test_a_program_that_is_killed_leaves_no_workers(tmp_path: Path) -> None:
    path, sign = tmp_path / "program.py", tmp_path / "sign"
    path.write_text(
        "import os, signal, pathlib\nfrom reactive_aio import Flow, schedulers\nfrom tests.schedulers import work\n"
        "def killed(pid):\n"
        f"    pathlib.Path({str(sign)!r}).write_text(str(pid))\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        'if __name__ == "__main__":\n'
        "    Flow.of(1).publish_on(schedulers.processes(1)).map(work.pid).take(1).run_sync(lambda flow: flow.for_each(killed))\n"
    )
    subprocess.run([sys.executable, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, timeout=60)
    await_end(int(sign.read_text()))


@pytest.mark.costly
def test_a_program_that_is_killed_leaves_no_worker_in_a_function_that_never_returns(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    code = (
        "from reactive_aio import Flow, schedulers\nfrom tests.schedulers import work\n"
        f"Flow.of({str(sign)!r}).publish_on(schedulers.processes(1)).map(work.forever).run_sync()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}) as program:
        try:
            await_sign(sign)
        finally:
            program.kill()

    await_end(int(sign.read_text()))


def await_sign(sign: Path) -> None:
    deadline = time.monotonic() + LIMIT
    while not (sign.exists() and sign.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def await_end(process: int) -> None:
    deadline = time.monotonic() + LIMIT
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Meeting(deque[Callable[[], None]]):
    """Orders that another thread empties just before the last one is taken."""

    def popleft(self) -> Callable[[], None]:
        self.clear()
        return super().popleft()


def test_two_threads_that_carry_out_the_last_order_do_not_stumble_over_each_other() -> None:
    ended = threading.Event()
    team = Team("none", 0, lambda *_: None)
    team._orders = Meeting([lambda: None])
    team._obey()

    team._orders = deque()
    team.stop(ended.set)
    assert ended.wait(LIMIT)
    team.join()
