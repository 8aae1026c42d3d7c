"""Start the service, and end it at SIGTERM or Ctrl-C: it takes nothing more, and finishes what it has taken."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
from pathlib import Path
from types import FrameType

import uvicorn

from .app import Service
from .orders import Book


class Server(uvicorn.Server):
    """uvicorn waits for the responses to end before it ends the lifespan. Ours have no end, so they are told first."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the service and the server."""
        self._loop.call_soon_threadsafe(self._service.stop.set)
        super().handle_exit(sig, frame)


def unheard(_: int, __: FrameType | None) -> None:
    """Do nothing at a signal."""


async def serve(service: Service, port: int) -> None:
    """Serve until a signal comes."""
    # uvicorn raises the signal again when it has ended. By then all is done, and the exit is a clean one.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, unheard)
    with socket.create_server(("127.0.0.1", port)) as listener:
        config = uvicorn.Config(
            service.application(), log_level="warning", timeout_graceful_shutdown=int(service.grace), ws_max_size=65_536
        )
        print(f"serving on http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
        await Server(config, service).serve([listener])
    print(f"stopped: {service.book.taken} orders taken, {service.book.filled} filled", flush=True)


async def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python3 dev.py serve", description="A market, live in the browser.")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same prices")
    parser.add_argument("--ledger", type=Path, help="a file for the orders that are filled")
    given = parser.parse_args()
    await serve(Service(seed=given.seed, book=Book(given.ledger)), given.port)


if __name__ == "__main__":
    asyncio.run(main())
