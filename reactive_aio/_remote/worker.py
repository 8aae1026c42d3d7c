"""The worker process: applies the functions of regions to the chunks that their event loops send it.

One thread does it all but to notice that the program is gone. Between two parts of a chunk it looks whether anything has come, so that chunks of several
regions take turns and a region that hangs up is dropped.
"""

from __future__ import annotations

import contextvars
import os
import pickle
import runpy
import select
import selectors
import signal
import socket
import sys
import threading
import time
from collections import deque
from types import ModuleType
from typing import Any, Final

from attrs import define, field

from .._core import budgets
from .._core.containers import new_deque, new_dict, new_set
from .._core.guard import FAILURES
from .._core.notes import add_note
from .channel import Channel
from .failures import pack
from .frames import CHUNK, CLEANUP, CREDIT, FAILED, LAST, PART, REGION, STOP, Frame
from .memory import Memory
from .partial import loaded
from .pickling import Dumps, Parcel, dumps_in_pieces
from .variables import set_values

JOIN: Final = b"r"
"""On the control socket: a region, whose channel comes with it, and its memory where there is some."""
END: Final = b"s"
SMALL: Final = 16
"""The number of results that are sent first, because their size is unknown."""

GRACE: Final = 1.0
"""Seconds to end in order once the program is gone."""

NAME: Final = "__mp_main__"
"""The name of the program's main module in a worker, as multiprocessing has it, so that its main part does not run."""

starting: list[str] = []
"""The main module that is being imported in this worker, if any."""


class Main(ModuleType):
    """Stands for the program's main module until something of it is needed."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__("__main__")
        self.__origin = (name, path)

    def __getattr__(self, name: str) -> Any:
        module, path = self.__origin
        if name.startswith("__") or starting or not (module or path):
            raise AttributeError(f"the main module has no {name!r} that a worker process could import")
        starting.append(module or path)
        try:
            found = runpy.run_module(module, None, NAME, alter_sys=True) if module else runpy.run_path(path, None, NAME)
        finally:
            starting.clear()
        self.__origin = ("", "")
        vars(self).update({key: value for key, value in found.items() if not key.startswith("__")})
        return getattr(self, name)


def main(control: int, main_module: tuple[str, str], argv: list[str]) -> None:
    """Work until a stop, or until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program sees to it
    sys.argv[:] = argv
    stand_in = Main(*main_module)
    sys.modules["__main__"] = sys.modules[NAME] = stand_in
    with socket.socket(fileno=control) as ours:
        threading.Thread(target=end_with, args=(ours,), name="reactive_aio-watch", daemon=True).start()
        Worker(ours).serve()


def end_with(control: socket.socket) -> None:
    """End this process when the program has ended without a word, even in the middle of a function."""
    poll = select.poll()
    poll.register(control.fileno(), 0)  # which is for the end of the other side, and not for what is to be read
    poll.poll()
    time.sleep(GRACE)
    os._exit(1)


@define(eq=False)
class Chunk:
    """A chunk that is worked on."""

    number: int
    context: contextvars.Context
    frame: Frame | None
    left: int
    """The results that may still be sent."""
    leave_out: int
    """The results that a lost worker has sent."""
    room: int
    """Bytes of results after which none is made until there is room again."""
    run: Any = None
    behind: BaseException | None = None
    """The error of unpickling the element after those of the run."""
    waited: float = 0.0
    """Seconds of its parts so far in which nothing was to be done but to wait."""

    @property
    def may_go_on(self) -> bool:
        """Whether there is room for results, or some have to be left out."""
        return bool(self.leave_out or (self.left and self.room > 0))


