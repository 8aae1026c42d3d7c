"""Files as flows: chunks and lines, compressed or not, what is written, and what comes to the end."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import lzma
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import CapacityLimiter

from reactive_aio import Flow
from reactive_aio.io import TooLargeError, _files, read_chunks, read_lines, tail, write_file
from tests.subscribers import idle

LINES = [f"line {n}" for n in range(20_000)]
TEXT = "\n".join(LINES).encode()


async def until(found: Callable[[], bool]) -> None:
    """Wait for what a thread does."""
    async with asyncio.timeout(60):
        while not found():
            await asyncio.sleep(0.001)


async def test_chunks_and_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT)

    chunks = await read_chunks(path, size=1000).to_list()

    assert TEXT == b"".join(chunks)
    assert {1000} == {len(chunk) for chunk in chunks[:-1]}
    assert LINES == await read_lines(path).to_list()


@pytest.mark.parametrize(
    ("name", "compress"), [("gz", partial(gzip.compress, mtime=0)), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
async def test_what_is_compressed_is_known_by_its_name_or_said(
    name: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    named, other = tmp_path / f"text.{name}", tmp_path / "text"
    for path in (named, other):
        path.write_bytes(compress(TEXT))
    kinds: dict[str, Any] = {"gz": "gzip"}

    assert LINES == await read_lines(named).to_list()
    assert LINES == await read_lines(other, compression=kinds.get(name, name)).to_list()
    assert compress(TEXT) == b"".join(await read_chunks(named, compression="none").to_list())


async def test_what_is_cut_off_fails_behind_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(TEXT)[:-20])

    with pytest.raises(EOFError):
        await read_lines(path).to_list()


async def test_a_small_file_that_stands_for_a_large_one_is_refused_where_it_goes_too_far(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    got: list[int] = []

    with pytest.raises(TooLargeError, match="more than the 1000000 bytes"):
        await read_chunks(path, max_bytes=1_000_000).for_each(lambda chunk: got.append(len(chunk)))
    assert sum(got) <= 1_000_000


async def test_a_line_that_is_too_long_and_what_is_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"x" * 101)
    with pytest.raises(TooLargeError):
        await read_lines(path, max_line=100).to_list()

    path.write_bytes(b"\xff\n")
    with pytest.raises(UnicodeDecodeError):
        await read_lines(path).to_list()
    assert ["ÿ"] == await read_lines(path, encoding="latin-1").to_list()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "shift_jis", "iso2022_jp"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_text_is_cut_and_decoded_line_by_line_whatever_the_chunks_are(
    encoding: str, end: str, tmp_path: Path
) -> None:
    lines = ["one", "", "zwei", "drei" * 90_000, "four" if encoding == "latin-1" else "四", "last"]
    path = tmp_path / "text"
    path.write_bytes(b"".join((line + end).encode(encoding) for line in lines[:-1]) + lines[-1].encode(encoding))

    assert lines == await read_lines(path, encoding=encoding).to_list()


async def test_the_lines_before_one_that_is_too_long_or_no_text_are_given(tmp_path: Path) -> None:
    path, got = tmp_path / "text", list[str]()

    path.write_bytes(b"one\ntwo\n\xff\nfour\n")
    with pytest.raises(UnicodeDecodeError):
        await read_lines(path).for_each(got.append)
    path.write_bytes(b"three\nfour\n" + b"x" * 101 + b"\nsix\n")
    with pytest.raises(TooLargeError):
        await read_lines(path, max_line=100).for_each(got.append)

    assert ["one", "two", "three", "four"] == got


async def test_nothing_is_read_that_is_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    async with read_chunks(path, size=10).open() as chunks:
        assert TEXT[:10] == await anext(chunks)
        assert TEXT[10:20] == await anext(chunks)
        await idle(20)
        path.write_bytes(b"y" * 40)
        assert b"y" * 10 == await anext(chunks), "the third chunk was read ahead"


async def test_a_file_is_closed_when_its_flow_is_left(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    before = len(os.listdir("/dev/fd"))

    assert LINES[:3] == await read_lines(path).take(3).to_list()
    assert before == len(os.listdir("/dev/fd"))


async def test_threads_are_those_that_the_limiter_allows(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    limiter = CapacityLimiter(1)
    async with limiter:
        reading = asyncio.create_task(read_lines(path, limiter=limiter).count())
        await until(lambda: limiter.statistics().tasks_waiting == 1)
    assert len(LINES) == await reading


async def test_a_file_that_is_not_there_fails_the_flow(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await read_lines(tmp_path / "nothing").to_list()


# -- writing


async def test_what_is_written_is_what_came(tmp_path: Path) -> None:
    path = tmp_path / "text"
    await write_file(path, Flow.range(10_000).map(lambda n: b"%d\n" % n))
    await write_file(path, Flow.of(b"end"), append=True)

    assert b"".join(b"%d\n" % n for n in range(10_000)) + b"end" == path.read_bytes()


@pytest.mark.parametrize("ending", ["fails", "is cancelled"])
async def test_a_file_that_is_replaced_at_once_is_the_old_one_until_then(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"old")
    given = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"new"
        given.set()
        if ending == "fails":
            raise OSError("down")
        await asyncio.Event().wait()

    writing = asyncio.create_task(write_file(path, Flow.from_async_iterable(chunks), atomic=True, max_batch=1))
    await given.wait()
    assert b"old" == path.read_bytes()
    if ending == "is cancelled":
        writing.cancel()
    with pytest.raises(asyncio.CancelledError if ending == "is cancelled" else OSError):
        await writing

    assert b"old" == path.read_bytes()
    assert ["text"] == os.listdir(tmp_path)

    await write_file(path, Flow.of(b"new"), atomic=True)
    assert b"new" == path.read_bytes()
    assert ["text"] == os.listdir(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
async def test_a_file_that_is_replaced_at_once_keeps_its_permissions(tmp_path: Path) -> None:
    path, seen = tmp_path / "secret", set[int]()
    path.touch(mode=0o600)

    def look(_: object) -> None:
        seen.update(each.stat().st_mode & 0o777 for each in tmp_path.iterdir())

    await write_file(path, Flow.of(b"a", b"b").do_on_next(look), atomic=True)
    look(None)
    assert {0o600} == seen


async def test_a_writer_that_is_slow_stops_the_source(tmp_path: Path) -> None:
    """The writer has no thread: no more is made than one batch."""
    made: list[bytes] = []

    async def chunks() -> AsyncIterator[bytes]:
        while True:
            made.append(b"x")
            yield b"x"

    limiter = CapacityLimiter(1)
    writing = asyncio.create_task(
        write_file(tmp_path / "text", Flow.from_async_iterable(chunks), max_batch=8, limiter=limiter)
    )
    await until(lambda: len(made) > 100)
    async with limiter:
        await until(lambda: limiter.statistics().tasks_waiting == 1)
        await idle(20)
        before = len(made)
        await idle(200)
        assert before == len(made)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing


# -- what comes to the end


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[None]]:
    """Waits until `tail` has looked at the file once more."""
    following, looks = tail.__globals__["_Following"], 0
    look = following._look

    def counted(self: Any) -> bytes:
        nonlocal looks
        try:
            return bytes(look(self))
        finally:
            looks += 1

    monkeypatch.setattr(following, "_look", counted)

    async def once_more() -> None:
        before = looks
        await until(lambda: looks >= before + 3)  # the first may have begun before, and calls itself once at most

    return once_more


async def test_lines_that_come_are_followed_over_rotation_and_truncation(
    tmp_path: Path, looked: Callable[[], Awaitable[None]]
) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    seen: list[str] = []
    following = asyncio.create_task(tail(path, interval=0.001).for_each(seen.append))

    async def write(text: str, *expected: str, mode: str = "a") -> None:
        with path.open(mode) as file:
            file.write(text)
        await until(lambda: seen == list(expected))

    await looked()  # it has begun at the end
    await write("one\ntwo\nthr", "one", "two")
    await write("ee\n", "one", "two", "three")
    path.rename(tmp_path / "log.1")
    await write("four\n", "one", "two", "three", "four")
    await write("5\n", "one", "two", "three", "four", "5", mode="w")
    path.unlink()
    await looked()
    await write("six\n", "one", "two", "three", "four", "5", "six")

    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_a_file_is_waited_for_and_read_from_its_beginning(
    tmp_path: Path, looked: Callable[[], Awaitable[None]]
) -> None:
    path = tmp_path / "log"
    taking = asyncio.create_task(tail(path, interval=0.001).take(2).to_list())
    await looked()
    path.write_text("one\ntwo\n")

    assert ["one", "two"] == await taking
    assert ["one"] == await tail(path, from_start=True, interval=0.001).take(1).to_list()


async def test_a_read_is_waited_for_before_the_file_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is not closed while a thread reads it, and a cancel does not return before the read is over."""
    path, reading, go_on = tmp_path / "text", threading.Event(), threading.Event()
    path.write_bytes(TEXT)
    log: list[str] = []

    class Slow:
        def read(self, _: int) -> bytes:
            reading.set()
            go_on.wait(60)
            log.append("read")
            return b"x"

        def close(self) -> None:
            log.append("closed")

    monkeypatch.setitem(read_chunks.__globals__["OPENERS"], "none", lambda _: Slow())
    task = asyncio.create_task(read_chunks(path).to_list())
    await until(reading.is_set)
    task.cancel()
    await idle(20)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["read", "closed"] == log


async def test_a_file_is_not_closed_under_a_read_when_all_tasks_are_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    calls = list[str]()

    class Told:
        def __init__(self) -> None:
            self.file = path.open("rb", buffering=0)

        def read(self, size: int) -> bytes:
            calls.append("read")
            chunk = self.file.read(size)
            calls.append("has read")
            return chunk or b""

        def close(self) -> None:
            calls.append("closed")
            self.file.close()

    reading = asyncio.create_task(read_with(Told, path))
    await until(lambda: calls == ["read"])
    for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as `asyncio.run` does when it ends
        task.cancel()
    await idle()
    os.write(writer, b"x")
    with pytest.raises(asyncio.CancelledError):
        await reading
    os.close(writer)

    assert ["read", "has read", "closed"] == calls


async def read_with(opener: Callable[[], Any], path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_files.OPENERS, "none", lambda _: opener())
        flow = read_chunks(path)
    await flow.drain()
