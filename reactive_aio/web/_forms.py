"""Uploaded forms, ``multipart/form-data``, by the parser of the library multipart (the extra ``multipart``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from attrs import define, field, frozen

from .._bytes import TooLargeError
from .._connector import iterated
from .._flow.flow import Flow
from ..errors import SourceConsumedError
from ..operators._fluent import check_count, check_flow

TYPE: Final = "multipart/form-data"
LONGEST_BOUNDARY: Final = 70
"""That of RFC 2046."""
MOST_HEADERS: Final = 16
"""Of a part. Browsers send two."""


@frozen
class Part:
    """A part of a form: a field, or a file where ``filename`` is not None.

    ``body`` is the flow of its bytes. It can be read once, and only until the next part is requested. ``filename`` and
    ``content_type`` come from the client: a file name may be a path, and a type may be wrong.
    """

    name: str
    filename: str | None
    content_type: str | None
    headers: tuple[tuple[str, str], ...]
    body: Flow[bytes] = field(repr=False)

    async def text(self, *, max_bytes: int = 65_536) -> str:
        """Read the body of a field, which is UTF-8.

        Errors: TooLargeError for more than ``max_bytes`` bytes, UnicodeDecodeError, and those of the body.
        """
        check_count("text", "max_bytes", max_bytes, 1)
        whole = bytearray()
        async with self.body.open() as chunks:
            async for chunk in chunks:
                whole += chunk
                if len(whole) > max_bytes:
                    raise TooLargeError(f"a field has more than the {max_bytes} bytes that are allowed")
        return whole.decode()


def form_parts(
    body: Flow[bytes],
    content_type: str,
    *,
    max_parts: int = 128,
    max_part: int | None = None,
    max_header: int = 4096,
) -> Flow[Part]:
    r"""Read the parts of a form, ``multipart/form-data``, one after another. The body of each is a flow of bytes.

    ``content_type`` is the header of the request, which has the boundary. Read one part at a time: by ``async for``, ``for_each`` or
    ``concat_map``.
    Demand: a chunk of ``body`` is requested when a part or bytes of one are requested, and those of the chunk before
    have been emitted. So a form that is not read stops the client. A request for the next part skips the unread bytes
    of the part before. If that is being read, the request waits for its reader. One chunk is kept.
    Errors: TooLargeError for more than ``max_parts`` parts, a header of more than ``max_header`` bytes, or a part of
    more than ``max_part``. ValueError for a body that is not such a form, or ends too early. SourceConsumedError for a
    part that is read a second time, or after the next one was requested. Another content type is refused with
    ValueError at the call. ImportError without the extra ``multipart``.
    Cancel: closes ``body``. A part can't be read any more when the flow of parts has ended: read it before.
    (Starlette: ``request.form()``, which keeps files on the disk.)

    >>> import asyncio
    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import form_parts
    >>> form = Flow.of(b'--x\r\nContent-Disposition: form-data; name="n"\r\n\r\n42\r\n--x--\r\n')
    >>> async def main():
    ...     return [(part.name, await part.text()) async for part in form_parts(form, "multipart/form-data; boundary=x")]
    >>> asyncio.run(main())
    [('n', '42')]
    """
    check_flow("form_parts", body)
    limits = {"max_segment_count": max_parts, "max_header_size": max_header}
    if max_part is not None:
        limits["max_segment_size"] = max_part
    for name, limit in (("max_parts", max_parts), ("max_header", max_header), ("max_part", max_part)):
        if limit is not None:
            check_count("form_parts", name, limit, 1)
    multipart = library()
    kind, options = multipart.parse_options_header(content_type)
    boundary: str = options.get("boundary", "")
    if kind != TYPE or not 0 < len(boundary) <= LONGEST_BOUNDARY:
        raise ValueError(f"form_parts() reads {TYPE} with a boundary, not {content_type[:200]!r}")

    def begin() -> AsyncIterator[Part]:
        return parts_of(body, multipart.PushMultipartParser(boundary, max_header_count=MOST_HEADERS, **limits))

    return iterated("form_parts", type(body), begin)


def library() -> Any:
    """Return the library, which has no types."""
    import multipart

    return multipart


async def parts_of(body: Flow[bytes], parser: Any) -> AsyncIterator[Part]:
    """Yield each part, when the one before has been read or skipped."""
    async with body.open() as chunks:
        form = Form(chunks, parser)
        while (segment := await form.next()) is not END:
            reading = PartBody(form, segment.name)
            headers = tuple((name, value) for name, value in segment.headerlist)
            yield Part(segment.name, segment.filename, segment.content_type, headers, Flow.defer(reading.begin))
            await reading.leave()


END: Final = object()


@define(eq=False)
class Form:
    """The results of the parser from the chunks of a body, and when it wants the next one."""

    chunks: AsyncIterator[bytes]
    parser: Any
    events: Iterator[Any] = field(init=False, factory=lambda: iter(()))

    async def next(self) -> Any:
        """Return the head of a part, bytes of it, or None at its end. Return END at the end of the form."""
        while True:
            event = self._event()
            if event is not END:
                return event
            try:
                chunk = await anext(self.chunks)
            except StopAsyncIteration:
                self._parsed(self.parser.close)
                return END
            if chunk:  # an empty one would be the end
                self.events = self.parser.parse(bytes(chunk))

    def _event(self) -> Any:
        return self._parsed(lambda: next(self.events, END))

    def _parsed(self, step: Callable[[], Any]) -> Any:
        multipart = library()
        try:
            return step()
        except multipart.ParserLimitReached as error:
            raise TooLargeError(f"the form exceeds a limit: {error}") from error
        except multipart.MultipartError as error:
            raise ValueError(f"the body is not {TYPE}: {error}") from error


@define(eq=False)
class PartBody:
    """The body of one part: not begun, being read, or skipped."""

    form: Form
    name: str
    begun: bool = field(init=False, default=False)
    ended: bool = field(init=False, default=False)
    """Whether the form has come to the end of the part."""
    over: asyncio.Event = field(init=False, factory=asyncio.Event)

    def begin(self) -> Flow[bytes]:
        """Return the bytes, once."""
        if self.begun:
            raise SourceConsumedError(
                f"the part {self.name!r} can't be read any more. Read each part once, before you ask for the next one"
            )
        self.begun = True
        return Flow.from_async_iterable(self._chunks).do_finally(self.over.set)

    async def leave(self) -> None:
        """Wait for its reader, and skip the unread bytes."""
        if self.begun:
            await self.over.wait()
        self.begun = True
        while not self.ended:
            await self._next()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._next()) is not None:
            yield bytes(chunk)

    async def _next(self) -> Any:
        event = await self.form.next()
        self.ended = event is None
        return event
