"""Processes as flows: their output, and their input."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike, fspath
from typing import Any, cast

from attrs import define, field, frozen

from .._connector import polled
from .._core.guard import FAILURES, as_failure
from .._core.settling import settled
from .._core.tasks import begin_apart, begin_task
from .._flow.flow import Flow
from ..operators._fluent import check_count, check_flow, check_seconds
from ._sockets import ended
from ._streams import send_rows


class ProcessError(RuntimeError):
    """A process has ended with a ``returncode`` that is not 0. ``stderr`` is the end of its standard error.

    A negative ``returncode`` is the number of the signal that has ended it.
    """

    def __init__(self, program: str, returncode: int, stderr: bytes) -> None:
        super().__init__(program, returncode, stderr)
        self.program = program
        self.returncode = returncode
        self.stderr = stderr

    def __str__(self) -> str:
        said = self.stderr.decode(errors="replace").strip()
        return f"{self.program} ended with {self.returncode}" + (f": {said}" if said else "")


def from_process(
    command: Sequence[str | PathLike[str]],
    *,
    stdin: Flow[bytes] | None = None,
    cwd: str | PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    size: int = 65_536,
    max_stderr: int = 8_192,
    grace: float = 5.0,
) -> Flow[bytes]:
    r"""Run a program, and emit its standard output in chunks of at most ``size`` bytes.

    No shell is involved.

    Each subscription starts a process. It reads the chunks of ``stdin``, or nothing. `split_lines` turns the output
    into lines.
    Demand: a chunk is read when it is requested. Without demand a process can write only as much as the pipe and the
    event loop hold. The loop reads ahead twice ``size`` bytes, and up to 256 KiB more on uvloop. The process is fed one
    chunk of ``stdin`` at a time, when the pipe has room. Chunks that are already there are written together, up to
    ``size`` bytes.
    Errors: ProcessError, after all output, when it ends with another code than 0. It has the last ``max_stderr`` bytes
    of standard error. A failure of ``stdin`` ends the process and is raised. OSError if there is no such program. It is
    not an error if a process does not read all of ``stdin``. A text for the command, a NUL in an argument or a
    variable, numbers below 1 and a ``grace`` that is negative are refused when the flow is built.
    Cancel: the process is terminated, and killed ``grace`` seconds later if it is still there. It has ended, and ``stdin`` has been cleaned up,
    when a terminal returns.
    (Python: ``asyncio.create_subprocess_exec``; fs2: ``Process``.)

    >>> from reactive_aio import Flow
    >>> from reactive_aio.io import from_process, split_lines
    >>> split_lines(from_process(["sort"], stdin=Flow.of(b"b\n", b"a\n"))).run_sync()
    [b'a', b'b']
    """
    if isinstance(command, str) or not command:
        raise TypeError("from_process() takes a program and its arguments as a list, such as ['sort', '-r']")
    for text in (*command, *(() if env is None else (*env, *env.values()))):
        if "\0" in os.fsdecode(text):  # a program gets what is before it, and uvloop says nothing
            raise ValueError("from_process(): no argument and no variable of the environment may have a NUL")
    if stdin is not None:
        check_flow("from_process", stdin)
    check_count("from_process", "size", size, 1)
    check_count("from_process", "max_stderr", max_stderr, 1)
    check_seconds("from_process", "grace", grace)
    program = _Program(tuple(command), stdin, {"cwd": cwd, "env": env}, size, max_stderr, grace)
    return polled("from_process", fspath(command[0]), program.started)


@frozen
class _Program:
    """The command to run."""

    command: tuple[str | PathLike[str], ...] = field(repr=False)  # arguments and variables may be secrets
    stdin: Flow[bytes] | None
    options: Mapping[str, Any] = field(repr=False)
    size: int
    max_stderr: int
    grace: float

    @asynccontextmanager
    async def started(self) -> AsyncGenerator[_Running, None]:
        """Start a process. It has ended when this is left."""
        loop = asyncio.get_running_loop()
        async with _pipe(self.size) as (stdout, output):
            starting = begin_apart(
                loop.subprocess_exec(
                    lambda: _Protocol(self.size, loop),
                    *self.command,
                    stdin=PIPE if self.stdin is not None else DEVNULL,
                    stdout=output,
                    stderr=PIPE,
                    **self.options,
                )
            )
            try:
                try:
                    # Cancelled in the middle, uvloop would leave the process to itself.
                    await settled(starting)
                finally:
                    if output != PIPE:
                        os.close(output)
            except asyncio.CancelledError:
                if _has_result(starting):
                    await self._running(stdout, *starting.result()).end()
                raise
            running = self._running(stdout, *starting.result())
            try:
                yield running
            finally:
                await running.end()

    def _running(
        self, stdout: asyncio.StreamReader | None, transport: asyncio.SubprocessTransport, protocol: _Protocol
    ) -> _Running:
        process = Process(transport, protocol, asyncio.get_running_loop())
        reader = stdout or cast("asyncio.StreamReader", process.stdout)
        return _Running(self, transport, process, protocol.exited, reader)


def _has_result(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


@asynccontextmanager
async def _pipe(limit: int) -> AsyncGenerator[tuple[asyncio.StreamReader | None, int]]:
    """Make a pipe, and give its reader and the descriptor to write to.

    A pipe that uvloop makes for a process is read before anybody can stop it, as fast as the process writes while it starts.
    Windows has no uvloop, and its event loop can't read this pipe.
    """
    if os.name == "nt":
        yield None, PIPE
        return
    loop = asyncio.get_running_loop()
    read, write = os.pipe()
    stdout = asyncio.StreamReader(limit=limit, loop=loop)
    connecting = begin_apart(
        loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdout, loop=loop), os.fdopen(read, "rb", buffering=0)
        )
    )
    try:
        # Cancelled in the middle, uvloop would close the descriptor, and then the file too: by then it may be another one.
        await settled(connecting)
        transport, _ = connecting.result()
    except BaseException:
        os.close(write)
        if _has_result(connecting):
            connecting.result()[0].close()
        raise
    try:
        yield stdout, write
    finally:
        transport.close()


class _Protocol(SubprocessStreamProtocol):
    """Knows when the process has ended. ``Process.wait`` may wait for its pipes, which another process can hold open."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class _Deaf(Exception):  # noqa: N818 - it says how the process is, and is no error
    """The process reads no more."""


