"""Files as flows, and flows into files, on threads. Each call of a thread handles enough data to be worth it."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import lzma
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from os import PathLike, fspath
from typing import IO, Any, Final, Literal

from anyio import CapacityLimiter
from attrs import define, field

from .._bytes import SplitText, TooLargeError, made_by_chunk
from .._connector import polled
from .._flow.flow import Flow
from ..operators._fluent import check_count, check_flag, check_flow, check_seconds
from ._threads import in_thread

Path = str | PathLike[str]
Compression = Literal["infer", "none", "gzip", "bz2", "xz"]

OPENERS: Final[dict[str, Callable[[str], Any]]] = {
    "none": partial(open, mode="rb", buffering=0),
    "gzip": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
}
SUFFIXES: Final = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
CHUNK: Final = 262_144
"""The bytes that are read at a time."""


def read_chunks(
    path: Path,
    *,
    size: int = CHUNK,
    compression: Compression = "infer",
    max_bytes: int | None = None,
    limiter: CapacityLimiter | None = None,
) -> Flow[bytes]:
    """Read a file in chunks of at most ``size`` bytes.

    ``compression`` is "gzip", "bz2" or "xz", or "infer", which takes it from ``.gz``, ``.bz2`` or ``.xz`` at the end of
    the name. Set ``max_bytes`` for compressed files from others. ``limiter`` bounds the number of threads, by default
    to the 40 of anyio.
    Demand: one chunk is read when it is requested, in one call on a thread, and none ahead.
    Errors: OSError of the file. TooLargeError after ``max_bytes`` bytes, counted when decompressed. EOFError, OSError,
    zlib.error or lzma.LZMAError for data that is cut off or compressed in another way. A ``size`` below 1 and another
    ``compression`` are refused with ValueError.
    Cancel: waits for the current read, then the file is closed.
    (anyio: ``open_file``.)

    >>> import tempfile
    >>> from reactive_aio import Flow
    >>> from reactive_aio.io import read_chunks, write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/notes.txt"
    ...     Flow.of(b"do", b" re").run_sync(lambda flow: write_file(path, flow))
    ...     read_chunks(path, size=3).run_sync()
    [b'do ', b're']
    """
    return _chunks("read_chunks", path, size, compression, max_bytes, limiter)


def _chunks(
    called: str,
    path: Path,
    size: int,
    compression: Compression,
    max_bytes: int | None,
    limiter: CapacityLimiter | None,
) -> Flow[bytes]:
    """Read a file in chunks, for the function that is ``called``."""
    check_count(called, "size", size, 1)
    if max_bytes is not None:
        check_count(called, "max_bytes", max_bytes, 0)
    name = (
        SUFFIXES.get(os.path.splitext(str(fspath(path)))[1].lower(), "none") if compression == "infer" else compression
    )
    if name not in OPENERS:
        raise ValueError(f"{called}(compression={compression!r}): known are infer, {', '.join(OPENERS)}")
    handle = partial(_Reading, partial(OPENERS[name], fspath(path)), limiter, size, max_bytes)
    return polled(called, fspath(path), lambda: _opened(handle()))


def read_lines(
    path: Path,
    *,
    encoding: str = "utf-8",
    max_line: int = 1_048_576,
    compression: Compression = "infer",
    max_bytes: int | None = None,
    limiter: CapacityLimiter | None = None,
) -> Flow[str]:
    r"""Read the lines of a file, without the line breaks ``\n`` and ``\r\n``.

    Demand: 256 KiB are read at a time, in one call on a thread, when the lines of the ones before have been emitted.
    Errors: TooLargeError for a line of more than ``max_line`` bytes, UnicodeDecodeError for bytes that are not in
    ``encoding``, and the errors of `read_chunks`. An encoding without a line break of one byte, such as UTF-16, is
    refused with ValueError. Cancel and the other arguments are those of `read_chunks`.
    (Python: ``for line in file``.)

    >>> import tempfile
    >>> from reactive_aio import Flow
    >>> from reactive_aio.io import read_lines, write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/notes.txt"
    ...     Flow.of(b"do\nre", b"\nmi").run_sync(lambda flow: write_file(path, flow))
    ...     read_lines(path).run_sync()
    ['do', 're', 'mi']
    """
    check_text("read_lines", encoding, max_line)
    chunks = _chunks("read_lines", path, CHUNK, compression, max_bytes, limiter)
    return made_by_chunk(chunks, SplitText(encoding, max_line))


def tail(
    path: Path,
    *,
    encoding: str = "utf-8",
    from_start: bool = False,
    interval: float = 0.25,
    max_line: int = 1_048_576,
    limiter: CapacityLimiter | None = None,
) -> Flow[str]:
    """Emit the lines that are appended to a file, as ``tail -F`` does. It never completes.

    It begins at the end of the file, or with ``from_start`` at its beginning. It waits for a missing file, and reads it
    from its beginning. When another file has taken its place (rotation), the old one is read to its end first. When it
    has become shorter (truncation), it is read from its beginning. Data that was written and cut off between two looks
    is lost. A line that is unfinished then ends there.
    Demand: the file is read when a line is requested, up to 64 KiB at a time. While there is no line, it is checked
    every ``interval`` seconds. A file is its own buffer, so a reader may stop for any time. Of several rotations
    meanwhile it sees the last.
    Errors: those of `read_lines`. An ``interval`` that is not above 0 is refused with ValueError.
    Cancel: at once, or after the current read. The file is closed.
    (coreutils: ``tail -F``.)

    >>> from reactive_aio.io import tail
    >>> errors = tail("/var/log/service.log").filter(lambda line: "ERROR" in line)
    """
    check_text("tail", encoding, max_line)
    check_flag("tail", "from_start", from_start)
    check_seconds("tail", "interval", interval, above=True)
    chunks = polled("tail", fspath(path), lambda: _opened(_Following(fspath(path), from_start, interval, limiter)))
    return made_by_chunk(chunks, SplitText(encoding, max_line))


async def write_file(
    path: Path,
    flow: Flow[bytes],
    *,
    append: bool = False,
    atomic: bool = False,
    max_batch: int = 256,
    seconds: float = 0.5,
    limiter: CapacityLimiter | None = None,
) -> None:
    """Write the chunks of a flow to a file. Replace the file, or append to it with ``append``.

    With ``atomic`` the chunks go to a temporary file beside it, which takes its name when all of them are on the disk.
    It has the permissions of the file that it replaces. A symbolic link is replaced itself.
    A failure or a cancel leaves the file unchanged. It can't be used with ``append``.
    Demand: up to ``max_batch`` chunks, written in one call on a thread, and at the latest ``seconds`` after the first
    of them came. No more are requested meanwhile.
    Errors: OSError of the file, and those of the flow. A ``max_batch`` below 1, ``seconds`` not above 0 and ``atomic`` with ``append`` are refused with
    ValueError.
    Cancel: waits for the current write, then the file is closed.
    (anyio: ``open_file`` and ``write``.)

    An example is at `read_lines`.
    """
    check_flow("write_file", flow)
    check_flag("write_file", "append", append)
    check_flag("write_file", "atomic", atomic)
    check_count("write_file", "max_batch", max_batch, 1)
    check_seconds("write_file", "seconds", seconds, above=True)
    if atomic and append:
        raise ValueError(
            "write_file(append=True, atomic=True): choose one of the two, because an atomic write replaces the file"
        )
    final = fspath(path)
    temporary = f"{final}.{os.urandom(8).hex()}.tmp" if atomic else final
    mode: Literal["ab", "wb"] = "ab" if append else "wb"
    handle = _Handle(lambda: _new_beside(final, temporary) if atomic else open(final, mode), limiter)  # noqa: SIM115 - the handle closes it

    async def write(chunks: list[bytes]) -> None:
        await handle.call(lambda: handle.file.writelines(chunks) or handle.file.flush())

    try:
        async with handle:
            await flow.for_each_batch(write, max_batch, seconds)
            if atomic:
                await handle.call(lambda: os.fsync(handle.file.fileno()))
        if atomic:
            await in_thread(lambda: os.replace(temporary, final), limiter)
    finally:
        if atomic:
            await in_thread(lambda: _unlink(temporary), limiter)


def _new_beside(final: str, temporary: str) -> IO[bytes]:
    """Open a new file, which nobody may read who may not read the one that it will replace."""
    file = open(temporary, "xb")  # noqa: SIM115 - the handle closes it
    with suppress(FileNotFoundError):
        shutil.copymode(final, temporary)
    return file


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def check_text(method: str, encoding: str, max_line: int) -> None:
    """Raise unless the encoding can be cut at line breaks. Raise LookupError if it does not exist."""
    check_count(method, "max_line", max_line, 1)
    if "\n".encode(encoding) != b"\n":
        raise ValueError(
            f"{method}(encoding={encoding!r}): use an encoding in which a line break is the byte 10, such as utf-8"
        )


# -- what is open


@asynccontextmanager
async def _opened(handle: Any) -> AsyncGenerator[Any, None]:
    async with handle:
        yield handle


@define(eq=False)
class _Handle:
    """A file that is opened, used and closed on threads."""

    open: Callable[[], IO[bytes]]
    limiter: CapacityLimiter | None
    file: Any = field(init=False, default=None)

    async def __aenter__(self) -> _Handle:
        try:
            await self.call(self._open)
        except BaseException:
            await self.call(self._close)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.call(self._close)

    async def call(self, fn: Callable[[], Any]) -> Any:
        """Call on a thread."""
        return await in_thread(fn, self.limiter)

    def _open(self) -> None:
        self.file = self.open()

    def _close(self) -> None:
        if self.file is not None:
            self.file.close()

    async def idle(self) -> None:
        """Nothing: a file needs no heartbeat."""

    async def close(self) -> None:
        """Nothing: the context manager closes it."""


@define(eq=False)
class _Reading(_Handle):
    """The Poll of `read_chunks`."""

    size: int
    max_bytes: int | None
    given: int = field(init=False, default=0)

    async def fetch(self, _: int) -> Sequence[bytes]:
        """Read one chunk."""
        chunk: bytes = await self.call(lambda: self.file.read(self.size))
        if not chunk:
            raise StopAsyncIteration
        self.given += len(chunk)
        if self.max_bytes is not None and self.given > self.max_bytes:
            raise TooLargeError(f"the file has more than the {self.max_bytes} bytes that are allowed")
        return [chunk]


@define(eq=False)
class _Following:
    """The Poll of `tail`."""

    path: str
    from_start: bool
    interval: float
    limiter: CapacityLimiter | None
    file: Any = field(init=False, default=None)
    begun: bool = field(init=False, default=False)
    """Whether the last chunk ended within a line."""

    async def __aenter__(self) -> _Following:
        return self

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self._close, self.limiter)

    async def fetch(self, _: int) -> Sequence[bytes]:
        """Read once, and wait for a while if there is nothing."""
        chunk = await in_thread(self._look, self.limiter)
        if not chunk:
            await asyncio.sleep(self.interval)
            return ()
        self.begun = not chunk.endswith(b"\n")
        return [chunk]

    async def idle(self) -> None:
        """Nothing: a file needs no heartbeat."""

    async def close(self) -> None:
        """Nothing: the context manager closes it."""

    def _look(self) -> bytes:
        if self.file is None and not self._open():
            return b""
        if chunk := self._more():
            return chunk
        file: Any = self.file
        there = _identity(self.path)
        at = os.fstat(file.fileno())
        if there is not None and there != (at.st_dev, at.st_ino):
            if chunk := self._more():  # which came before the rotation, and behind the look
                return chunk
            self._close()
        elif at.st_size < file.tell():
            file.seek(0)
        else:
            return b""
        return b"\n" if self.begun else self._look()

    def _more(self) -> bytes:
        return bytes(self.file.read(65_536))

    def _open(self) -> bool:
        try:
            self.file = open(self.path, "rb", buffering=0)  # noqa: SIM115 - see _close
        except FileNotFoundError:
            self.from_start = True
            return False
        if not self.from_start:
            self.file.seek(0, os.SEEK_END)
        self.from_start = True
        return True

    def _close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