@define(eq=False)
class Worker:
    """The work of the process. It runs the regions that come by its control socket, or the given ones."""

    control: socket.socket | None = None
    selector: selectors.BaseSelector = field(init=False, factory=selectors.DefaultSelector)
    turns: deque[tuple[Region, Chunk]] = field(init=False, factory=new_deque)
    """The chunks that can be worked on, each region's in order; bounded by what the regions have under way."""
    regions: set[Region] = field(init=False, factory=new_set)
    """Those that have not hung up."""
    _ending: bool = field(init=False)
    """Whether it ends with the last region that there is."""

    def __attrs_post_init__(self) -> None:
        self._ending = self.control is None

    def serve(self) -> None:
        """Take turns."""
        with self.selector:
            if self.control is not None:
                self.selector.register(self.control, selectors.EVENT_READ, self._hear)
            while self.regions or not self._ending:
                for key, events in self.selector.select(0 if self.turns else None):
                    key.data(events)
                if self.turns:
                    region, chunk = self.turns.popleft()
                    region.work_on(chunk)

    def take_in(self, region: Region) -> None:
        """Work for a region."""
        self.regions.add(region)
        self.selector.register(region.channel.socket, selectors.EVENT_READ, region.on_ready)

    def left(self, region: Region) -> None:
        """Work for a region no more."""
        self.regions.discard(region)
        self.selector.unregister(region.channel.socket)

    def _hear(self, _: int) -> None:
        assert self.control is not None
        word, files, _, _ = socket.recv_fds(self.control, 1, 2)
        if word == JOIN:
            connection, *memory = files
            shared = Memory.given(memory[0]) if memory else None
            self.take_in(Region(self, Channel(socket.socket(fileno=connection), shared)))
        else:
            self._ending = True
            self.selector.unregister(self.control)
            for region in tuple(self.regions):
                region.close()


