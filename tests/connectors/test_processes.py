"""Processes as flows: what they write under demand, what they are fed, how they end, and that they do end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.io import ProcessError, from_process, split_lines
from tests.subscribers import idle


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


ENDLESS = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
DEAF = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def ended(pid: int) -> bool:
    """Return whether there is no such process, not even as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_the_output_of_a_program_is_what_it_has_written() -> None:
    lines = split_lines(from_process(python("for n in range(30000): print(n)"), size=1000))

    assert [b"%d" % n for n in range(30_000)] == await lines.to_list()


async def test_a_program_is_fed_while_it_is_read() -> None:
    numbers = Flow.range(20_000).map(lambda n: b"%d\n" % n)
    doubled = split_lines(
        from_process(python("import sys\nfor line in sys.stdin: print(2 * int(line))"), stdin=numbers)
    )

    assert [b"%d" % (2 * n) for n in range(20_000)] == await doubled.to_list()


async def test_a_program_that_fails_fails_the_flow_behind_its_output() -> None:
    taken: list[bytes] = []
    program = "import sys; print('out'); sys.stderr.write('x' * 9000 + 'what was wrong'); sys.exit(3)"

    with pytest.raises(ProcessError, match=r"ended with 3: x+what was wrong") as failed:
        await from_process(python(program), max_stderr=20).for_each(taken.append)

    assert b"out\n" == b"".join(taken)
    assert 3 == failed.value.returncode
    assert b"xxxxxxwhat was wrong" == failed.value.stderr


async def test_a_program_that_is_killed_says_by_which_signal() -> None:
    with pytest.raises(ProcessError) as failed:
        await from_process(python("import os; os.kill(os.getpid(), 9)")).to_list()
    assert -signal.SIGKILL == failed.value.returncode


