"""Load for the service: a crawler that follows its links, readers of the prices, and uploads of orders.

It speaks HTTP by hand over asyncio's streams, so that it has no pool and no cleverness that would stand between it and the service.

    python -m examples.service.load --seconds 10 http://127.0.0.1:8000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from attrs import define, field

from reactive_aio import Flow

LINK = re.compile(r'(?:href|from|EventSource)[ =(]*"(/[^"]*)"')


@define(eq=False)
class Load:
    """Clients of one service, and what they have seen."""

    host: str
    port: int
    seen: Counter[str] = field(init=False, factory=Counter[str])

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: str = ""
    ) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Send the head of a request on a connection of its own."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n{headers}\r\n".encode()
            )
            yield reader, writer
        finally:
            writer.close()

    async def get(self, path: str, most: int = 20_000) -> str:
        """Read the beginning of what is there: an event stream has no end."""
        async with self.request("GET", path) as (reader, _):
            body = b""
            while len(body) < most and (chunk := await reader.read(most)):
                body += chunk
        self.seen["pages"] += 1
        return body.decode(errors="replace")

    async def crawl(self) -> set[str]:
        """Follow the links, eight pages at a time; give all paths."""
        known, found = {"/"}, ["/"]
        while found:
            pages = await Flow.from_iterable(found).map_async(self.get, max_concurrency=8).to_list()
            found = sorted({link for page in pages for link in LINK.findall(page)} - known)
            known.update(found)
        return known

    async def read(self) -> None:
        """Read prices until the service ends."""
        async with self.request("GET", "/prices/") as (reader, _):
            async for line in reader:
                self.seen["prices"] += line.startswith(b"data:")

    async def upload(self, orders: Iterator[dict[str, object]]) -> int:
        """Upload orders, as fast as the service takes them; give how many it says that it has taken."""
        headers = "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n"
        async with self.request("POST", "/orders", headers) as (reader, writer):
            # The answer may come before the last order: at a limit, or when the service stops.
            answering = asyncio.create_task(reader.read())
            with suppress(ConnectionError):
                for order in orders:
                    line = json.dumps(order).encode() + b"\n"
                    writer.write(b"%x\r\n%b\r\n" % (len(line), line))
                    await writer.drain()
                    await asyncio.sleep(0)  # drain() does not wait where there is room
                    if answering.done():
                        break
                else:
                    writer.write(b"0\r\n\r\n")
            _, _, body = (await answering).partition(b"\r\n\r\n")
        taken: int = json.loads(body)["taken"]
        self.seen["orders"] += taken
        return taken

    async def run(self, clients: int) -> None:
        """Keep that many clients of each kind at it, for as long as the service is there."""

        async def again(what: int) -> None:
            while True:
                match what % 3:
                    case 0:
                        await self.crawl()
                    case 1:
                        await self.read()
                    case _:
                        await self.upload(orders(f"{what}-", 100))

        # A client whose connection breaks has done its part, and says so.
        async def client(what: int) -> None:
            try:
                await again(what)
            except (OSError, ValueError):  # it is gone, or it has cut an answer short
                self.seen["gone"] += 1

        await Flow.range(3 * clients).map_async(client, max_concurrency=3 * clients).drain()


def orders(name: str, count: int) -> Iterator[dict[str, object]]:
    """Make some orders."""
    for n in range(count):
        yield {"id": f"{name}{n}", "symbol": ("ANT", "BEE", "CAT")[n % 3], "quantity": n + 1}


async def main() -> None:
    """Read the command line, and show what was seen."""
    parser = argparse.ArgumentParser(description="Load for the service.")
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000")
    parser.add_argument("--clients", type=int, default=10, help="of each kind")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    address: str = given.url
    url = urlsplit(address)
    load = Load(url.hostname or "127.0.0.1", url.port or 80)
    with suppress(TimeoutError):
        async with asyncio.timeout(given.seconds):
            await load.run(given.clients)
    print(", ".join(f"{count:,} {what}" for what, count in sorted(load.seen.items())))


if __name__ == "__main__":
    asyncio.run(main())
