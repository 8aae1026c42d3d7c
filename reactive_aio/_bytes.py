"""Bytes as flows: cut into lines, and decompressed, with limits on what comes out."""

from __future__ import annotations

import json
import zlib
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ._flow.flow import Flow
from ._fusion import Stage, Transform
from .operators._fluent import check_count, check_flow, check_function

T = TypeVar("T")
L = TypeVar("L")

PIECE: Final = 65_536
"""Bytes of decompressed data that are given at a time, at most."""
CUT_ANYWHERE: Final = {"utf-8", "ascii", "iso8859-1"}
"""The encodings in which a line means the same whatever is before it."""
ENCODINGS: Final = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class TooLargeError(ValueError):
    """Data goes beyond a limit that was set: a line, a body, what is decompressed. A web service answers with the status 413."""


def split_lines(body: Flow[bytes], *, max_line: int = 1_048_576) -> Flow[bytes]:
    r"""Split bytes into lines, without the line breaks ``\n`` and ``\r\n``.

    Demand: one chunk is asked for when the lines of the one before have been emitted. One chunk and the beginning of a
    line are kept.
    Errors: TooLargeError for a line of more than ``max_line`` bytes. When the body fails, the beginning of a line is dropped.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import split_lines
    >>> split_lines(Flow.of(b"one\ntw", b"o\r\n\nlast")).run_sync()
    [b'one', b'two', b'', b'last']
    """
    check_flow("split_lines", body)
    check_count("split_lines", "max_line", max_line, 1)
    return body.then(SplitLines(max_line))


def json_lines(body: Flow[bytes], *, max_line: int = 1_048_576, decode: Callable[[bytes], T] = json.loads) -> Flow[T]:
    r"""Read lines of JSON (NDJSON). Empty lines are left out.

    ``decode`` makes an element of a line. `json.loads` does.
    Demand: that of `split_lines`.
    Errors: those of `split_lines`, and what ``decode`` raises, with the number of the line in the note.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import json_lines
    >>> json_lines(Flow.of(b'{"n": 1}\n\n[2', b']')).run_sync()
    [{'n': 1}, [2]]
    """
    check_flow("json_lines", body)
    check_function("json_lines", decode, "decode in map_async() behind split_lines()")
    return split_lines(body, max_line=max_line).filter(bytes.strip).map(decode)


def decompress(body: Flow[bytes], encoding: str, *, max_bytes: int) -> Flow[bytes]:
    """Decompress bytes whose Content-Encoding is "gzip" or "deflate". "identity" and "" leave them as they are.

    Demand: one chunk is asked for when what the one before has given has been emitted, in pieces of at most 64 KiB. Nothing is
    decompressed ahead, so that a small body that stands for a large one costs no memory.
    Errors: TooLargeError when it gives more than ``max_bytes`` bytes. ValueError for another encoding, when it is
    called. ValueError too for data that is not so encoded or ends too early.

    >>> import gzip
    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import decompress
    >>> decompress(Flow.of(gzip.compress(b"hello")), "gzip", max_bytes=1000).run_sync()
    [b'hello']
    """
    check_flow("decompress", body)
    check_count("decompress", "max_bytes", max_bytes, 1)
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in ENCODINGS:
        raise ValueError(f"decompress(encoding={encoding!r}): known are {', '.join(sorted(ENCODINGS))} and identity")
    return body.then(Decompress(name, max_bytes))


# -- stages


class OneChunkAtATime(Transform[bytes, L]):
    """A reader of chunks that may make many elements of one. It asks for the next chunk when it has given them."""

    __slots__ = ()

    def demand(self, n: int) -> int:
        """Ask for one chunk at most."""
        return min(n, 1)


@frozen
class SplitLines(Stage[bytes, bytes]):
    """Stage of `split_lines`."""

    max_line: int

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, bytes]:
        """Begin with no line."""
        return Splitting(Cutting(self.max_line))


