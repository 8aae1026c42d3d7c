"""The bodies of requests: read as they are wanted, cut into lines, decompressed, and never beyond a limit."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from reactive_aio import Flow
from reactive_aio.errors import SourceConsumedError
from reactive_aio.testing import run_virtual
from reactive_aio.web import (
    ClientDisconnectedError,
    TooLargeError,
    decompress,
    json_lines,
    request_body,
    split_lines,
)
from tests.subscribers import Recorder, idle

SCOPE: dict[str, object] = {"type": "http", "headers": []}


@define(eq=False)
class Upload:
    """A client that sends chunks, and stays or goes."""

    chunks: list[bytes]
    goes: bool = False
    sent: int = field(init=False, default=0)

    async def receive(self) -> Mapping[str, object]:
        if self.sent == len(self.chunks):
            return {"type": "http.disconnect"}
        self.sent += 1
        more = self.goes or self.sent < len(self.chunks)
        return {"type": "http.request", "body": self.chunks[self.sent - 1], "more_body": more}


def length(n: object) -> dict[str, object]:
    return {"type": "http", "headers": [(b"Content-Length", str(n).encode())]}


async def test_a_body_is_its_chunks() -> None:
    upload = Upload([b"a", b"", b"bc"])

    assert [b"a", b"bc"] == await request_body(SCOPE, upload.receive, max_bytes=3).to_list()


async def test_a_chunk_is_received_for_each_that_is_wanted() -> None:
    upload = Upload([b"x"] * 100)
    async with request_body(SCOPE, upload.receive, max_bytes=1000).open() as chunks:
        for number in range(1, 4):
            await anext(chunks)
            assert number == upload.sent


async def test_a_body_can_be_read_once() -> None:
    body = request_body(SCOPE, Upload([b"x"]).receive, max_bytes=10)
    await body.drain()

    with pytest.raises(SourceConsumedError):
        await body.drain()


async def test_a_body_beyond_the_limit_is_refused_with_the_chunk_that_goes_beyond_it() -> None:
    upload, taken = Upload([b"xx"] * 100), list[bytes]()
    with pytest.raises(TooLargeError, match="more than the 5 bytes"):
        await request_body(SCOPE, upload.receive, max_bytes=5).for_each(taken.append)

    assert ([b"xx", b"xx"], 3) == (taken, upload.sent)


async def test_a_body_that_says_that_it_is_too_large_is_not_read_at_all() -> None:
    upload = Upload([b"x"])
    with pytest.raises(TooLargeError, match="has 6 bytes, but at most 5"):
        await request_body(length(6), upload.receive, max_bytes=5).drain()

    assert 0 == upload.sent


@pytest.mark.parametrize("said", [5, "-6", "six", "6" * 5000, ""])
async def test_what_the_client_says_is_believed_only_where_it_is_too_much(said: object) -> None:
    await request_body(length(said), Upload([b"x"]).receive, max_bytes=5).drain()


async def test_a_client_that_goes_in_the_middle_is_a_failure() -> None:
    with pytest.raises(ClientDisconnectedError, match="after 2 bytes"):
        await request_body(SCOPE, Upload([b"xx"], goes=True).receive, max_bytes=5).drain()


def test_a_client_that_sends_too_slowly_is_left_by_a_timeout() -> None:
    left = False

    async def receive() -> Mapping[str, object]:
        nonlocal left
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            left = True
            raise
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(TimeoutError):
        run_virtual(request_body(SCOPE, receive, max_bytes=3).timeout(20).to_list())
    assert left


def test_what_has_no_body_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"request_body\(\) answers HTTP requests"):
        request_body({"type": "websocket", "headers": []}, Upload([]).receive, max_bytes=1)


# -- lines


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"").replace(b"\r", b""))), st.data())
def test_lines_are_those_of_the_whole_however_it_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + data.draw(st.sampled_from([b"\n", b"\r\n"])) for line in lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    chunks = [text[start:stop] for start, stop in pairwise(cuts)]

    assert lines == split_lines(Flow.from_iterable(chunks)).run_sync()


def test_the_last_line_needs_no_end() -> None:
    assert [b"a", b"b"] == split_lines(Flow.of(b"a\nb")).run_sync()
    assert [b"a"] == split_lines(Flow.of(b"a\n")).run_sync()


def test_a_return_that_no_line_feed_follows_belongs_to_the_line() -> None:
    assert [b"a", b"b\r"] == split_lines(Flow.of(b"a\r\nb\r")).run_sync()
    assert [b"\r"] == split_lines(Flow.of(b"\r")).run_sync()


async def test_a_chunk_is_asked_for_when_the_lines_of_the_one_before_are_taken() -> None:
    asked: list[bytes] = []
    body = Flow.of(b"a\nb\nc\n", b"d\n").do_on_next(asked.append)
    async with split_lines(body).open() as lines:
        for _ in range(3):
            await anext(lines)
            assert 1 == len(asked)
        assert b"d" == await anext(lines)


async def test_for_several_lines_that_are_wanted_one_chunk_is_asked_for() -> None:
    asked: list[bytes] = []
    recorder = Recorder()
    split_lines(Flow.of(b"a\nb\nc\n", b"d\n").do_on_next(asked.append)).subscribe(recorder)
    recorder.request(3)
    await idle()

    assert ([b"a", b"b", b"c"], 1) == (recorder.items, len(asked))
    recorder.cancel()


@pytest.mark.parametrize("chunks", [[b"123456"], [b"123", b"456"], [b"1\n123", b"456\n"]])
def test_a_line_beyond_the_limit_is_refused_before_it_has_ended(chunks: list[bytes]) -> None:
    with pytest.raises(TooLargeError, match="more than the 5 bytes"):
        split_lines(Flow.from_iterable(chunks), max_line=5).run_sync()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_line_break_does_not_count_however_it_is_cut(end: bytes) -> None:
    text = b"12345" + end + b"67890" + end
    for cut in range(len(text)):
        assert [b"12345", b"67890"] == split_lines(Flow.of(text[:cut], text[cut:]), max_line=5).run_sync()


@pytest.mark.parametrize("chunks", [[b"12345\r"], [b"12345\r", b"6\n"], [b"12345\r\r\n"], [b"123456\r", b"\n"]])
def test_a_return_within_a_line_counts(chunks: list[bytes]) -> None:
    with pytest.raises(TooLargeError, match="more than the 5 bytes"):
        split_lines(Flow.from_iterable(chunks), max_line=5).run_sync()


def test_lines_of_json_without_the_empty_ones() -> None:
    assert [1, {"a": None}] == json_lines(Flow.of(b' \n1\r\n\n{"a"', b": null}")).run_sync()


def test_a_line_that_is_no_json_is_a_failure_with_its_number() -> None:
    with pytest.raises(ValueError, match="Expecting value") as failed:
        json_lines(Flow.of(b"1\nnone\n")).run_sync()

    assert "map(loads)" in failed.value.__notes__[0]


# -- encodings

TEXT = b"hello " * 50_000


def cut(data: bytes, size: int) -> Flow[bytes]:
    return Flow.from_iterable([data[at : at + size] for at in range(0, len(data), size)])


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("GZIP ", gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
        ("deflate", zlib.compress(TEXT)),
        ("identity", TEXT[:1000] + TEXT[1000:]),
        ("", TEXT),
    ],
)
def test_what_is_decompressed_is_what_was_compressed(encoding: str, data: bytes, size: int) -> None:
    pieces = decompress(cut(data, max(size, len(data) // 1000)), encoding, max_bytes=len(TEXT)).run_sync()

    assert b"".join(pieces) == TEXT


async def test_a_small_body_that_stands_for_a_large_one_is_decompressed_as_it_is_wanted_and_refused_at_the_limit() -> (
    None
):
    bomb = gzip.compress(bytes(100_000_000))
    assert len(bomb) < 200_000
    taken = 0

    def take(piece: bytes) -> None:
        nonlocal taken
        assert len(piece) <= 65_536
        taken += len(piece)

    with pytest.raises(TooLargeError, match="more than the 1000000 decompressed bytes"):
        await decompress(Flow.of(bomb), "gzip", max_bytes=1_000_000).for_each(take)

    assert 900_000 < taken <= 1_000_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_data_that_is_not_so_encoded_is_a_failure_that_says_so(encoding: str) -> None:
    with pytest.raises(ValueError, match=f"not encoded as {encoding}"):
        decompress(Flow.of(b"hello, hello"), encoding, max_bytes=10).run_sync()


def test_data_that_ends_too_early_is_a_failure_that_says_so() -> None:
    with pytest.raises(ValueError, match="ends in the middle"):
        decompress(Flow.of(gzip.compress(TEXT)[:-1]), "gzip", max_bytes=len(TEXT)).run_sync()


def test_an_encoding_that_is_not_known_is_refused_at_once() -> None:
    body: Any = Flow.of(b"")
    with pytest.raises(ValueError, match="known are deflate, gzip and identity"):
        decompress(body, "br", max_bytes=1)
