"""Elements that have been pickled as a list, unpickled as far as that can be.

An error that a class raises when one of its objects is unpickled stands behind the elements before it. The pickle of a
list is one piece, so where it fails, it is cut off behind each of the elements in turn, which needs nothing but the
pickle.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pickletools import genops
from typing import Any, Final

from .._core.guard import FAILURES, as_of_a_generator
from .frames import Frame

MARK: Final = "mark"
FRAME: Final = 9
"""Bytes of the opcode that begins a frame of a pickle, with its size."""


class MadeInPart(Exception):  # noqa: N818 - says what there is
    """Raised where a pickle becomes elements by a call, and one of them fails: it has those before, and the failure."""

    def __init__(self, items: list[Any], failure: BaseException) -> None:
        super().__init__(items, failure)
        self.items = items
        self.failure = failure


def loaded(frame: Frame) -> tuple[list[Any], BaseException | None]:
    """Unpickle the elements of a frame, or else those before the first that fails, and what that raises."""
    try:
        return frame.loads(), None
    except MadeInPart as part:
        return part.items, part.failure
    except FAILURES as error:
        return before_failure(bytes(frame.pickled), frame.buffers), as_of_a_generator(error, "unpickling")


def before_failure(pickled: bytes, buffers: Sequence[Any] = ()) -> list[Any]:
    """Return the elements before the first that can't be unpickled, of a list that can't."""
    try:
        cuts = list(_cuts(pickled))
        frames = [at for opcode, _, at in genops(pickled) if opcode.name == "FRAME" and at is not None]

        def up_to(count: int) -> list[Any]:
            if not count:
                return []
            end, close = cuts[count - 1]
            items: list[Any] = pickle.loads(_unframed(pickled[:end], frames) + close + pickle.STOP, buffers=buffers)
            return items

        def fails(at: int) -> bool:
            try:
                up_to(at + 1)
            except FAILURES:
                return True
            return False

        return up_to(bisect_left(range(len(cuts)), True, key=fails))
    except FAILURES:  # it is not the pickle of a list, or what can be unpickled now and then
        return []


def _cuts(pickled: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where each element of a pickled list ends, and the opcodes that append it there.

    Elements lie on the stack until some hundreds of them are put into the list. The last time that there are so many and
    no more, the last of them is complete.
    """
    marks: list[int] = []
    depth, last = 0, dict[int, int]()
    for opcode, _, at in genops(pickled):
        assert at is not None
        last[depth] = at
        if opcode.name == "APPENDS" and marks == [1]:
            yield from ((last[each], pickle.APPENDS) for each in range(3, depth + 1))
        elif opcode.name == "APPEND" and depth == 2:
            yield at, pickle.APPEND
        depth = _after(opcode, depth, marks)


def _unframed(pickled: bytes, frames: list[int]) -> bytes:
    """Leave out the sizes of frames, which a part of a pickle does not have."""
    places = [at for at in frames if at < len(pickled)]
    return pickled[: places[0] if places else None] + b"".join(
        pickled[at + FRAME : end] for at, end in pairwise([*places, len(pickled)])
    )


def _after(opcode: Any, depth: int, marks: list[int]) -> int:
    """Return the height of the stack after an opcode. ``marks`` are the places of the marks."""
    taken = [each.name for each in opcode.stack_before]
    if opcode.name == "MARK":
        marks.append(depth)
    elif MARK in taken:
        return marks.pop() - taken.index(MARK) + len(opcode.stack_after)
    elif opcode.name == "POP" and marks and marks[-1] == depth - 1:
        return marks.pop()
    return depth - len(taken) + len(opcode.stack_after)