async def test_a_program_that_there_is_not_fails_the_flow(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await from_process([tmp_path / "nothing"]).to_list()


async def test_a_reader_that_stops_stops_the_program() -> None:
    """The system tells how much the program has written, since its output is not read."""
    program = "import os\nwhile True: os.write(1, b'%d '.ljust(65_536) % os.getpid())"
    async with from_process(python(program), size=65_536).open() as chunks:
        pid = int((await anext(chunks)).split()[0])
        await anext(chunks)
        async with asyncio.timeout(60):
            while Path(f"/proc/{pid}/stat").read_text().split()[2] != "S":  # it sleeps in its write
                await asyncio.sleep(0.001)
        written = int(Path(f"/proc/{pid}/io").read_text().split("wchar: ")[1].split()[0])
        taken, one_write, read_ahead = 2 * 65_536, 65_536, 2 * 65_536 + 262_144
        between = 2 * 212_992  # a pair of sockets on uvloop, a pipe on asyncio, which is smaller
        assert written <= taken + read_ahead + between + one_write + 1000
    assert ended(pid)


@pytest.mark.parametrize("leave", ["take", "cancel"])
async def test_a_program_that_is_left_is_terminated(leave: str) -> None:
    program = "import os, sys\nprint(os.getpid(), flush=True)\n" + ENDLESS
    lines = split_lines(from_process(python(program)))
    if leave == "take":
        (pid,) = await lines.take(1).to_list()
    else:
        got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def take(chunk: bytes) -> None:
            if not got.done():
                got.set_result(chunk)

        task = asyncio.create_task(from_process(python(program)).for_each(take))
        pid = (await got).split(b"\n")[0]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended(int(pid))


def leave(task: asyncio.Task[Any]) -> None:
    task.cancel()


def leave_all(_: asyncio.Task[Any]) -> None:
    """Cancel every other task, as `asyncio.run` does when it ends."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("cancel", [leave, leave_all])
async def test_a_program_that_is_left_while_it_begins_closes_no_file_of_others(
    cancel: Callable[[asyncio.Task[Any]], None], turns: int
) -> None:
    others: list[int] = []
    reading = asyncio.create_task(from_process(["sleep", "600"]).drain())
    for _ in range(turns):
        await asyncio.sleep(0)
    cancel(reading)
    for _ in range(12):
        others += [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await reading
    del reading
    gc.collect()
    for other in others:
        os.close(other)  # which fails if it is closed


@pytest.mark.parametrize("cancel", [leave, leave_all])
async def test_a_program_that_is_left_while_it_starts_has_ended(
    cancel: Callable[[asyncio.Task[Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    start, pids, begun = loop.subprocess_exec, list[int](), asyncio.Event()

    async def slowly(*args: Any, **options: Any) -> Any:
        started = await start(*args, **options)
        pids.append(started[0].get_pid())
        begun.set()
        await idle()
        return started

    monkeypatch.setattr(loop, "subprocess_exec", slowly)
    reading = asyncio.create_task(from_process(["sleep", "10"]).drain())
    await begun.wait()
    cancel(reading)
    with pytest.raises(asyncio.CancelledError):
        await reading

    over = ended(pids[0])
    if not over:
        os.kill(pids[0], signal.SIGKILL)
    assert over


async def test_a_program_that_does_not_hear_is_killed_behind_the_grace() -> None:
    program = DEAF.replace('"ready"', "__import__('os').getpid()")
    async with asyncio.timeout(60):
        (pid,) = await split_lines(from_process(python(program), grace=0.05)).take(1).to_list()
    assert ended(int(pid))


async def test_a_process_that_a_program_leaves_behind_is_not_waited_for() -> None:
    if not isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop):
        pytest.skip("a program of uvloop gives its children a copy of the pipe of its output")
    left: list[bytes] = []
    program = from_process(["sh", "-c", "sleep 60 >/dev/null & echo $!; exec >&-; sleep 0.1; exit 3"], grace=0.1)
    try:
        async with asyncio.timeout(20.0):
            with pytest.raises(ProcessError, match="ended with 3"):
                await program.for_each(left.append)
    finally:
        os.kill(int(b"".join(left)), signal.SIGKILL)


async def test_a_failure_of_what_feeds_it_ends_the_program_and_is_raised() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"1\n"
        raise OSError("no more")

    program = (
        "import sys, os\nprint(os.getpid(), flush=True)\nfor line in sys.stdin: pass\nimport time; time.sleep(600)"
    )
    taken: list[bytes] = []
    with pytest.raises(OSError, match="no more"):
        await from_process(python(program), stdin=Flow.from_async_iterable(failing)).for_each(taken.append)
    assert all(ended(int(pid)) for pid in b"".join(taken).split())


async def test_a_program_that_does_not_read_all_is_no_failure() -> None:
    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 65_536
        finally:
            closed.append(True)

    closed: list[bool] = []
    said = split_lines(from_process(python("print('done')"), stdin=Flow.from_async_iterable(endless)))
    assert [b"done"] == await said.to_list()
    assert [True] == closed


async def test_a_pipe_that_the_loop_has_closed_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As uvloop does when a program has ended that is fed later, now and then."""

    def write(writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.close()
        raise RuntimeError("unable to perform operation on <WriteUnixTransport closed=True>; the handler is closed")

    monkeypatch.setattr(asyncio.StreamWriter, "write", write)
    assert [] == await from_process(["cat"], stdin=Flow.of(b"x")).to_list()


async def test_many_processes_leave_no_pipe_and_no_zombie() -> None:
    await from_process(python("")).drain()  # the event loop opens what it needs for all of them
    before = len(os.listdir("/dev/fd"))
    flows = Flow.range(8).flat_map(lambda n: split_lines(from_process(python(f"print({n})"))), max_concurrency=4)

    assert [b"%d" % n for n in range(8)] == sorted(await flows.to_list())
    assert before == len(os.listdir("/dev/fd"))


async def test_an_argument_that_is_no_command_is_refused() -> None:
    with pytest.raises(TypeError, match="as a list"):
        from_process("ls -l")


@pytest.mark.parametrize(
    ("command", "env"), [(["echo", "a\0b"], None), (["echo"], {"A": "a\0b"}), (["echo"], {"A\0": "a"})]
)
async def test_a_nul_which_would_cut_off_a_text_is_refused(command: list[str], env: dict[str, str] | None) -> None:
    with pytest.raises(ValueError, match="NUL"):
        from_process(command, env=env)


async def test_an_argument_that_is_no_text_is_refused_when_the_flow_is_built() -> None:
    wrong: Any = ["sleep", 5]
    with pytest.raises(TypeError, match="not int"):
        from_process(wrong)
