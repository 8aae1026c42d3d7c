"""Exactly once in effect: what a micro-batch brings about is recorded together with its number."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from os import PathLike
from typing import Any, Protocol, TypeVar

from attrs import frozen

from .microbatch import Consumable

B = TypeVar("B", bound=Consumable[Any])
X = TypeVar("X")
X_co = TypeVar("X_co", covariant=True)


class Ledger(Protocol[X_co]):
    """Remembers which micro-batches have taken effect."""

    def entry(self, query: str, batch: int, /) -> AbstractAsyncContextManager[X_co | None]:
        """Begin a transaction for a batch, or give None where the batch has taken effect before.

        When the block is left in peace, what was done in the transaction and the number of the batch must be
        committed *together*; else neither. The numbers of a query grow.
        """
        ...


def exactly_once(handle: Callable[[B, X], Awaitable[object]], ledger: Ledger[X]) -> Callable[[B], Awaitable[None]]:
    """Give a function for ``for_each`` that handles each micro-batch once, and acknowledges it.

    ``handle`` is given the batch and the transaction of the ledger. What it does in the transaction takes effect
    exactly once, although Spark may deliver the batch again; what it does elsewhere does so at least once. (Kafka:
    ``read_process_write``; Spark: a ``batchId`` to drop duplicates by.)
    """

    async def handled(batch: B) -> None:
        async with batch, ledger.entry(batch.query, batch.id) as transaction:
            if transaction is not None:
                await handle(batch, transaction)

    return handled


@frozen
class SqliteLedger:
    """A ledger in a file of SQLite; the transaction is a connection, by which to write what belongs with it."""

    path: str | PathLike[str]

    @asynccontextmanager
    async def entry(self, query: str, batch: int) -> AsyncGenerator[sqlite3.Connection | None]:
        """Begin a transaction, or tell that the batch has taken effect."""
        connection = await asyncio.to_thread(self._begin)
        try:
            cursor = connection.execute("SELECT last FROM reactive_aio_batches WHERE query = ?", (query,))
            last: tuple[int] | None = cursor.fetchone()
            if last is not None and last[0] >= batch:
                yield None
                return
            yield connection
            connection.execute("INSERT OR REPLACE INTO reactive_aio_batches VALUES (?, ?)", (query, batch))
            await asyncio.to_thread(connection.commit)
        finally:
            await asyncio.to_thread(connection.close)  # and roll back what has not been committed

    def _begin(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, check_same_thread=False)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS reactive_aio_batches (query TEXT PRIMARY KEY, last INTEGER NOT NULL)"
        )
        connection.commit()
        connection.execute("BEGIN IMMEDIATE")
        return connection
