"""The frames of the credit boundary: whatever is said arrives whole, however the bytes are cut."""

from __future__ import annotations

import pickle
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_aio._remote.channel import Channel
from reactive_aio._remote.frames import BEAT, CHUNK, FAILED, HEAD, LAST, Decoder, Frame

NUMBERS = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    Frame,
    st.integers(1, 9),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.binary(max_size=40),
    st.lists(st.binary(max_size=40).map(bytearray), max_size=3),
    st.lists(st.binary(min_size=1, max_size=40), max_size=3),
)


def said(*frames: Frame) -> bytes:
    return b"".join(bytes(view) for frame in frames for view in frame.encoded())


def same(frame: Frame) -> Any:
    numbers = frame.kind, frame.number, frame.count, frame.place, frame.detail
    return numbers, b"".join([frame.pickled, *frame.more]), [bytes(each) for each in frame.buffers]


@given(st.lists(FRAMES, max_size=5), st.integers(1, 60))
def test_frames_arrive_whole_however_the_bytes_are_cut(frames: list[Frame], step: int) -> None:
    decoder, data = Decoder(), said(*frames)

    heard = [frame for at in range(0, len(data), step) for frame in decoder.feed(data[at : at + step])]

    assert [same(frame) for frame in frames] == [same(frame) for frame in heard]


def test_a_frame_is_there_with_its_last_byte_and_not_before() -> None:
    decoder, data = Decoder(), said(Frame(LAST, 7, pickled=b"abc"))

    assert [] == list(decoder.feed(data[:-1]))
    (frame,) = decoder.feed(data[-1:])
    assert (LAST, 7, b"abc") == (frame.kind, frame.number, bytes(frame.pickled))


def test_numbers_are_of_64_bits_so_that_a_stream_may_last() -> None:
    (frame,) = Decoder().feed(said(Frame(CHUNK, 2**40, 1, 2**50)))

    assert (2**40, 2**50) == (frame.number, frame.place)


def test_a_large_pickle_and_the_buffers_are_sent_from_where_they_are() -> None:
    memory = bytearray(b"x" * 100_000)
    frame = Frame(CHUNK, pickled=b"y" * 70_000, buffers=[pickle.PickleBuffer(memory)])

    head, pickled, buffer = frame.encoded()

    assert HEAD.size + 8 == len(head)
    assert pickled.obj is frame.pickled
    memory[0] = ord("z")
    assert ord("z") == buffer[0]


def test_each_piece_of_a_pickle_is_sent_from_where_it_is_and_they_arrive_as_one() -> None:
    pieces = [b"y" * 70_000, b"z"]
    frame = Frame(CHUNK, pickled=b"x", more=pieces)

    _, *sent = frame.encoded()
    (heard,) = Decoder().feed(said(frame))

    assert [True, True] == [view.obj is piece for view, piece in zip(sent, pieces, strict=True)]
    assert b"x" + b"y" * 70_000 + b"z" == bytes(heard.pickled)


def test_a_buffer_is_received_into_memory_of_its_own() -> None:
    np = pytest.importorskip("numpy")
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(np.arange(50_000), 5, buffer_callback=buffers.append)

    (frame,) = Decoder().feed(said(Frame(CHUNK, 1, 1, pickled=data, buffers=buffers)))
    array = frame.loads()

    assert array.tolist() == list(range(50_000))
    assert array.base is not None
    array[0] = 5  # it may be written to
    assert 5 == frame.loads()[0]


def test_what_does_not_fit_the_socket_waits_and_arrives_when_there_is_room() -> None:
    ours, theirs = (Channel(each) for each in socket.socketpair())
    large = b"x" * 5_000_000
    ours.send(Frame(CHUNK, 1, pickled=large))
    ours.send(Frame(FAILED, 2))
    assert ours.waits

    heard: list[Frame] = []
    while len(heard) < 2:
        heard += theirs.receive()
        ours.flush()

    assert [large, b""] == [bytes(frame.pickled) for frame in heard]
    assert not ours.waits
    ours.close()
    assert [] == list(theirs.receive())
    assert theirs.ended
    theirs.close()


def test_small_frames_that_do_not_fit_the_socket_wait_in_their_order() -> None:
    ours, theirs = (Channel(each) for each in socket.socketpair())
    said = 0
    while not ours.waits:
        ours.send(Frame(LAST, said, pickled=b"x" * 1000))
        said += 1
    ours.send(Frame(FAILED, said, pickled=b"y" * 100_000))
    heard = [*theirs.receive()]
    ours.send(Frame(BEAT, said + 1))  # for which there would be room, but not before the others

    while len(heard) < said + 2:
        heard += theirs.receive()
        ours.flush()

    assert [*range(said + 2)] == [frame.number for frame in heard]
    assert {1000, 100_000, 0} == {len(frame.pickled) for frame in heard}
    ours.close()
    theirs.close()


def test_what_was_said_before_hanging_up_is_heard() -> None:
    ours, theirs = (Channel(each) for each in socket.socketpair())
    ours.send(Frame(BEAT))
    ours.close()

    assert [BEAT] == [frame.kind for frame in theirs.receive()]
    assert [] == list(theirs.receive())
    assert theirs.ended
    theirs.close()
