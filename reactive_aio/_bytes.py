"""Bytes as flows: cut into lines, and decompressed, with limits on the output."""

from __future__ import annotations

import json
import zlib
from abc import ABC, abstractmethod
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from operator import length_hint
from typing import Any, Final, Generic, TypeVar

from attrs import define, field, frozen

from ._core.budgets import Stride
from ._core.containers import new_list
from ._core.missing import NOTHING
from ._flow.flow import Flow
from ._fusion import Pace, Stage, Template, Transform, sized
from .operators._fluent import check_count, check_flow, check_function

T = TypeVar("T")
L = TypeVar("L")

LONGEST: Final = 64
"""Elements between two looks at the clock, at most."""
PIECE: Final = 65_536
"""The most bytes of decompressed data that are emitted at a time."""
CUT_ANYWHERE: Final = {"utf-8", "ascii", "iso8859-1"}
"""The encodings in which a line does not depend on the text before it."""
ENCODINGS: Final = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class TooLargeError(ValueError):
    """Data exceeds a limit: a line, a body, or decompressed data. A web service answers with the status 413."""


def split_lines(body: Flow[bytes], *, max_line: int = 1_048_576) -> Flow[bytes]:
    r"""Split bytes into lines, without the line breaks ``\n`` and ``\r\n``.

    Demand: one chunk is requested when the lines of the one before have been emitted. One chunk and the beginning of a
    line are kept.
    Errors: TooLargeError for a line of more than ``max_line`` bytes, without its line break. When the body fails, the beginning of a line is dropped.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import split_lines
    >>> split_lines(Flow.of(b"one\ntw", b"o\r\n\nlast")).run_sync()
    [b'one', b'two', b'', b'last']
    """
    check_flow("split_lines", body)
    check_count("split_lines", "max_line", max_line, 1)
    return made_by_chunk(body, SplitLines(max_line))


def json_lines(body: Flow[bytes], *, max_line: int = 1_048_576, decode: Callable[[bytes], T] = json.loads) -> Flow[T]:
    r"""Read lines of JSON (NDJSON). Empty lines are left out.

    ``decode`` turns a line into an element, as `json.loads` does.
    Demand: that of `split_lines`.
    Errors: those of `split_lines`, and exceptions of ``decode``, with the number of the line in the note.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import json_lines
    >>> json_lines(Flow.of(b'{"n": 1}\n\n[2', b']')).run_sync()
    [{'n': 1}, [2]]
    """
    check_flow("json_lines", body)
    check_function("json_lines", decode, "decode in map_async() behind split_lines()")
    return split_lines(body, max_line=max_line).filter(bytes.strip).map(decode)