@define
class Cutting:
    """The line that one subscription has the beginning of."""

    max_line: int
    parts: list[bytes] = field(init=False, factory=list[bytes])
    length: int = field(init=False, default=0)

    def blocks(self, items: Iterator[bytes]) -> Iterator[bytes]:
        """Give all lines that have ended, one or several at a time, with breaks between them and none behind."""
        for chunk in items:
            data = bytes(chunk)
            start, end = data.find(b"\n"), data.rfind(b"\n")
            if start < 0:
                self._hold(data)
                continue
            self._hold(data[:start])
            yield self.rest()
            # Most lines begin and end in one chunk: these need no looking at one by one.
            if start < end:
                yield from self._limited(data[start + 1 : end])
            self._hold(data[end + 1 :])

    def _limited(self, block: bytes) -> Iterator[bytes]:
        if len(block) <= self.max_line:
            yield block
            return
        for line in block.split(b"\n"):
            self._hold(line)
            yield self.rest()

    def _hold(self, part: bytes) -> None:
        self.length += len(part)
        if self.length > self.max_line:
            raise TooLargeError(f"a line has more than the {self.max_line} bytes that are allowed")
        if part:
            self.parts.append(part)

    def rest(self) -> bytes:
        """Give the line, and begin another."""
        parts, self.parts, self.length = self.parts, [], 0
        return b"".join(parts)


def lines_of(block: bytes) -> list[bytes]:
    """Cut a block into lines, without the line breaks."""
    lines = block.split(b"\n")
    return [line.removesuffix(b"\r") for line in lines] if b"\r" in block else lines


@define
class Splitting(OneChunkAtATime[bytes]):
    """The lines of one subscription."""

    cutting: Cutting

    def apply(self, items: Iterator[bytes]) -> Iterator[bytes]:
        """Give each line that has ended."""
        for block in self.cutting.blocks(items):
            yield from lines_of(block)

    def finish(self) -> Iterable[bytes]:
        """Give the last line, if nothing ends it."""
        return lines_of(self.cutting.rest()) if self.cutting.parts else ()


@frozen
class SplitText(Stage[bytes, str]):
    """Splits bytes into lines of text; an encoding in which a line break is one byte."""

    encoding: str
    max_line: int

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, str]:
        """Begin with no line."""
        return Decoding(Cutting(self.max_line), self.encoding, lookup(self.encoding).name in CUT_ANYWHERE)


@define
class Decoding(OneChunkAtATime[str]):
    """The lines of text of one subscription."""

    cutting: Cutting
    encoding: str
    at_once: bool
    """Whether several lines may be decoded at a time."""

    def apply(self, items: Iterator[bytes]) -> Iterator[str]:
        """Give each line that has ended."""
        for block in self.cutting.blocks(items):
            yield from self._decoded(block)

    def _decoded(self, block: bytes) -> Iterable[str]:
        if self.at_once and b"\r" not in block:
            with suppress(UnicodeDecodeError):  # the lines before the one that fails are given below
                return block.decode(self.encoding).split("\n")
        return (line.decode(self.encoding) for line in lines_of(block))

    def finish(self) -> Iterable[str]:
        """Give the last line, if nothing ends it."""
        return self._decoded(self.cutting.rest()) if self.cutting.parts else ()


@frozen
class Decompress(Stage[bytes, bytes]):
    """Stage of `decompress`."""

    encoding: str
    max_bytes: int

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, bytes]:
        """Begin with nothing."""
        return Decompressing(self.encoding, self.max_bytes)


@define
class Decompressing(OneChunkAtATime[bytes]):
    """Where the decompression of one subscription is."""

    encoding: str
    max_bytes: int
    given: int = field(init=False, default=0)
    engine: Any = field(init=False, default=None)

    def apply(self, items: Iterator[bytes]) -> Iterator[bytes]:
        """Give what the chunks stand for, piece by piece."""
        for chunk in items:
            rest = bytes(chunk)
            while rest:
                if self.engine is None:
                    self.engine = zlib.decompressobj(ENCODINGS[self.encoding])
                piece = self._piece(rest)
                # A gzip file may be several, one behind the other.
                rest = self.engine.unused_data if self.engine.eof else self.engine.unconsumed_tail
                if self.engine.eof:
                    self.engine = None
                if piece:
                    yield piece

    def _piece(self, data: bytes) -> bytes:
        try:
            piece: bytes = self.engine.decompress(data, PIECE)
        except zlib.error as error:
            raise ValueError(f"the body is not encoded as {self.encoding}") from error
        self.given += len(piece)
        if self.given > self.max_bytes:
            raise TooLargeError(f"the body has more than the {self.max_bytes} decompressed bytes that are allowed")
        return piece

    def finish(self) -> Iterable[bytes]:
        """Refuse a body that ends too early."""
        if self.engine is not None:
            raise ValueError(f"the body ends in the middle of its encoding, which is {self.encoding}")
        return ()
