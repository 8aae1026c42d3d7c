"""A large value travels by memory that both ends share, if there is room. Otherwise it takes the socket. The result is the same."""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_aio._remote import memory
from reactive_aio._remote.channel import Channel
from reactive_aio._remote.frames import BEAT, CHUNK, LAST, SHARED, Frame
from reactive_aio._remote.memory import LEAST, STEP, Memory

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no memory without a name")

MEBIBYTE = 2**20


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def large(kind: int, number: int, size: int = MEBIBYTE) -> Frame:
    return Frame(kind, number, pickled=b"p", buffers=[pickle.PickleBuffer(bytes([number]) * size)])


class Pair:
    """The two ends of a channel, both in this process."""

    def __init__(self) -> None:
        self.kept: list[Memory] = []
        ours, theirs = socket.socketpair()
        here = Memory.made(self.keep)
        assert here is not None
        self.here, there = here, Memory.given(os.dup(here.file))
        self.ours, self.theirs = Channel(ours, here), Channel(theirs, there)

    def keep(self, kept: Memory) -> bool:
        self.kept.append(kept)
        return True

    def sent(self, frame: Frame) -> Frame:
        """Send to the other end what arrives as one frame."""
        self.ours.send(frame)
        return self.heard(self.theirs)

    def heard(self, end: Channel) -> Frame:
        while True:
            for frame in end.receive():
                return frame
            (self.ours if end is self.theirs else self.theirs).flush()

    def hang_up(self) -> None:
        self.theirs.close()
        while not self.ours.ended:
            assert [] == list(self.ours.receive())
        self.ours.close()

    def close(self) -> None:
        self.hang_up()
        while self.kept:
            self.kept.pop().close()


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Yield a pair that asks for memory at once."""
    monkeypatch.setattr(memory, "PAINS", 0)
    pair = Pair()
    yield pair
    pair.close()


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the frames that were lent."""
    numbers: list[int] = []
    lend = Memory.lend

    def watched(self: Memory, frame: Frame) -> Frame:
        lent = lend(self, frame)
        numbers.extend([frame.number] if lent.kind & SHARED else [])
        return lent

    monkeypatch.setattr(Memory, "lend", watched)
    return numbers


SIZES = st.sampled_from([0, 1, 20_000, LEAST, 3 * LEAST])


@given(st.lists(st.tuples(SIZES, st.lists(SIZES, max_size=2), st.lists(SIZES, max_size=2)), max_size=6), st.booleans())
def test_frames_arrive_whole_and_in_order_both_ways(sizes: list[Any], back: bool) -> None:
    pair = Pair()
    pair.here._missed = 2**40  # so that it asks for memory
    frames = [
        Frame(
            CHUNK,
            n,
            pickled=b"p" * first,
            buffers=[bytearray(b"b" * each) for each in buffers],
            more=[b"m" * (each + 1) for each in more],
        )
        for n, (first, buffers, more) in enumerate(sizes)
    ]
    for frame in frames:
        heard = pair.sent(frame)
        if back:
            pair.theirs.send(frame)
            heard = pair.heard(pair.ours)

        assert (CHUNK, frame.number) == (heard.kind, heard.number)
        assert b"".join([frame.pickled, *frame.more]) == bytes(heard.pickled)
        assert [*frame.buffers] == [*heard.buffers]
    pair.close()


def test_what_arrives_is_nobody_elses(pair: Pair, carried: list[int]) -> None:
    first = pair.sent(large(CHUNK, 1))
    pair.theirs.send(Frame(LAST))  # which says that there is room again
    pair.heard(pair.ours)
    second = pair.sent(large(CHUNK, 2))
    (buffer,) = first.buffers
    assert isinstance(buffer, bytearray)

    assert [1, 2] == carried
    assert (1, 2) == (buffer[0], second.buffers[0][0])  # type: ignore[index]
    buffer[0] = 9
    assert 2 == second.buffers[0][0]  # type: ignore[index]


def test_room_is_used_again_when_it_has_been_read_and_not_before(pair: Pair) -> None:
    pair.ours.send(large(CHUNK, 1))
    pair.ours.send(large(CHUNK, 2))
    assert [0, MEBIBYTE + 64] == [*pair.here._lent]

    pair.heard(pair.theirs)
    pair.theirs.send(Frame(LAST))
    pair.heard(pair.ours)
    pair.ours.send(large(CHUNK, 3, LEAST))

    assert {0, MEBIBYTE + 64} >= {*pair.here._lent}


def test_a_frame_for_which_there_is_no_room_goes_by_the_socket(
    pair: Pair, carried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "HALF", 2 * MEBIBYTE)
    heard = [pair.sent(large(CHUNK, 1)), pair.sent(large(CHUNK, 2)), pair.sent(large(CHUNK, 3, 1_000))]

    assert [1, 2, 3] == [each.number for each in heard]
    assert [1] == carried


def test_where_memory_is_short_all_goes_by_the_socket(
    pair: Pair, carried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "posix_fallocate", short)

    (buffer,) = pair.sent(large(CHUNK, 1)).buffers
    assert bytes([1]) * MEBIBYTE == bytes(buffer)
    assert [] == carried


@pytest.mark.parametrize("call", ["memfd_create", "ftruncate"])
def test_a_system_that_has_none_is_asked_without_a_trace(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    before = files()
    monkeypatch.setattr(os, call, refused)
    assert None is Memory.made(lambda _: False)
    monkeypatch.delattr(os, "memfd_create")
    assert None is Memory.made(lambda _: False)
    assert before == files()


def test_memory_is_asked_for_when_twice_as_much_has_gone_by_the_socket(carried: list[int]) -> None:
    pair = Pair()
    for number in range(4):
        pair.sent(large(CHUNK, number, STEP // 2))
        pair.theirs.send(Frame(BEAT))
        pair.heard(pair.ours)

    assert [3] == carried
    pair.close()


def test_it_is_kept_for_the_next_channel_where_all_has_been_read(pair: Pair) -> None:
    pair.sent(large(CHUNK, 1))
    pair.theirs.send(Frame(LAST))
    pair.heard(pair.ours)
    pair.hang_up()

    assert [pair.here] == pair.kept


def test_it_goes_with_the_channel_where_something_has_not_been_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PAINS", 0)
    before = files()
    pair = Pair()
    pair.ours.send(large(CHUNK, 1))
    pair.hang_up()

    assert [] == pair.kept
    assert before == files()


def test_what_was_there_beyond_some_is_given_back_between_two_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PAINS", 0)
    monkeypatch.setattr(memory, "KEPT", MEBIBYTE)
    pair = Pair()
    pair.sent(large(CHUNK, 1, 5 * MEBIBYTE))
    pair.theirs.send(Frame(LAST))
    pair.heard(pair.ours)
    there = os.fstat(pair.here.file).st_blocks * 512
    pair.hang_up()

    assert (6 * MEBIBYTE, MEBIBYTE) == (there, os.fstat(pair.here.file).st_blocks * 512)
    pair.close()


def test_what_the_system_does_not_take_back_stays(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.sent(large(CHUNK, 1))
    pair.theirs.send(Frame(LAST))
    pair.heard(pair.ours)
    there = os.fstat(pair.here.file).st_blocks
    monkeypatch.delattr(mmap, "MADV_REMOVE")
    pair.hang_up()

    assert [pair.here] == pair.kept
    assert there == os.fstat(pair.here.file).st_blocks
