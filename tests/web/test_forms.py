"""Forms that are uploaded: part by part, under demand, and never beyond a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow
from reactive_aio.errors import SourceConsumedError
from reactive_aio.web import Part, TooLargeError, form_parts, request_body
from tests.subscribers import idle

TYPE = "multipart/form-data; boundary=limit"
Parts = list[tuple[str, str | None, bytes]]


def head(name: str, filename: str | None = None) -> bytes:
    more = "" if filename is None else f'; filename="{filename}"\r\nContent-Type: text/plain; charset=utf-8'
    return f'--limit\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode()


END = b"--limit--\r\n"


def form(*parts: tuple[str, str | None, bytes]) -> bytes:
    return b"".join(head(name, filename) + body + b"\r\n" for name, filename, body in parts) + END


async def whole(part: Part) -> tuple[str, str | None, bytes]:
    return part.name, part.filename, b"".join(await part.body.to_list())


async def read(*chunks: bytes, **limits: Any) -> Parts:
    return [await whole(part) async for part in form_parts(Flow.of(*chunks), TYPE, **limits)]


BODIES = st.lists(st.sampled_from([b"\r\n", b"--limit", b"--", b"\r", b"a", b""]), max_size=5).map(b"".join)
PARTS = st.tuples(st.sampled_from(["a", "é", "a b"]), st.none() | st.just("f.txt"), BODIES).filter(
    lambda part: b"\r\n--limit" not in b"\r\n" + part[2]
)


@settings(max_examples=50)
@given(st.lists(PARTS, max_size=4), st.data())
def test_parts_are_those_of_the_form_however_it_is_cut(parts: Parts, data: st.DataObject) -> None:
    text = form(*parts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})

    assert parts == asyncio.run(read(*(text[start:stop] for start, stop in pairwise(cuts))))


async def test_a_part_says_what_the_client_says_of_it() -> None:
    async for part in form_parts(Flow.of(form(("n", "../é.txt", b"42"))), TYPE):
        assert ("n", "../é.txt", "text/plain") == (part.name, part.filename, part.content_type)
        assert ("Content-Type", "text/plain; charset=utf-8") == part.headers[1]
        assert "42" == await part.text()


async def test_a_form_of_a_client_is_read() -> None:
    request = httpx2.Request("POST", "http://localhost", data={"n": "é"}, files={"f": ("f.bin", b"\0" * 100_000)})
    stream: Any = request.stream
    sent = Flow[bytes].from_async_iterable(stream)

    parts = [await whole(part) async for part in form_parts(sent, request.headers["content-type"])]

    assert [("n", None, "é".encode()), ("f", "f.bin", b"\0" * 100_000)] == parts


async def test_a_chunk_is_asked_for_when_the_bytes_of_the_one_before_are_taken() -> None:
    asked: list[bytes] = []
    chunks = Flow.of(head("a"), b"x" * 100, b"x" * 100, b"\r\n" + head("b"), b"y\r\n" + END).do_on_next(asked.append)
    async with form_parts(chunks, TYPE).open() as parts:
        first = await anext(parts)
        assert 1 == len(asked)
        async with first.body.open() as body:
            await anext(body)
            assert 2 == len(asked)
            await anext(body)
            assert 3 == len(asked)
        second = await anext(parts)
        assert (4, "b") == (len(asked), second.name)


async def test_what_is_unread_of_a_part_is_skipped() -> None:
    names: list[str] = []
    async for part in form_parts(
        Flow.of(*(bytes([byte]) for byte in form(("a", None, b"xxx"), ("b", None, b"y")))), TYPE
    ):
        names.append(part.name)
        if part.name == "a":
            await part.body.take(1).drain()

    assert ["a", "b"] == names
    assert 2 == await form_parts(Flow.of(form(("a", None, b"xxx"), ("b", None, b"y"))), TYPE).count()


async def test_parts_are_read_one_at_a_time_by_the_operators_that_do_so() -> None:
    text = form(("a", None, b"xxx"), ("b", None, b"y"))
    taken: list[Any] = []

    async def take(part: Part) -> None:
        taken.append(await whole(part))

    await form_parts(Flow.of(text), TYPE).for_each(take)
    assert [("a", None, b"xxx"), ("b", None, b"y")] == taken
    assert b"xxxy" == b"".join(await form_parts(Flow.of(text), TYPE).concat_map(lambda part: part.body).to_list())


async def test_the_next_part_waits_for_whoever_reads_the_one_before() -> None:
    go_on = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield head("a") + b"x"
        await go_on.wait()
        yield b"y\r\n" + head("b") + b"\r\n" + END

    async with form_parts(Flow.from_async_iterable(chunks), TYPE).open() as parts:
        first = await anext(parts)
        reading = asyncio.create_task(whole(first))
        await idle()
        following = asyncio.create_task(anext(parts))
        await idle()
        go_on.set()
        assert ("a", None, b"xy") == await reading
        assert "b" == (await following).name


async def test_a_reader_that_is_cancelled_loses_no_bytes_of_the_next_part() -> None:
    go_on = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield head("a") + b"x"
        await go_on.wait()
        yield b"y\r\n" + head("b") + b"z\r\n" + END

    async with form_parts(Flow.from_async_iterable(chunks), TYPE).open() as parts:
        reading = asyncio.create_task(whole(await anext(parts)))
        await idle()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        go_on.set()
        assert ("b", None, b"z") == await whole(await anext(parts))


async def test_a_part_that_is_left_or_read_can_not_be_read_any_more() -> None:
    parts = await form_parts(Flow.of(form(("a", None, b"x"), ("b", None, b"y"))), TYPE).to_list()
    with pytest.raises(SourceConsumedError, match="the part 'a' can't be read any more"):
        await parts[0].body.drain()
    async for part in form_parts(Flow.of(form(("a", None, b"x"))), TYPE):
        await part.text()
        with pytest.raises(SourceConsumedError, match="Read each part once"):
            await part.text()


@pytest.mark.parametrize(
    ("limits", "match"),
    [({"max_parts": 1}, "count"), ({"max_part": 2}, "size"), ({"max_header": 20}, "header length")],
)
async def test_a_form_beyond_a_limit_is_a_failure(limits: dict[str, int], match: str) -> None:
    with pytest.raises(TooLargeError, match=match):
        await read(form(("a", None, b"xxx"), ("b", None, b"")), **limits)


async def test_a_header_without_an_end_is_a_failure_before_it_has_ended() -> None:
    with pytest.raises(TooLargeError, match="header length"):
        await read(b"--limit\r\nA: " + b"x" * 10_000, b"")


async def test_a_field_beyond_its_limit_is_a_failure_and_the_rest_is_skipped() -> None:
    parts = form_parts(Flow.of(form(("a", None, b"xxx"), ("b", None, b"y"))), TYPE)
    async for part in parts:
        if part.name == "a":
            with pytest.raises(TooLargeError, match="a field has more than the 2 bytes"):
                await part.text(max_bytes=2)
        else:
            assert "y" == await part.text()


@pytest.mark.parametrize("text", [b"", b"no form at all\r\n", head("a") + b"cut of", b"--limit\r\nA: b\r\n\r\n"])
async def test_what_is_no_form_or_ends_too_early_is_a_failure(text: bytes) -> None:
    with pytest.raises(ValueError, match="the body is not multipart/form-data"):
        await read(text)


@pytest.mark.parametrize("content_type", ["", "multipart/form-data", "text/plain; boundary=x", f"{TYPE}{'x' * 100}"])
def test_another_content_type_is_refused_at_once(content_type: str) -> None:
    with pytest.raises(ValueError, match="reads multipart/form-data with a boundary"):
        form_parts(Flow[bytes].empty(), content_type)


async def test_the_failure_of_the_body_comes_to_who_reads_the_part() -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": head("a") + b"x" * 500, "more_body": True}

    body = request_body({"type": "http", "headers": []}, receive, max_bytes=1000)
    with pytest.raises(TooLargeError, match="the 1000 bytes"):
        await form_parts(body, TYPE).for_each(whole)


async def test_who_leaves_the_parts_closes_the_body() -> None:
    closed: list[bool] = []
    body = Flow.of(head("a") + b"x").concat(Flow[bytes].never()).do_finally(lambda: closed.append(True))

    assert "a" == (await form_parts(body, TYPE).first()).name
    assert [True] == closed