@define(eq=False)
class Region:
    """One region in this worker. It ends when its event loop says so or hangs up."""

    worker: Worker
    channel: Channel
    dumps: Dumps = dumps_in_pieces
    place: str = field(factory=lambda: f"worker process {os.getpid()}")
    """The place, as text, for the tracebacks of failures."""
    _work: Any = field(init=False, default=None)
    _context: contextvars.Context = field(init=False, factory=contextvars.copy_context)
    _failure: bytes | None = field(init=False, default=None)
    """The reason why no work can be done."""
    _share: int = field(init=False, default=0)
    """Bytes of results that a chunk may send until the loop lets it go on."""
    _largest: int = field(init=False, default=SMALL)
    """The number of results that have about ``most`` bytes, if they are like those before."""
    _chunks: dict[int, Chunk] = field(init=False, factory=new_dict)
    _watching: int = field(init=False, default=selectors.EVENT_READ)
    _closed: bool = field(init=False, default=False)

    def on_ready(self, events: int) -> None:
        """Take the arrived frames, and send the waiting ones."""
        if self not in self.worker.regions:
            return  # it has hung up since the system was asked
        if events & selectors.EVENT_WRITE:
            self.channel.flush()
            self._watch()
        if events & selectors.EVENT_READ and not self._closed:
            for frame in self.channel.receive():
                self._heard(frame)
                if self._closed:
                    return
            if self.channel.ended:
                self.close()

    def _heard(self, frame: Frame) -> None:
        if frame.kind == CHUNK:
            chunk = Chunk(frame.number, self._context.copy(), frame, frame.count, frame.detail, self._share)
            self._chunks[frame.number] = chunk
            self.worker.turns.append((self, chunk))
        elif frame.kind == CREDIT and (waiting := self._chunks.get(frame.number)) is not None:
            if not waiting.may_go_on:
                self.worker.turns.append((self, waiting))
            waiting.left += frame.count
            waiting.room += frame.detail
        elif frame.kind == REGION:
            self._begin(frame)
        elif frame.kind == STOP:
            self.close()

    def _begin(self, frame: Frame) -> None:
        self._share = frame.detail
        try:
            pickled, variables = frame.loads()
            self._context.run(set_values, variables)
            self._work = pickle.loads(pickled)
        except FAILURES as error:  # importing a module runs its code
            add_note(error, "while the functions of the region were imported in a worker process")
            self._failure = pack(error, self.place)

    # -- work

    def work_on(self, chunk: Chunk) -> None:
        """Make the next part of a chunk."""
        if chunk.number not in self._chunks:
            return  # the region has hung up
        if self._failure is not None:
            self._send_failure(chunk, 0, self._failure)
            return
        started = budgets.clock()
        try:
            items = chunk.context.run(self._part, chunk)
        except FAILURES as error:  # of the pickle of the elements, or of a stage as it begins
            self._fail(chunk, 0, error)
            return
        run = chunk.run
        failure = chunk.behind if run.failure is None and run.over else run.failure
        over = run.over and failure is None
        waited, chunk.waited = run.waited - chunk.waited, run.waited
        worked = int((budgets.clock() - started - waited) * 1e9)
        if not self._send(chunk, items, max(0, worked), LAST if over else PART):
            if failure is not None:
                self._tell(chunk, failure)  # which stood behind what could not be sent
            self._let_go(chunk)
        elif failure is not None:
            self._fail(chunk, run.taken, failure)
            self._tell_of_cleanup(chunk)
        elif over:
            del self._chunks[chunk.number]
        elif chunk.may_go_on:
            self.worker.turns.append((self, chunk))

    def _part(self, chunk: Chunk) -> list[Any]:
        if chunk.run is None:
            frame, chunk.frame = chunk.frame, None
            assert frame is not None
            items, chunk.behind = loaded(frame)
            if chunk.behind is not None:
                add_note(chunk.behind, "while elements were unpickled in a worker process")
            chunk.run = self._work.begin(items, frame.place)
        results: list[Any] = chunk.run.part(chunk.leave_out or min(chunk.left, self._largest))
        if chunk.leave_out:
            chunk.leave_out -= len(results)
            return []
        chunk.left -= len(results)
        return results

    def _send(self, chunk: Chunk, items: list[Any], nanoseconds: int, kind: int) -> bool:
        """Send results; where one can't be pickled those before it and the failure, and False."""
        parcel, taken = Parcel.of(items, self.dumps), chunk.run.taken
        failure = parcel.failure
        kind = kind if failure is None else PART
        numbers = kind, chunk.number, parcel.count, taken, nanoseconds
        frame = Frame(*numbers, parcel.pickled, parcel.buffers, parcel.more)
        self._measure(chunk, frame)
        self.channel.send(frame)
        if failure is None:
            self._watch()
            return True
        add_note(failure, "an element that leaves a worker process has to be picklable")
        self._fail(chunk, taken, failure)
        return False

    def _measure(self, chunk: Chunk, frame: Frame) -> None:
        """Count the bytes, and learn how many results go out at once: twice as many each time, and fewer at once."""
        size = frame.size
        chunk.room -= size
        if frame.count:
            self._largest = max(1, min(self._share * frame.count // size, 2 * self._largest))

    def _fail(self, chunk: Chunk, taken: int, error: BaseException) -> None:
        self._send_failure(chunk, taken, pack(error, self.place))

    def _send_failure(self, chunk: Chunk, taken: int, packed: bytes) -> None:
        del self._chunks[chunk.number]
        self.channel.send(Frame(FAILED, chunk.number, 0, taken, 0, packed))
        self._watch()

    # -- the end

    def close(self) -> None:
        """Drop unfinished chunks, report failed cleanups, and hang up. The loop waits for that."""
        for chunk in self._chunks.values():
            self._let_go(chunk)
        self._chunks.clear()
        self._closed = True
        self._watch()

    def _let_go(self, chunk: Chunk) -> None:
        if chunk.run is not None:
            chunk.context.run(chunk.run.close)
            self._tell_of_cleanup(chunk)

    def _tell_of_cleanup(self, chunk: Chunk) -> None:
        for error in chunk.run.cleanup_failures:
            self._tell(chunk, error)

    def _tell(self, chunk: Chunk, error: BaseException) -> None:
        """Send the failures after the end of a chunk."""
        self.channel.send(Frame(CLEANUP, chunk.number, pickled=pack(error, self.place)))
        self._watch()

    # -- the socket

    def _watch(self) -> None:
        """Wait for what there is to wait for; hang up when that is nothing any more."""
        if self._closed and not self.channel.waits:
            self.worker.left(self)
            self.channel.close()
            return
        wanted = 0 if self._closed else selectors.EVENT_READ
        if self.channel.waits:
            wanted |= selectors.EVENT_WRITE
        if wanted != self._watching:
            self._watching = wanted
            self.worker.selector.modify(self.channel.socket, wanted, self.on_ready)
