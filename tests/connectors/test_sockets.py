"""Connections as flows: read when wanted, sent with patience, and nothing left when a peer goes."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import define, field

from reactive_aio import Flow, hooks
from reactive_aio.errors import SourceCancelledError
from reactive_aio.io import Peer, TooLargeError, connect, connect_unix, serve, serve_unix
from reactive_aio.testing import no_leaks
from tests import tls

PATIENCE = 20.0
"""Seconds after which what should come at once counts as lost."""
RESET = struct.pack("ii", 1, 0)
BLOCK = bytes(65_536)


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS of a server, and that of a client that trusts it."""
    return tls.made_in(tmp_path_factory.mktemp("tls"))


@asynccontextmanager
async def connected(how: str, handler: Any, contexts: Any, folder: Path) -> AsyncGenerator[Peer]:
    """Serve in some way, and give the client's side of one connection."""
    async with serving(how, handler, contexts, folder) as connecting, connecting() as peer:
        yield peer


@asynccontextmanager
async def serving(
    how: str, handler: Any, contexts: Any, folder: Path
) -> AsyncGenerator[Callable[[], AbstractAsyncContextManager[Peer]]]:
    """Serve in some way, and give a function that connects."""
    if how == "unix":
        path = folder / "socket"
        async with serve_unix(handler, path):
            yield lambda: connect_unix(path)
    else:
        tls = how == "tls"
        async with serve(handler, "127.0.0.1", 0, ssl=contexts[0] if tls else None) as server:
            if how == "asyncio":
                yield lambda: closing(server.port)
            else:
                yield lambda: connect("127.0.0.1", server.port, ssl=contexts[1] if tls else None)


