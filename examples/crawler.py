"""A crawler that is gentle with the site: so many pages at a time and a second, each with a timeout, and tried again.

    Frontier | rate_limit       | flat_map          | pages
    pages      so many a second   so many at a time   as they come
    to visit                      timeout, retry

A page is asked of the frontier when one may be visited. It has those that were found, and waits while others may lead to more. Where nobody takes
the pages, no more are fetched than may be visited at a time. A page that is tried again waits, and is not counted a second time by the rate.

    python -m examples.crawler                      crawls a site of its own, some of whose pages fail or stall
    python -m examples.crawler http://localhost/    crawls yours
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx2
import uvicorn
from attrs import define, field, frozen

from reactive_aio import Backoff, Flow
from reactive_aio.web import FlowResponse, response_body

LINK = re.compile(rb'href="([^"]+)"')
LARGEST = 1_000_000
"""Bytes of a page, decompressed."""


@frozen
class Page:
    """A page that was visited, or why it could not be."""

    url: str
    size: int = 0
    links: tuple[str, ...] = ()
    problem: str = ""


class UnavailableError(Exception):
    """The site has said that it may answer later."""


Fetch = Callable[[str], Awaitable[Page]]
TRANSIENT = (httpx2.TransportError, TimeoutError, UnavailableError)


@define(eq=False)
class Frontier:
    """The pages to visit: a Poll, which is asked for as many as are wanted, and ends when nothing is left to find."""

    start: str
    _waiting: deque[str] = field(init=False, factory=deque[str])
    _seen: set[str] = field(init=False, factory=set[str])
    _visits: int = field(init=False, default=0)
    """How many pages are being visited, which may have links."""
    _changed: asyncio.Event = field(init=False, factory=asyncio.Event)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Frontier]:
        """Begin with one page."""
        self._add((self.start,))
        yield self

    async def fetch(self, n: int) -> Sequence[str]:
        """Give up to ``n`` pages; wait while there are none and some may be found."""
        while not self._waiting:
            if not self._visits:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        taken = [self._waiting.popleft() for _ in range(min(n, len(self._waiting)))]
        self._visits += len(taken)
        return taken

    def visited(self, page: Page) -> None:
        """Add what the page leads to."""
        self._add(link for link in page.links if urlsplit(link).netloc == urlsplit(self.start).netloc)
        self._visits -= 1
        self._changed.set()

    def _add(self, urls: Any) -> None:
        for url in urls:
            if url not in self._seen:
                self._seen.add(url)
                self._waiting.append(url)

    async def idle(self) -> None:
        """Nothing: there is no connection to be kept."""

    async def close(self) -> None:
        """Nothing: there is nothing open."""


def crawl(
    start: str,
    fetch: Fetch,
    *,
    max_concurrency: int = 8,
    per_second: int = 50,
    timeout: float = 5.0,
    backoff: Backoff | None = None,
) -> Flow[Page]:
    """Visit a page and all of its site that it leads to, each page once."""
    policy = backoff or Backoff(0.1, max_retries=3)

    def begin() -> Flow[Page]:
        frontier = Frontier(start)

        def visit(url: str) -> Flow[Page]:
            attempts = Flow.from_awaitable(lambda: fetch(url)).timeout(timeout).retry(policy, errors=TRANSIENT)
            failed = attempts.on_error_resume_next(
                lambda error: Flow.of(Page(url, problem=type(error).__name__)), errors=TRANSIENT
            )
            return failed.do_on_next(frontier.visited)

        urls = Flow[str].from_poll(frontier.open).rate_limit(per_second, 1.0)
        return urls.flat_map(visit, max_concurrency=max_concurrency)

    return Flow.defer(begin)


async def fetch_page(client: httpx2.AsyncClient, url: str) -> Page:
    """Fetch one page, as much of it as is allowed."""
    async with client.stream("GET", url) as response:
        if response.status_code >= 500:
            raise UnavailableError(f"{url} answers with {response.status_code}")
        if response.status_code != 200:
            return Page(url, problem=f"status {response.status_code}")
        text = b"".join(await response_body(response, max_bytes=LARGEST).to_list())
    links = tuple(urldefrag(urljoin(url, link.decode(errors="replace"))).url for link in LINK.findall(text))
    return Page(url, len(text), links)


# -- a site to crawl


@define(eq=False)
class Site:
    """An ASGI application: a tree of pages. Some fail or stall when they are first asked for, and one is missing."""

    pages: int = 60
    asked: Counter[int] = field(init=False, factory=Counter[int])
    busy: int = field(init=False, default=0)
    busiest: int = field(init=False, default=0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        number = int(scope["path"].strip("/") or 0)
        self.asked[number] += 1
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            await self._page(number)(scope, receive, send)
        finally:
            self.busy -= 1

    def _page(self, number: int) -> FlowResponse:
        if number >= self.pages:
            return FlowResponse(Flow.of("there is no such page"), status=404)
        if self.asked[number] == 1 and number % 10 == 3:
            return FlowResponse(Flow.of("not now"), status=503)
        lines = Flow.of(*(f'<a href="/{link}">{link}</a>\n' for link in (2 * number + 1, 2 * number + 2, 0)))
        if self.asked[number] == 1 and number % 20 == 7:
            return FlowResponse(lines.concat(Flow[str].never()))
        return FlowResponse(lines)


@asynccontextmanager
async def serving(site: Site) -> AsyncGenerator[str]:
    """Serve a site, and give its address."""
    server = uvicorn.Server(uvicorn.Config(site, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            await task


async def main(start: str | None = None) -> None:
    """Crawl a site, and print what was found as it comes."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(Site())) if start is None else start
        client = await stack.enter_async_context(httpx2.AsyncClient())
        async for page in crawl(url, lambda url: fetch_page(client, url), timeout=0.5 if start is None else 5.0):
            print(page.url, page.problem or f"{page.size} bytes, {len(page.links)} links")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
