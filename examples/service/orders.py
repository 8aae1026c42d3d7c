"""The orders: an order that is taken is filled, even if its client disconnects."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path

from attrs import asdict, define, field, frozen

from reactive_aio import Flow, Hub

from .market import SYMBOLS

SIDE_BY_SIDE = 8
"""How many orders are filled at a time."""


@frozen
class Order:
    """The order of a client."""

    id: str
    symbol: str
    quantity: int


class NoOrderError(ValueError):
    """A line of an upload is no order."""


def read_order(line: bytes) -> Order:
    """Read a line of an upload; it comes from a stranger, so each field is looked at."""
    try:
        match json.loads(line):
            case {"id": str(name), "symbol": str(symbol), "quantity": int(quantity)} if (
                symbol in SYMBOLS and 0 < quantity <= 1_000_000 and len(name) <= 64
            ):
                return Order(name, symbol, quantity)
            case _:
                pass
    except (ValueError, RecursionError):
        pass
    # The client gets this text. It says what is allowed, and repeats nothing of what was sent.
    raise NoOrderError(f'a line is {{"id": "...", "symbol": one of {", ".join(SYMBOLS)}, "quantity": 1 to 1000000}}')


@define(eq=False)
class Book:
    """Takes orders from any number of uploads, and fills them.

    The hub between the two has room for some. When it is full an upload waits, its socket fills, and the client waits too.
    """

    ledger: Path | None = None
    """The file that each filled order is written to, as a line."""
    taken: int = field(init=False, default=0)
    filled: int = field(init=False, default=0)
    _waiting: Hub[Order] = field(init=False, factory=lambda: Hub[Order](idle="wait", lag=64))

    async def take(self, order: Order) -> None:
        """Take an order as soon as there is room; from then on it is ours to fill."""
        await self._waiting.emit(order)
        self.taken += 1

    async def fill_all(self) -> None:
        """Fill what is taken, until the book is closed."""
        with self.ledger.open("a", encoding="utf-8") if self.ledger else nullcontext() as file:

            def note(order: Order) -> None:
                self.filled += 1
                if file is not None:
                    print(json.dumps(asdict(order)), file=file)

            await self._filled().for_each(note)

    def _filled(self) -> Flow[Order]:
        async def fill(order: Order) -> Order:
            await asyncio.sleep(0.002)  # an exchange that answers takes its time
            return order

        return self._waiting.flow.map_async(fill, max_concurrency=SIDE_BY_SIDE)

    def close(self) -> None:
        """Take no more; what has been taken is still filled."""
        self._waiting.complete()
