"""No text of the library has the secrets that programs, files and sockets are given."""

from __future__ import annotations

import asyncio
import sys
import traceback
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.io import Peer, ProcessError, connect, from_process, from_stream, serve
from reactive_aio.io._processes import _Program

SECRET = "hunter" + "2"
"""Put together, so that no line of a traceback has it."""
WAITS = "import sys; print('begun', flush=True); sys.stdin.read(); sys.exit(3)"


def told(error: BaseException) -> str:
    """Return all that can be read of an error: its traceback with notes and causes, and what a debugger shows."""
    return "".join(traceback.format_exception(error)) + repr(error)


async def test_the_arguments_and_the_environment_of_a_program_are_not_shown() -> None:
    command = [sys.executable, "-c", WAITS, f"--password={SECRET}", f"https://ann:{SECRET}@example.org/?token={SECRET}"]
    running = from_process(command, stdin=Flow.of(SECRET.encode()), env={"PASSWORD": SECRET})
    shown = [repr(running), running.describe(), running.diagram()]

    async with running.open() as items:
        assert b"begun\n" == await anext(items)
        shown += [repr(items.snapshot()), repr(asyncio.all_tasks())]
        with pytest.raises(ProcessError, match="ended with 3") as failed:
            await anext(items)
    shown.append(told(failed.value))

    assert SECRET not in "\n".join(shown)


@pytest.mark.parametrize(
    ("command", "env"),
    [
        (["/nowhere/login", SECRET], {"PASSWORD": SECRET}),
        ([sys.executable], {"PASSWORD": [SECRET]}),
        ([sys.executable, [SECRET]], None),
    ],
    ids=["no program", "type of a value", "type of an argument"],
)
async def test_a_program_that_does_not_start_shows_no_secret(command: Any, env: Any) -> None:
    with pytest.raises((OSError, TypeError)) as failed:
        await from_process(command, env=env).drain()

    assert SECRET not in told(failed.value)


def test_a_text_for_a_command_is_refused_without_the_text() -> None:
    command: Any = f"login --password={SECRET}"
    with pytest.raises(TypeError, match="as a list") as failed:
        from_process(command)
    assert SECRET not in told(failed.value)


def test_a_debugger_shows_no_arguments_of_a_program() -> None:
    program = _Program(("login", SECRET), None, {"env": {"PASSWORD": SECRET}}, 1, 1, 1.0)
    assert SECRET not in repr(program)


async def test_what_a_peer_sends_and_is_sent_is_not_shown() -> None:
    shown: list[str] = []

    async def tell(peer: Peer) -> None:
        await peer.send(Flow.of(SECRET.encode() + b"\n", SECRET.encode() + b"\n"))

    async with serve(tell, "127.0.0.1", 0) as server, connect("127.0.0.1", server.port) as peer:
        lines = peer.lines().map(bytes.decode).map(int)
        try:
            await lines.drain()
        except ValueError as error:  # whose own text is that of int()
            shown += getattr(error, "__notes__", [])
        shown += [repr(lines), lines.describe(), repr(peer), repr(server), repr(from_stream(peer.stream))]

    assert shown
    assert SECRET not in "\n".join(shown)
