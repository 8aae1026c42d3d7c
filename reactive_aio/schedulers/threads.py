"""The scheduler that runs blocking functions on a pool of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from functools import partial
from queue import SimpleQueue
from typing import Any

from attrs import define, field

from .._core import budgets
from .._core.containers import new_dict, new_list
from .._core.guard import FAILURES
from .base import Released, Report, Reports, Run, Work, WorkerRegion, not_started
from .pool import Pool

Job = Callable[[], None]


class _Thread(threading.Thread):
    """A thread of a team."""

    def __init__(self, team: _Team, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.idle_workers = team
        """Named as in anyio's threads. A loop on virtual time reads it to find out whether this thread is idle."""

    def run(self) -> None:
        self.idle_workers.serve()


@define(eq=False, repr=False)
class _Team:
    """Threads that take jobs from one queue. There are at most as many threads as jobs."""

    name: str
    most: int
    _jobs: SimpleQueue[Job | None] = field(init=False, factory=SimpleQueue[Job | None])
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _threads: list[_Thread] = field(init=False, factory=new_list)
    _left: int = field(init=False, default=0)
    """The jobs that are not done, and after the last one the threads that have not ended."""
    _told: list[Callable[[], None]] = field(init=False, factory=new_list)
    _ended: bool = field(init=False, default=False)

    def put(self, job: Job) -> bool:
        """Submit a job, to be done after those before it; return False if the threads are ending."""
        with self._lock:
            if self._told or self._ended:
                return False
            if self._left >= len(self._threads) < self.most:
                self._grow()
            self._left += 1
            # Before `stop`, from any thread, has told the threads to end: they would leave the job undone.
            self._jobs.put(job)
        return True

    def _grow(self) -> None:
        """Start one more thread. If the machine has none, go on with the existing ones."""
        thread = _Thread(self, f"{self.name}-{len(self._threads) + 1}")
        try:
            thread.start()
        except RuntimeError as error:
            if not self._threads:
                raise not_started(self.name, error) from error
        else:
            self._threads.append(thread)

    def serve(self) -> None:
        """Do jobs until there will be no more."""
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._left -= 1
        with self._lock:
            self._left -= 1
            self._ended = not self._left
            told = self._told.copy() if self._ended else []
        for tell in told:
            tell()

    def __contains__(self, thread: object) -> bool:
        return not self._left

    def stop(self, told: Callable[[], None]) -> None:
        """End the threads when all jobs are done."""
        with self._lock:
            first = not self._told
            self._told.append(told)
            if first:
                self._left += len(self._threads)
            ended = self._ended = self._ended or not self._threads
        for _ in self._threads if first else ():
            self._jobs.put(None)
        if ended:
            told()

    def is_here(self) -> bool:
        """Return whether the calling thread is one of them."""
        return threading.current_thread() in self._threads

    def join(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()


@define(eq=False, repr=False)
class _Chunk:
    """A chunk on its way. Each has a context of its own, since several are worked on at a time."""

    number: int
    items: list[Any]
    index: int
    context: Context
    run: Run | None = None


@define(eq=False, repr=False)
class _Member:
    """One region's hold on the threads."""

    pool: ThreadPool
    team: _Team
    work: Work
    most: int
    context: Context
    reports: Reports
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _chunks: dict[int, _Chunk] = field(init=False, factory=new_dict)
    """The chunks that wait for a thread, or for leave to go on. The region bounds them by what it submits."""
    _running: int = field(init=False, default=0)
    _dropped: bool = field(init=False, default=False)
    _released: Released | None = field(init=False, default=None)

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        """Submit a chunk."""
        self._chunks[chunk] = _Chunk(chunk, items, index, self.context.copy())
        try:
            self.go_on(chunk)
        except RuntimeError as error:  # not one thread is to be had
            del self._chunks[chunk]
            self.reports.reported(Report(chunk, [], 0, 0.0, True, error))

    def go_on(self, chunk: int) -> None:
        """Let a chunk go on."""
        self.team.put(partial(self._work_on, chunk))

    def leave(self, released: Released) -> None:
        """Let go when nothing of the region runs any more. Chunks that have not begun are dropped."""
        with self._lock:
            self._dropped = True
            self._released = released
            begun = [chunk for chunk in self._chunks.values() if chunk.run is not None]
            self._chunks.clear()
            self._running += len(begun)
            gone = not self._running
        for chunk in begun:
            if not self.team.put(partial(self._give_up, chunk)):
                self._give_up(chunk)
        if gone:
            self.pool.let_go(self, self.team, released)

    def expel(self, error: BaseException) -> None:
        """Fail the region, because the pool is closed."""
        self._dropped = True
        self.reports.lost(error)

    # -- on the threads

    def _work_on(self, number: int) -> None:
        with self._lock:
            chunk = None if self._dropped else self._chunks.pop(number, None)
            if chunk is None:
                return
            self._running += 1
        try:
            self._run(chunk)
        finally:
            self._done()

    def _run(self, chunk: _Chunk) -> None:
        left = self.most
        while left:
            started = budgets.clock()
            try:
                run, items = chunk.context.run(self._part, chunk, left)
            except FAILURES as error:
                self.reports.reported(Report(chunk.number, [], 0, 0.0, True, error))
                return
            left -= len(items)
            report = Report(chunk.number, items, run.taken, budgets.clock() - started, run.over, run.failure)
            # Before the report, which may bring the word to go on.
            if not run.over and not self._may_go_on(chunk, left):
                self._close(chunk)
                return
            self.reports.reported(report)
            if run.over:
                self._tell_of_cleanup(run)
                return

    def _part(self, chunk: _Chunk, most: int) -> tuple[Run, list[Any]]:
        run = chunk.run = chunk.run or self.work.begin(chunk.items, chunk.index)
        return run, run.part(most)

    def _may_go_on(self, chunk: _Chunk, left: int) -> bool:
        """Put a chunk aside that has made as many results as it may. Return False if nothing waits for it any more."""
        with self._lock:
            if not left and not self._dropped:
                self._chunks[chunk.number] = chunk
            return not self._dropped

    def _close(self, chunk: _Chunk) -> None:
        run = chunk.run
        if run is not None:
            chunk.context.run(run.close)
            self._tell_of_cleanup(run)

    def _tell_of_cleanup(self, run: Run) -> None:
        for error in run.cleanup_failures:
            self.reports.cleanup_failed(error)

    def _give_up(self, chunk: _Chunk) -> None:
        self._close(chunk)
        self._done()

    def _done(self) -> None:
        with self._lock:
            self._running -= 1
            released = None if self._running else self._released
        if released is not None:
            self.pool.let_go(self, self.team, released)


@define(eq=False, repr=False)
class ThreadPool(Pool[_Team]):
    """Threads for blocking functions, shared by the regions that are placed there (Workers)."""

    @property
    def name(self) -> str:
        """How plans show the place."""
        return f"threads({self.count})"

    def check(self, stage: object) -> None:
        """Accept every stage: a function is called in this process."""

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> WorkerRegion:
        """Take a region in. Threads start as there is work for them."""
        hired: list[_Member] = []

        def make(team: _Team) -> _Member:
            hired.append(_Member(self, team, work, most, context, reports))
            return hired[0]

        self._enter(make)
        return hired[0]

    def _form(self) -> _Team:
        return _Team(self.name, self.count)


def threads(n: int) -> ThreadPool:
    """Run the functions that follow on ``n`` threads, several elements at a time: for functions that block.

    It is for ``publish_on``. The elements travel in small chunks and come back in order. A chunk has the elements that
    are there: one at first, and more as long as the functions are quick. Operators that depend on an element's place in
    the stream, such as ``take``, run with what follows them on the event loop that reads.

    The threads start as there is work and end with the last flow on them, before its terminal returns. A function that
    blocks is waited for. ``async with schedulers.threads(8) as pool:`` keeps them for many flows. (Reactor:
    ``Schedulers.boundedElastic``.)

    >>> import time
    >>> from reactive_aio import Flow, schedulers
    >>> def fetched(n: int) -> int:
    ...     time.sleep(0.01)
    ...     return n * n
    >>> Flow.range(5).publish_on(schedulers.threads(4)).map(fetched).run_sync()
    [0, 1, 4, 9, 16]
    """
    check_workers("threads", n)
    return ThreadPool(n)


def check_workers(method: str, n: object) -> None:
    """Raise unless ``n`` is a number of workers."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{method}({n!r}): the number of workers is a whole number, not {type(n).__name__}")
    if n < 1:
        raise ValueError(f"{method}({n}): there must be at least 1 worker")


def check_bytes(method: str, n: object) -> None:
    """Raise unless the value is a number of bytes."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{method}(max_bytes={n!r}): the number of bytes is a whole number, not {type(n).__name__}")
    if n < 1:
        raise ValueError(
            f"{method}(max_bytes={n}): there must be at least 1 byte. A chunk for each worker may have more"
        )