def decompress(body: Flow[bytes], encoding: str, *, max_bytes: int) -> Flow[bytes]:
    """Decompress bytes whose Content-Encoding is "gzip" or "deflate". "identity" and "" leave them unchanged.

    Demand: one chunk is requested when the output of the one before has been emitted, in pieces of at most 64 KiB.
    Nothing is decompressed ahead, so a small body with a large content costs no memory.
    Errors: TooLargeError for an output of more than ``max_bytes`` bytes. ValueError at the call for another encoding.
    ValueError too for data with another encoding, or that ends too early.

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
    return made_by_chunk(body, Decompress(name, max_bytes))


# -- stages


class Maker(ABC, Generic[L]):
    """Makes elements of the chunks of one subscription."""

    __slots__ = ()

    @abstractmethod
    def of(self, chunk: bytes) -> Iterable[L]:
        """Return the elements that end in a chunk. They are made on demand.

        A generator that works on for long without an element yields `NOTHING` in between, so that the event loop has its turns.
        """

    @abstractmethod
    def last(self) -> Iterable[L]:
        """Return the elements that are left after the last chunk."""

    @property
    @abstractmethod
    def amid(self) -> bool:
        """Whether the last chunk has left something."""


@define
class ByChunk(Transform[bytes, list[L]]):
    """Returns the elements of a maker, some at a time. It requests a chunk when the one before has been emitted.

    A chunk may contain thousands of elements. So the event loop has its turns also in the middle of a chunk.
    """

    maker: Maker[L]
    inner: Iterator[L] | None = field(init=False, default=None)
    """The rest of the latest chunk."""

    def apply(self, items: Iterator[bytes]) -> Iterator[list[L]]:
        """Read all chunks to their ends."""
        return self.paced(items, Pace())

    def paced(self, items: Iterator[bytes], pace: Pace) -> Iterator[list[L]]:
        """Go on with the current chunk, then with the next ones, until the time is up."""
        inner, stride = self.inner, Stride(LONGEST)
        stride.begin()
        while True:
            if inner is None:
                chunk = next(items, None)
                if chunk is None:
                    return
                self.inner = inner = iter(self.maker.of(chunk))
            # One by one where it may fail: the elements before come first.
            while some := [*islice(inner, stride.length if sized(inner) else 1)]:
                yield [] if some[0] is NOTHING else some
                if stride.is_over(pace.deadline) and pace.resumes:
                    return
            self.inner = inner = None

    def demand(self, n: int) -> int:
        """Request at most one chunk, and none while there is more of the latest."""
        return 0 if self.owing else min(n, 1)

    def finish(self) -> Iterable[list[L]]:
        """Yield the rest of a chunk, and then what follows it."""
        for element in self.inner or ():
            yield [] if element is NOTHING else [element]
        self.inner = None
        for element in self.maker.last():
            yield [element]

    @property
    def pending(self) -> bool:
        """Return whether there may be more of a chunk, or something after it."""
        return self.owing or self.maker.amid

    @property
    def owing(self) -> bool:
        """Return whether there may be more of a chunk. The beginning of an element is dropped if the chunks fail."""
        inner = self.inner
        return inner is not None and not (sized(inner) and not length_hint(inner))


@frozen
class Each(Stage[list[L], L]):
    """Returns the elements of lists. `ByChunk` makes the lists, so that each takes no longer than it may."""

    template = Template("""
        for item in item:
            $rest
    """)


def made_by_chunk(body: Flow[bytes], stage: Stage[bytes, list[L]]) -> Flow[L]:
    """Continue a flow by a stage whose transform is a `ByChunk`."""
    return body.then(stage).then(Each[L]())


@frozen
class SplitLines(Stage[bytes, list[bytes]]):
    """Stage of `split_lines`."""

    max_line: int

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, list[bytes]]:
        """Begin with no line."""
        return ByChunk(Splitting(self.max_line))


@define
class Cutting(Maker[L]):
    """Makes elements of lines. It keeps an unfinished line."""

    max_line: int
    parts: list[bytes] = field(init=False, factory=new_list)
    length: int = field(init=False, default=0)

    @abstractmethod
    def lines(self, block: bytes) -> Iterable[L]:
        """Return the elements of lines that have ended, with breaks between them and none after the last."""

    def of(self, chunk: bytes) -> Iterable[L]:
        """Return the elements of the lines that end in a chunk."""
        data = bytes(chunk)
        end = data.rfind(b"\n")
        if end < 0:
            self._hold(data)
            return ()
        if self.length + len(data) > self.max_line:
            return chain.from_iterable(map(self.lines, self._one_by_one(data, end)))
        block = self._rest() + data[:end]
        self._hold(data[end + 1 :])
        return self.lines(block)

    def last(self) -> Iterable[L]:
        """Return the last line, if nothing ends it. A return at its end belongs to it, since no line feed follows."""
        if not self.parts:
            return ()
        self._check(self.length)
        rest = self._rest()
        return self.lines(rest + b"\r" if rest.endswith(b"\r") else rest)

    @property
    def amid(self) -> bool:
        """Whether a line has begun."""
        return bool(self.parts)

    def _one_by_one(self, data: bytes, end: int) -> Iterator[bytes]:
        """Yield the lines that end in a chunk, until one is too long."""
        for line in data[:end].split(b"\n"):
            self._hold(line)
            yield self._rest()
        self._hold(data[end + 1 :])

    def _hold(self, part: bytes) -> None:
        self.length += len(part)
        if part:
            self.parts.append(part)
        if self.length > self.max_line:
            # A return may be of the line break, whose line feed comes next.
            self._check(self.length - self.parts[-1].endswith(b"\r"))

    def _check(self, length: int) -> None:
        if length > self.max_line:
            raise TooLargeError(f"a line has more than the {self.max_line} bytes that are allowed")

    def _rest(self) -> bytes:
        """Return the line that has begun, and begin another one."""
        parts, self.parts, self.length = self.parts, [], 0
        return b"".join(parts)


def lines_of(block: bytes) -> list[bytes]:
    """Cut a block into lines, without the line breaks."""
    lines = block.split(b"\n")
    return [line.removesuffix(b"\r") for line in lines] if b"\r" in block else lines


@define
class Splitting(Cutting[bytes]):
    """Makes lines of chunks."""

    def lines(self, block: bytes) -> Iterable[bytes]:
        """Return the lines."""
        return lines_of(block)


@frozen
class SplitText(Stage[bytes, list[str]]):
    """Splits bytes into lines of text; an encoding in which a line break is one byte."""

    encoding: str
    max_line: int

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, list[str]]:
        """Begin with no line."""
        return ByChunk(Decoding(self.max_line, self.encoding, lookup(self.encoding).name in CUT_ANYWHERE))


@define
class Decoding(Cutting[str]):
    """Makes lines of text of chunks."""

    encoding: str
    at_once: bool
    """Whether several lines may be decoded at a time."""

    def lines(self, block: bytes) -> Iterable[str]:
        """Return the lines, decoded."""
        if self.at_once and b"\r" not in block:
            with suppress(UnicodeDecodeError):  # the lines before the one that fails are given below
                return block.decode(self.encoding).split("\n")
        return (line.decode(self.encoding) for line in lines_of(block))


@frozen
class Decompress(Stage[bytes, list[bytes]]):
    """Stage of `decompress`."""

    encoding: str
    max_bytes: int

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, list[bytes]]:
        """Begin with nothing."""
        return ByChunk(Decompressing(self.encoding, self.max_bytes))


@define
class Decompressing(Maker[bytes]):
    """Decompresses chunks; keeps the state of the decompression."""

    encoding: str
    max_bytes: int
    given: int = field(init=False, default=0)
    engine: Any = field(init=False, default=None)

    def of(self, chunk: bytes) -> Iterable[bytes]:
        """Yield the content of a chunk, piece by piece."""
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

    def last(self) -> Iterable[bytes]:
        """Raise for a body that ends too early."""
        if self.engine is not None:
            raise ValueError(f"the body ends in the middle of its encoding, which is {self.encoding}")
        return ()

    @property
    def amid(self) -> bool:
        """Whether more has to come."""
        return self.engine is not None
