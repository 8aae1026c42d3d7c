"""Runs many cells on few loops; a cell that hangs, or that lets something out into its loop, costs its loop only."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

import pytest
from attrs import define, field, frozen

from reactive_aio import hooks
from reactive_aio._clocks.bystanders import is_worker
from reactive_aio.testing import LeakError, no_leaks, settle
from tests.failures.kinds import shown

PATIENCE: Final = float(os.environ.get("MATRIX_PATIENCE", "10"))
"""Seconds until a cell counts as one that hangs: a net, which no good cell comes near."""
HURRY: Final = 0.05
"""The same, of a loop at rest, when some have been caught: the test fails anyway, and is to come to its end."""
WHOLE: Final = os.environ.get("MATRIX") == "all"
"""Whether everything is to be combined with everything."""
ONLY: Final = os.environ.get("MATRIX_ONLY", "")
"""A part of the name of the cells to be run."""
ABANDONED: Final[list[object]] = []
"""Loops and threads of cells that hang; kept, since what is left on them would be told of when they are collected."""


class Code(Protocol):
    """The user's code of a cell."""

    open: int
    """How much of it is open."""


class Cell(Protocol):
    """A run with its verdict."""

    @property
    def loop_name(self) -> str:
        """The name of its loop."""
        ...

    @property
    def loop(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """Makes the loop to run it on."""
        ...

    def run(self, bench: Bench) -> Coroutine[Any, Any, list[str]]:
        """Run it, and tell what is wrong."""
        ...


C = TypeVar("C", bound=Cell)


class HangError(Exception):
    """A cell hangs: its loop can't be used any more."""


@frozen(eq=False)
class Outcome:
    """How an end has ended."""

    error: BaseException | None = None
    value: Any = None
    open: int = 0
    """How much of the user's was open when the end returned."""

    def __str__(self) -> str:
        return f"raised {shown(self.error)}" if self.error is not None else f"gave {shown(self.value)}"


@define(eq=False)
class Bench:
    """The state that the cells of one loop share."""

    hangs: int = 0
    handled: list[str] = field(factory=list[str])
    """The reports to the loop's exception handler, to that of threads and to that of errors that can't be raised."""
    errors_handled: list[BaseException] = field(factory=list[BaseException])

    @property
    def patience(self) -> float:
        """The seconds to wait for an end."""
        return PATIENCE if self.hangs < 3 else min(HURRY, PATIENCE)

    def handle(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take a report to the loop's exception handler."""
        error = context.get("exception")
        self.handled.append(f"{context.get('message')}: {shown(error)}")
        if error is not None:
            self.errors_handled.append(error)

    async def finish(self, task: asyncio.Task[Outcome]) -> Outcome:
        """Wait for an end, as long as patience lasts; cancel it then."""
        if await self._ends(task):
            return task.result()
        self.hangs += 1
        task.cancel()
        await self._ends(task)
        raise HangError("hangs" if task.done() else "hangs, and can't be cancelled")

    async def _ends(self, task: asyncio.Task[Outcome]) -> bool:
        if self.hangs >= 3:
            with suppress(TimeoutError):
                await settle(within=1.0)
        await asyncio.wait([task], timeout=self.patience)
        return task.done()

    @staticmethod
    @contextmanager
    def dropped(into: list[BaseException]) -> Generator[None]:
        """Have the hook collect the errors that it gets."""
        with hooks.using(on_error_dropped=into.append):
            yield


async def outcome_of(run: Callable[[], Any], code: Code) -> Outcome:
    """Await an end; whatever it raises is given, and never raised by a task."""
    try:
        return Outcome(value=await run(), open=code.open)
    except asyncio.CancelledError as error:
        # Its traceback would hold the iterator that was left, which is cleaned up when nobody holds it.
        return Outcome(error.with_traceback(None), open=code.open)
    except BaseException as error:
        return Outcome(error, open=code.open)


@define(eq=False)
class Leaks:
    """Checks that a cell leaves nothing behind."""

    check: Any = field(factory=no_leaks)
    threads: set[threading.Thread] = field(factory=set[threading.Thread])

    def begin(self) -> None:
        """Look at what is there."""
        self.threads = set(threading.enumerate())
        self.check.__enter__()

    async def _threads_end(self, bench: Bench) -> None:
        """Let threads end that have told of their end, which a foreign publisher is not waited for with; idle ones stay."""
        until = asyncio.get_running_loop().time() + min(1.0, bench.patience)
        while asyncio.get_running_loop().time() < until:
            if all(is_worker(thread) for thread in set(threading.enumerate()) - self.threads):
                return
            await asyncio.sleep(0.001)

    async def told(self, bench: Bench) -> list[str]:
        """Return what is left when all has come to rest."""
        try:
            await settle(within=max(1.0, bench.patience))
        except TimeoutError as error:
            bench.hangs += 1
            raise HangError(f"never comes to rest: {error}") from None
        await self._threads_end(bench)
        try:
            self.check.__exit__(None, None, None)
        except LeakError as error:
            return [str(error).replace("\n", " ")[:300]]
        return []


@define(eq=False)
class _Worker(Generic[C]):
    """One thread, with one loop, that runs cells until one of them spoils it."""

    cells: Iterator[C]
    bench: Bench
    told: SimpleQueue[tuple[str, C | None, list[str]]] = field(factory=SimpleQueue[tuple[str, "C | None", list[str]]])
    _at: C | None = None
    _next: C | None = None

    def work(self) -> None:
        """Run cells, each on a loop that fits it."""
        while self._next is not None or self._take():
            assert self._next is not None
            factory = self._next.loop
            loop = factory()
            try:
                spoilt = loop.run_until_complete(self._on_loop(factory))
            except BaseException as error:
                assert self._at is not None
                self.told.put(("done", self._at, [f"lets {type(error).__name__} out into the loop"]))
                spoilt = True
            gc.enable()
            if spoilt:
                ABANDONED.append((loop, asyncio.all_tasks(loop)))
            else:
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
                loop.close()
        self.told.put(("over", None, []))

    def _take(self) -> bool:
        self._next = next(self.cells, None)
        return self._next is not None

    async def _on_loop(self, factory: Callable[[], asyncio.AbstractEventLoop]) -> bool:
        asyncio.get_running_loop().set_exception_handler(self.bench.handle)
        while self._next is not None and self._next.loop is factory:
            self._at, self._next = self._next, None
            self.told.put(("begin", self._at, []))
            del self.bench.handled[:], self.bench.errors_handled[:]
            try:
                wrong = await self._at.run(self.bench)
            except HangError as error:
                self.told.put(("done", self._at, [str(error)]))
                return True
            self.told.put(("done", self._at, wrong))
            self._take()
            if any("left" in each for each in wrong):
                return True  # what is left would be told of in the midst of another cell
        return False


class Heard(logging.Handler):
    """Hears what loops on other threads log, which have no handler of their own."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(logging.ERROR)
        self._bench = bench

    def emit(self, record: logging.LogRecord) -> None:
        """Take it, but for what a flow was built to log, which comes without an exception."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None and record.name != "asyncio":
            return
        self._bench.handled.append(f"logged: {record.msg.splitlines()[0][:80]}: {shown(error)}")
        if error is not None:
            self._bench.errors_handled.append(error)


@contextmanager
def all_heard(bench: Bench) -> Generator[None]:
    """Collect the failures that reach no loop: of dead threads, of places where none can be raised, and those dropped without a loop."""
    unraisable, in_thread = sys.unraisablehook, threading.excepthook
    loggers = [logging.getLogger(name) for name in ("asyncio", "reactive_aio")]
    propagate = [logger.propagate for logger in loggers]
    handler = Heard(bench)
    sys.unraisablehook = lambda told: bench.handled.append(f"unraisable: {shown(told.exc_value)}")
    threading.excepthook = lambda told: bench.handled.append(f"a thread died: {shown(told.exc_value)}")
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = unraisable, in_thread
        for logger, before in zip(loggers, propagate, strict=True):
            logger.propagate = before
            logger.removeHandler(handler)


def run_cells(cells: Iterable[C]) -> list[tuple[C, str]]:
    """Run cells one after another and give what went wrong; the run goes on whatever a cell does."""
    bench, left, wrong = Bench(), iter(cells), list[tuple[C, str]]()
    with all_heard(bench):
        while True:
            worker = _Worker(left, bench)
            thread = threading.Thread(target=worker.work, name="cells", daemon=True)
            thread.start()
            if _watched(worker, wrong):
                thread.join()
                return wrong
            bench.hangs += 1
            gc.enable()
            ABANDONED.append((thread, worker))


def _watched(worker: _Worker[C], wrong: list[tuple[C, str]]) -> bool:
    """Listen to a thread until it has done all; False if it hangs, so that not even its loop goes on."""
    at: C | None = None
    while True:
        try:
            what, cell, told = worker.told.get(timeout=2 * worker.bench.patience + 4)
        except Empty:
            assert at is not None, "the thread that runs the cells died"
            wrong.append((at, "blocks the loop"))
            return False
        at = cell
        if what == "over":
            return True
        if cell is not None:
            wrong += [(cell, each) for each in told]


def none_go_wrong(cells: Iterable[C], only: str = ONLY) -> None:
    """Run cells, those with a certain part in their names, and fail with the names of those that went wrong."""
    run = sorted((cell for cell in cells if only in str(cell)), key=lambda cell: cell.loop_name)
    wrong = run_cells(run)
    if wrong:
        names = {str(cell) for cell, _ in wrong}
        lines = [f"{cell}: {told}" for cell, told in wrong]
        pytest.fail("\n  ".join([f"{len(names)} of {len(run)} cells went wrong:", *lines]), pytrace=False)
