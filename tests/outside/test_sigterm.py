"""A service under load that gets SIGTERM: it exits with 0, and has done all that it has taken."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SERVICE = """
import asyncio, itertools, signal, sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reactive_aio import Flow

taken = done = 0


async def orders() -> AsyncIterator[int]:
    global taken
    for n in itertools.count():
        if not n % 16:
            await asyncio.sleep(0.001)
        taken += 1
        yield n


async def handle(order: int) -> None:
    global done
    await asyncio.sleep(0.005)
    done += 1
    if done == 100:
        print("under load", flush=True)


def serve(stop: asyncio.Event):
    priced = Flow.from_async_iterable(orders).map_async(lambda n: asyncio.sleep(0.002, n), max_concurrency=8)
    return priced.for_each(handle, max_concurrency=8, stop=stop, grace=20)
"""

BY_RUNNER = """

async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve(stop)
    print("taken", taken, "done", done, flush=True)


factory = None
if sys.argv[1:] == ["uvloop"]:
    import uvloop
    factory = uvloop.new_event_loop
with asyncio.Runner(loop_factory=factory) as runner:
    runner.run(main())
"""

BY_LIFESPAN = """

@asynccontextmanager
async def lifespan(app):
    stop = asyncio.Event()
    service = asyncio.create_task(serve(stop))
    yield
    stop.set()
    await service
    print("taken", taken, "done", done, flush=True)


import uvicorn
from starlette.applications import Starlette

signal.signal(signal.SIGTERM, lambda *_: None)
uvicorn.run(Starlette(lifespan=lifespan), port=int(sys.argv[2]), log_level="error", loop=sys.argv[1])
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


def terminated(program: Path, *arguments: str) -> tuple[int, str]:
    """Run a service, send it SIGTERM when it is under load, and return its exit code and what it says last."""
    command = [sys.executable, str(program), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as service:
        try:
            assert service.stdout is not None
            first = service.stdout.readline()
            assert "under load\n" == first, first + service.stdout.read()
            service.send_signal(signal.SIGTERM)
            said, _ = service.communicate(timeout=60)
        finally:
            service.kill()
    return service.returncode, said


def in_numbers(said: str) -> tuple[int, int]:
    words = said.split()
    assert ["taken", "done"] == words[::2], said
    return int(words[1]), int(words[3])


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_service_of_a_runner_finishes_what_it_has_taken(loop: str, tmp_path: Path) -> None:
    program = tmp_path / "service.py"
    program.write_text(SERVICE + BY_RUNNER)

    code, said = terminated(program, loop)
    taken, done = in_numbers(said)

    assert 0 == code
    assert taken == done >= 100


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_service_in_the_lifespan_of_an_application_finishes_what_it_has_taken(
    loop: str, port: int, tmp_path: Path
) -> None:
    program = tmp_path / "service.py"
    program.write_text(SERVICE + BY_LIFESPAN)

    code, said = terminated(program, loop, str(port))
    taken, done = in_numbers(said)

    assert 0 == code
    assert taken == done >= 100