@define(eq=False)
class _Running:
    """The Poll of one process."""

    program: _Program
    transport: asyncio.SubprocessTransport
    process: Process
    exited: asyncio.Event
    stdout: asyncio.StreamReader
    errors: bytes = field(init=False, default=b"")
    """The end of its standard error."""
    failure: BaseException | None = field(init=False, default=None)
    """Why it could not be fed."""
    killing: asyncio.TimerHandle | None = field(init=False, default=None)
    """The timer that kills a process that was terminated because it could not be fed."""
    listening: asyncio.Task[None] = field(init=False)
    feeding: asyncio.Task[None] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.listening = begin_task(self._listen())
        if self.program.stdin is not None:
            self.feeding = begin_task(self._feed(self.program.stdin))

    async def fetch(self, _: int) -> Sequence[bytes]:
        """Read one chunk. After the last one, check how the process has ended."""
        chunk = await self.stdout.read(self.program.size)
        if chunk:
            return [chunk]
        await self.exited.wait()
        code = self.transport.get_returncode()
        await asyncio.wait([self.listening], timeout=self.program.grace)
        await self._fed()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if code:
            raise ProcessError(str(self.program.command[0]), code, self.errors)
        raise StopAsyncIteration

    async def idle(self) -> None:
        """Nothing: a process needs no heartbeat."""

    async def close(self) -> None:
        """Nothing: the context manager ends it."""

    async def end(self) -> None:
        """Terminate, kill, and clean up, as far as that is needed. A cancel is delayed until then."""
        ending = begin_apart(self._end())
        await settled(ending)
        ending.result()

    async def _end(self) -> None:
        try:
            await self._fed()
            await self._stop()
        finally:
            if self.killing is not None:
                self.killing.cancel()
            self.listening.cancel()
            await ended(self.listening)
        if self.failure is not None:  # which nobody has heard of
            raise self.failure

    async def _stop(self) -> None:
        try:
            async with asyncio.timeout(self.program.grace):
                self._signal(self.transport.terminate)
                # Data that it still writes would keep it from ending.
                while await self.stdout.read(self.program.size):
                    pass
                await self.exited.wait()
        except TimeoutError:
            self._signal(self.transport.kill)
        finally:
            self.transport.close()
        await self.process.wait()

    def _signal(self, send: Callable[[], None]) -> None:
        with suppress(ProcessLookupError):
            send()

    # -- the other pipes

    async def _fed(self) -> None:
        if self.feeding is not None:
            self.feeding.cancel()
            await ended(self.feeding)

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(self.program.size):
            self.errors = (self.errors + chunk)[-self.program.max_stderr :]

    async def _feed(self, flow: Flow[bytes]) -> None:
        pipe = self.process.stdin
        assert pipe is not None

        async def send(chunk: bytes) -> None:
            try:
                pipe.write(chunk)
                await pipe.drain()
            except (BrokenPipeError, ConnectionResetError) as error:
                raise _Deaf from error
            except RuntimeError as error:
                if not pipe.is_closing():
                    raise
                raise _Deaf from error  # uvloop has closed it, as the process reads no more

        try:
            await send_rows(flow, send, self.program.size)
        except _Deaf:
            pass
        except asyncio.CancelledError:
            raise
        except FAILURES as error:
            self.failure = as_failure(error)
            self._signal(self.transport.terminate)
            self.killing = asyncio.get_running_loop().call_later(self.program.grace, self._signal, self.transport.kill)
        finally:
            pipe.close()
