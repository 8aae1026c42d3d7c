"""The web application. Each endpoint is a flow under demand: a client that reads slowly makes nothing pile up here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import asdict, define, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

import reactive_aio
from reactive_aio import Flow, Hub
from reactive_aio.web import (
    ClientDisconnectedError,
    Event,
    EventStream,
    Resumable,
    StreamError,
    StreamSocket,
    TooLargeError,
    json_lines,
    request_body,
)

from .market import SYMBOLS, Quote, quotes
from .orders import Book, NoOrderError, read_order

HERE = Path(__file__).parent
STATIC = Path(reactive_aio.__file__).parent / "web" / "static"
LARGEST_UPLOAD = 10_000_000
LONGEST_ORDER = 1_000


@define(eq=False)
class Service:
    """The state that all requests share: one feed for readers, one book for uploads, and one event that ends both."""

    seed: int = 1
    per_second: int = 60
    grace: float = 20.0
    book: Book = field(factory=Book)
    stop: asyncio.Event = field(init=False, factory=asyncio.Event)
    # Prices that nobody asks for are dropped. A reader may be `lag` behind; one that stays there must come again.
    prices: Hub[Quote] = field(init=False, factory=lambda: Hub[Quote](idle="drop", lag=1_000, evict_after=5.0))
    events: Resumable[Quote] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.events = Resumable(self.prices.flow, as_event, replay=1_000, lag=1_000, evict_after=5.0)

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncGenerator[None]:
        """Run the feed and the book beside the requests. The server comes back here when the last request has ended."""
        feeding = asyncio.create_task(self._feed())
        filling = asyncio.create_task(self.book.fill_all())
        async with self.events:
            yield
            self.stop.set()
            await feeding
        self.book.close()
        async with asyncio.timeout(self.grace):
            await filling

    async def _feed(self) -> None:
        # The end of the hub is the end of each response and each stream that reads it: so the server can stop.
        async with self.prices:
            await self.prices.feed(quotes(self.seed, self.per_second).take_until_other(self.stop))

    def stream(self, args: Any) -> Flow[dict[str, Any]]:
        """Stream the prices of a symbol to a page: the latest price each time the page requests one."""
        if args not in SYMBOLS:
            raise StreamError(f"the argument is one of {', '.join(SYMBOLS)}")  # the only error whose text a client gets
        return self.prices.flow.filter(lambda quote: quote.symbol == args).map(asdict).on_backpressure_latest()

    async def take_orders(self, request: Request) -> JSONResponse:
        """Take orders line by line, as fast as they can be filled. A stop ends the upload, and the answer says how many were taken."""
        body = request_body(request.scope, request.receive, max_bytes=LARGEST_UPLOAD)
        orders = json_lines(body, max_line=LONGEST_ORDER, decode=read_order)
        taken = 0

        async def take(order: Any) -> None:
            nonlocal taken
            await self.book.take(order)
            taken += 1

        status, why = 200, ""
        try:
            await orders.for_each(take, stop=self.stop, grace=self.grace)
        except TooLargeError as error:
            status, why = 413, str(error)
        except NoOrderError as error:
            status, why = 400, str(error)
        except ClientDisconnectedError:
            pass  # what it has sent is taken, and nobody is there to be told
        return JSONResponse({"taken": taken, "error": why}, status_code=status)

    async def status(self, _: Request) -> JSONResponse:
        """Return how far the book is."""
        return JSONResponse({"taken": self.book.taken, "filled": self.book.filled, "readers": self.prices.subscribers})

    def application(self) -> Starlette:
        """Put the endpoints together."""

        async def page(_: Request) -> FileResponse:
            return FileResponse(HERE / "page.html")

        routes = [
            Route("/", page),
            Route("/status", self.status),
            Route("/orders", self.take_orders, methods=["POST"]),
            Mount("/prices", EventStream(self.events)),
            WebSocketRoute("/streams", StreamSocket({"prices": self.stream})),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        return Starlette(routes=routes, lifespan=self.lifespan)


def as_event(quote: Quote) -> Event:
    """Write a price for the page."""
    return Event(json.dumps(asdict(quote)))
