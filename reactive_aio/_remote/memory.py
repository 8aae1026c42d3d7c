"""Memory that both ends of a channel share: large data are copied into it, and the socket carries only their place.

It has no name. The system frees it with the last of the two processes, however these end. Each side writes to a half of
its own and reads from the other one. It copies what it has read, and says so, and the room is used again.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from typing import Any, Final, Self

from attrs import define, field

from .._core.containers import new_dict
from .frames import SHARED, Frame

HALF: Final = 2**26
"""Bytes that may be there at a time, each way. The system provides the used ones."""

KEPT: Final = 2**24
"""Bytes that are kept for the next region."""

LEAST: Final = 2**16
"""Bytes of a frame below which the socket is as quick (measured: at 64 KiB both take 35 µs, at 1 MiB 190 and 70)."""

STEP: Final = 2**20
"""Bytes that are requested from the system at a time."""

LINE: Final = 64
"""The places are multiples of this."""

PAINS: Final = 2
"""Bytes that go by the socket before that much room is requested: new memory costs more than the socket."""


@define(eq=False)
class Memory:
    """One side's view of it."""

    file: int
    ours: int
    """The beginning of the half to which this side writes."""
    theirs: int
    keep: Callable[[Memory], bool] = lambda memory: False
    """Takes it when it is not needed any more and nothing lies there, or says no."""
    _all: memoryview | None = field(init=False, default=None)
    _map: Any = field(init=False, default=None)
    _lent: dict[int, int] = field(init=False, factory=new_dict)
    """Beginning and end of the data that the other side has not read."""
    _there: int = field(init=False, default=0)
    """Bytes of our half that the system has provided."""
    _missed: int = field(init=False, default=0)
    """Bytes for which there was no room since that."""

    @classmethod
    def made(cls, keep: Callable[[Memory], bool]) -> Self | None:
        """Return a new one; None where the system has no such memory or no more of it."""
        try:
            file = os.memfd_create("reactive_aio")
        except (AttributeError, OSError):
            return None
        try:
            os.ftruncate(file, 2 * HALF)
        except OSError:
            os.close(file)
            return None
        return cls(file, 0, HALF, keep)

    @classmethod
    def given(cls, file: int) -> Self:
        """Return the view of the other side."""
        return cls(file, HALF, 0)

    def lend(self, frame: Frame) -> Frame:
        """Put the pickle and the buffers of a frame there, if they are large and there is room: the frame then says where."""
        size = frame.size
        place = self._place(size) if size >= LEAST else None
        if place is None:
            return frame
        memory, end, sizes = self._mapped(), self.ours + place, [place, frame.length()]
        for piece in (frame.pickled, *frame.more):
            start, end = end, end + len(piece)
            memory[start:end] = piece
        for view in frame.views():
            start, end = end, end + view.nbytes
            memory[start:end] = view
            sizes.append(view.nbytes)
        return Frame(frame.kind | SHARED, frame.number, frame.count, frame.place, frame.detail, _packed(sizes))

    def take(self, frame: Frame) -> tuple[Frame, int]:
        """Copy what the other side has lent; return the frame with the copy, and the place that the other side may use again."""
        place, length, *sizes = struct.unpack(f"!{len(frame.pickled) // 8}Q", frame.pickled)
        memory, start = self._mapped(), self.theirs + place
        pieces: list[bytearray] = []
        for size in (length, *sizes):
            pieces.append(bytearray(memory[start : start + size]))
            start += size
        numbers = frame.number, frame.count, frame.place, frame.detail
        return Frame(frame.kind & ~SHARED, *numbers, pieces[0], pieces[1:]), place

    def free(self, place: int) -> None:
        """Use the room at a place again: the other side has read what lay there."""
        del self._lent[place]

    def left(self) -> None:
        """Keep it for the next region, or close it: the other side has closed its view."""
        if not self._lent:
            self._trim()
            if self.keep(self):
                return
        self.close()

    def _trim(self) -> None:
        """Return unused memory to the system."""
        if self._all is None:
            return
        try:
            for half in (self.ours, self.theirs):
                self._map.madvise(mmap.MADV_REMOVE, half + KEPT, HALF - KEPT)
        except (AttributeError, OSError):  # what the system does not take back stays
            return
        self._there = min(self._there, KEPT)

    def close(self) -> None:
        """Close it."""
        if self._all is not None:
            self._all.release()
            self._all = None
            self._map.close()
        os.close(self.file)

    def _place(self, size: int) -> int | None:
        """Find room at the lowest place, where memory is warm. Return None without room, or without memory for it."""
        place = 0
        for start in sorted(self._lent):
            if start - place >= size:
                break
            place = self._lent[start]
        end = place + size + -size % LINE
        if end > HALF or not self._is_there(end, size):
            return None
        self._lent[place] = end
        return place

    def _is_there(self, end: int, size: int) -> bool:
        """Make the system provide this side's half up to here. A write without memory kills the process."""
        if end <= self._there:
            return True
        end += -end % STEP
        self._missed += size
        if self._missed < PAINS * (end - self._there):
            return False
        self._missed = 0
        try:
            self._mapped()
            os.posix_fallocate(self.file, self.ours + self._there, end - self._there)
        except OSError:
            return False
        self._there = end
        return True

    def _mapped(self) -> memoryview:
        if self._all is None:
            self._map = mmap.mmap(self.file, 2 * HALF)
            self._all = memoryview(self._map)
        return self._all


def _packed(numbers: list[int]) -> bytes:
    return struct.pack(f"!{len(numbers)}Q", *numbers)