@asynccontextmanager
async def closing(port: int) -> AsyncGenerator[Peer]:
    peer = Peer.of(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield peer
    finally:
        await peer.stream.aclose()


EVERY = ["tcp", "unix", "tls", "asyncio"]


@pytest.mark.parametrize("how", EVERY)
async def test_lines_go_to_a_peer_and_come_back(how: str, contexts: Any, tmp_path: Path) -> None:
    async def shout(peer: Peer) -> None:
        await peer.send(peer.lines().map(lambda line: line.upper() + b"\n"))

    async with connected(how, shout, contexts, tmp_path) as peer:
        await peer.send(Flow.of(b"one\ntw", b"o\nthree\n"))

        assert [b"ONE", b"TWO", b"THREE"] == await peer.lines().take(3).to_list()


@pytest.mark.parametrize("how", ["tcp", "unix", "asyncio"])
async def test_behind_a_half_close_the_other_half_goes_on(how: str, contexts: Any, tmp_path: Path) -> None:
    async def summed(peer: Peer) -> None:
        total = await peer.lines().map(int).sum()
        await peer.send(Flow.of(str(total).encode()))

    async with connected(how, summed, contexts, tmp_path) as peer:
        await peer.send(Flow.of(b"1\n", b"2\n"))
        await peer.send_eof()

        assert [b"3"] == await peer.chunks().to_list()


@define(eq=False)
class Blocks:
    """A source of blocks that counts what it has given, and whether it has been cleaned up."""

    given: int = field(init=False, default=0)
    begun: int = field(init=False, default=0)
    ended: int = field(init=False, default=0)
    changed: asyncio.Event = field(init=False, factory=asyncio.Event)

    async def blocks(self) -> AsyncIterator[bytes]:
        self.begun += 1
        try:
            while True:
                self.given += 1
                self.changed.set()
                yield BLOCK
        finally:
            self.ended += 1
            self.changed.set()

    async def serve(self, peer: Peer) -> None:
        await peer.send(Flow.from_async_iterable(self.blocks))

    async def quiet(self) -> int:
        """Wait until it gives nothing more for many turns of the loop; return what it has given."""
        async with asyncio.timeout(PATIENCE):
            still = 0
            before = -1
            while still < 50:
                await asyncio.sleep(0.002)
                still = still + 1 if self.given == before else 0
                before = self.given
        return before

    async def until(self, ended: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.ended < ended:
                self.changed.clear()
                await self.changed.wait()


@pytest.mark.parametrize("how", EVERY)
async def test_a_reader_that_stops_stops_the_writer(how: str, contexts: Any, tmp_path: Path) -> None:
    source = Blocks()
    async with (
        connected(how, source.serve, contexts, tmp_path) as peer,
        peer.chunks().open() as chunks,
    ):
        read = 0
        for _ in range(3):
            read += len(await anext(chunks))
        given = await source.quiet()

        # The buffers of the sockets, and one read of asyncio.
        assert given * len(BLOCK) - read < 16_000_000
        for _ in range(1_000):
            read += len(await anext(chunks))
        assert read <= source.given * len(BLOCK)
        assert source.given > given or read < given * len(BLOCK)
    await source.until(1)


async def test_a_peer_is_not_read_before_a_chunk_is_wanted() -> None:
    class Counted(anyio.abc.ByteStream):
        received = 0

        async def receive(self, max_bytes: int = 65_536) -> bytes:
            self.received += 1
            return b"12345"[:max_bytes]

        async def send(self, item: bytes) -> None: ...
        async def send_eof(self) -> None: ...
        async def aclose(self) -> None: ...

    stream = Counted()
    async with Peer(stream).chunks(size=4).open() as chunks:
        assert 0 == stream.received
        for number in range(1, 4):
            assert b"1234" == await anext(chunks)
            assert number == stream.received


async def test_a_line_that_is_too_long_is_refused() -> None:
    async def endless(peer: Peer) -> None:
        await peer.send(Flow.of(b"x" * 100))

    async with serve(endless, "127.0.0.1", 0) as server, connect("127.0.0.1", server.port) as peer:
        with pytest.raises(TooLargeError, match="more than the 50 bytes"):
            await peer.lines(max_line=50).to_list()


@pytest.mark.parametrize("how", ["tcp", "asyncio"])
async def test_a_reset_fails_the_flow(how: str, contexts: Any, tmp_path: Path) -> None:
    async def reset(peer: Peer) -> None:
        raw = peer.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        stream: Any = peer.stream
        stream._transport.abort()  # aclose_forcefully of older anyio says goodbye first

    async with connected(how, reset, contexts, tmp_path) as peer:
        with pytest.raises((anyio.BrokenResourceError, ConnectionResetError)):
            await peer.chunks().to_list()


@pytest.mark.parametrize("how", ["tcp", "asyncio"])
async def test_what_is_sent_to_a_peer_that_has_reset_fails_and_its_end_does_not(
    how: str, contexts: Any, tmp_path: Path
) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with closing(port) if how == "asyncio" else connect("127.0.0.1", port) as peer:
            with pytest.raises((anyio.BrokenResourceError, OSError)):
                await peer.chunks().to_list()
            for _ in range(3):
                with pytest.raises((anyio.BrokenResourceError, OSError)):
                    await peer.send(Flow.of(b"a"))
                await peer.send_eof()


async def test_a_peer_that_takes_too_long_is_given_up() -> None:
    never = asyncio.Event()

    async def deaf(peer: Peer) -> None:
        await never.wait()

    source = Blocks()
    async with serve(deaf, "127.0.0.1", 0) as server, connect("127.0.0.1", server.port) as peer:
        with pytest.raises(TimeoutError):
            await peer.send(Flow.from_async_iterable(source.blocks), send_timeout=0.05)

        assert 1 == source.ended


async def vanish(port: int, number: int) -> None:
    """Read a little, and leave: by a reset, by an end, or without having read anything."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if number % 3:
        await reader.readexactly(10)
    if number % 2:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()
    else:
        writer.close()


async def test_peers_that_vanish_leave_no_source_behind() -> None:
    source, many = Blocks(), 60
    async with no_leaks():
        async with serve(source.serve, "127.0.0.1", 0) as server:
            await asyncio.gather(*(vanish(server.port, number) for number in range(many)))
            await source.until(source.begun)
        assert source.begun == source.ended


async def test_leaving_a_server_cleans_up_what_its_handlers_run() -> None:
    source = Blocks()
    async with no_leaks():
        async with serve(source.serve, "127.0.0.1", 0) as server:
            peers = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(10)]
            await asyncio.gather(*(reader.readexactly(10) for reader, _ in peers))
        assert (10, 10) == (source.begun, source.ended)
        for _, writer in peers:
            writer.transport.abort()


async def test_a_handler_that_fails_ends_its_connection_only() -> None:
    dropped: list[BaseException] = []

    async def handler(peer: Peer) -> None:
        raise LookupError(await peer.lines().first())

    with hooks.using(on_error_dropped=dropped.append):
        async with serve(handler, "127.0.0.1", 0) as server:
            for word in (b"a\n", b"b\n"):
                async with connect("127.0.0.1", server.port) as peer:
                    await peer.send(Flow.of(word))
                    assert [] == await peer.chunks().to_list()

    assert ["b'a'", "b'b'"] == [str(error) for error in dropped]


@pytest.mark.parametrize("how", ["tcp", "unix", "tls"])
@pytest.mark.parametrize("by", ["a cancel of its task", "a task that it awaits"])
async def test_a_handler_that_is_cancelled_ends_its_connection_only(
    how: str, by: str, contexts: Any, tmp_path: Path
) -> None:
    dropped: list[BaseException] = []

    async def handler(peer: Peer) -> None:
        async with peer.lines().open() as lines:
            async for line in lines:
                if line == b"leave" and by == "a cancel of its task":
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                elif line == b"leave":
                    waited = asyncio.ensure_future(asyncio.Event().wait())
                    waited.cancel()
                    await waited
                await peer.send(Flow.of(line))

    async def asked(peer: Peer, word: bytes) -> list[bytes]:
        await peer.send(Flow.of(word + b"\n"))
        return await peer.chunks().take(1).to_list()

    with hooks.using(on_error_dropped=dropped.append):
        async with serving(how, handler, contexts, tmp_path) as connecting, connecting() as one:
            async with asyncio.timeout(PATIENCE):
                assert [b"a"] == await asked(one, b"a")
                async with connecting() as another:
                    with suppress(anyio.BrokenResourceError):  # by TLS, which has a word for the end
                        assert [] == await asked(another, b"leave")
                async with connecting() as third:
                    assert [b"c"] == await asked(third, b"c")
                assert [b"b"] == await asked(one, b"b")
    expected = [] if by == "a cancel of its task" else [SourceCancelledError]
    assert expected == [type(error) for error in dropped]


@pytest.mark.parametrize("how", ["tcp", "unix", "tls"])
async def test_a_connection_that_can_not_be_accepted_ends_no_other(
    how: str, contexts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[BaseException] = []
    accept = socket.socket.accept
    fails = iter([False, True, True, False])

    def accepts(listening: socket.socket) -> Any:
        ready, _, _ = select.select([listening], [], [], 0)
        if len(ready) > 0 and next(fails):
            raise OSError(errno.EMFILE, "no descriptor is free")
        return accept(listening)

    async def shout(peer: Peer) -> None:
        await peer.send(peer.lines().map(bytes.upper))

    async def asked(peer: Peer) -> bytes:
        await peer.send(Flow.of(b"a\n"))
        return await peer.chunks().first()

    monkeypatch.setattr(socket.socket, "accept", accepts)
    with hooks.using(on_error_dropped=dropped.append):
        async with serving(how, shout, contexts, tmp_path) as connecting, connecting() as one:
            async with asyncio.timeout(PATIENCE):
                assert b"A" == await asked(one)
                async with connecting() as another:
                    assert b"A" == await asked(another)
                    assert b"A" == await asked(one)
    assert 2 == len(dropped)
    assert all(isinstance(error, (OSError, anyio.BrokenResourceError)) for error in dropped)


async def test_a_cancel_of_a_reader_loses_nothing() -> None:
    go = asyncio.Event()

    async def talk(peer: Peer) -> None:
        await go.wait()
        await peer.send(Flow.of(b"hello\n"))

    async with serve(talk, "127.0.0.1", 0) as server, connect("127.0.0.1", server.port) as peer:
        reading = asyncio.create_task(peer.lines().to_list())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        go.set()

        assert [b"hello"] == await peer.lines().to_list()


async def test_a_certificate_that_nobody_knows_is_refused(contexts: Any) -> None:
    async def handler(peer: Peer) -> None: ...

    async with serve(handler, "127.0.0.1", 0, ssl=contexts[0]) as server:
        with pytest.raises(ssl.SSLError):
            async with connect("127.0.0.1", server.port, ssl=ssl.create_default_context()):
                pass


@pytest.mark.parametrize("resets", [False, True])
async def test_a_server_that_leaves_before_tls_has_begun_is_a_lost_connection(contexts: Any, resets: bool) -> None:
    async def leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if resets:
            await reader.read(1)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.close()

    async with await asyncio.start_server(leaves, "127.0.0.1", 0) as server:
        with pytest.raises(ConnectionError, match="instead of beginning TLS"):
            async with connect("127.0.0.1", server.sockets[0].getsockname()[1], ssl=contexts[1]):
                pass
