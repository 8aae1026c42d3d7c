"""The outlet of a task: it packs the elements of its partition into frames, however these travel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from attrs import define, field

from ..._core.notes import add_note
from ..._remote.frames import FAILED, LAST, PART, Frame
from ..._remote.pickling import Parcel
from .pickling import dumps
from .slices import Chunk

SMALL: Final = 64
"""The number of elements of the first chunk, because their size is unknown."""
LARGEST_CHUNK: Final = 2048
CHUNK_BYTES: Final = 1 << 20


@define(eq=False)
class Outlet(ABC):
    """The output of the elements of a partition."""

    partition: int
    granted: int = field(init=False, default=0)
    """Elements that may be sent."""
    room: int = field(init=False, default=0)
    """Bytes after which nothing more is sent until there is room again."""
    largest: int = field(init=False, default=SMALL)
    """Elements that make a chunk of no more bytes than go out at a time, if they are like those before."""
    skip: int = field(init=False, default=0)
    """Elements to leave out: an earlier attempt has sent them."""
    place: int = field(init=False, default=0)
    """Elements that came, in the partitions before, to the stage that is done in turn."""
    stopped: bool = field(init=False, default=False)
    """Whether no reader is left."""

    @abstractmethod
    def hear(self) -> None:
        """Take the orders that have come; wait for one if nothing may be done without."""

    @abstractmethod
    def say(self, frame: Frame) -> None:
        """Send a frame."""

    def send(self, items: Chunk) -> BaseException | None:
        """Send elements, no more than were granted; where one can't be pickled, those before it and the failure."""
        parcel = Parcel.of(items, dumps) if isinstance(items, list) else items.parcel()
        if parcel.failure is not None:
            add_note(parcel.failure, "an element that leaves the workers has to be picklable")
        if parcel.count:
            self.granted -= parcel.count
            frame = Frame(PART, self.partition, parcel.count, 0, 0, parcel.pickled, parcel.buffers, parcel.more)
            self._measure(frame)
            self.say(frame)
        return parcel.failure

    def _measure(self, frame: Frame) -> None:
        """Count the bytes, and learn how many elements go into a chunk: it grows by doubling, and shrinks at once."""
        size = frame.size
        self.room -= size
        fitting = CHUNK_BYTES * frame.count // max(1, size)
        self.largest = max(1, min(fitting, 2 * self.largest, LARGEST_CHUNK))

    def fail(self, packed: bytes) -> None:
        """Send the failure that ends the partition."""
        self.say(Frame(FAILED, self.partition, pickled=packed))

    @abstractmethod
    def cleanup_failed(self, packed: bytes) -> None:
        """Send what a region has raised that has not failed, when it let go of what it held."""

    def end(self, passed: int, *, decided: bool) -> None:
        """Send the end: how many elements came to the stage in turn, and whether later partitions matter."""
        self.say(Frame(LAST, self.partition, self.worked, passed, decided))

    @property
    def worked(self) -> int:
        """Microseconds for which the task was at work, where that is of use."""
        return 0
