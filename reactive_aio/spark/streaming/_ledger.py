"""Exactly once in effect: the effects of a micro-batch are recorded together with its number."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from os import PathLike
from threading import Lock
from types import TracebackType
from typing import Any, Final, Literal, NoReturn, Protocol, TypeVar
from weakref import ref

from attrs import define, field, frozen

from ..._fusion import label
from ...operators._fluent import check_function, refuse_async_generator
from .._job.asking import text_of_path
from ._microbatch import Consumable

B = TypeVar("B", bound=Consumable[Any])
X = TypeVar("X")
X_co = TypeVar("X_co", covariant=True)

PART: Final = "reactive_aio_part"
ENDS: Final = "the ledger itself commits when the handler returns, and rolls back when it fails"


class Ledger(Protocol[X_co]):
    """Remembers which micro-batches have taken effect."""

    def entry(self, query: str, batch: int, /) -> AbstractAsyncContextManager[X_co | None]:
        """Begin a transaction for a batch, or return None if the batch has already taken effect.

        When the block ends without an error, commit the transaction's work and the number of the batch *together*. Else
        commit neither. The numbers of a query grow.
        """
        ...


def exactly_once(handle: Callable[[B, X], Awaitable[object]], ledger: Ledger[X]) -> Callable[[B], Awaitable[None]]:
    """Return a function for ``for_each`` that handles each micro-batch once, and acknowledges it.

    ``handle`` gets the batch and the transaction of the ledger. Its work in the transaction takes effect exactly once,
    although Spark may deliver the batch again. Its work elsewhere takes effect at least once. (Kafka:
    ``read_process_write``; Spark: a ``batchId`` to drop duplicates by.)
    """
    check_function("exactly_once", handle)
    refuse_async_generator("exactly_once", handle)
    if isinstance(ledger, type) or not callable(getattr(ledger, "entry", None)):
        given = ledger.__name__ if isinstance(ledger, type) else type(ledger).__name__
        raise TypeError(f"exactly_once() takes a ledger, such as SqliteLedger(path), not {given}")

    async def handled(batch: B) -> None:
        async with batch, ledger.entry(batch.query, batch.id) as transaction:
            if transaction is None:
                return
            answer: object = handle(batch, transaction)
            if not isawaitable(answer):
                raise TypeError(
                    f"exactly_once() takes an async def function, but {label(handle)} returned {label(answer)}"
                )
            await answer

    return handled


class _Transaction(sqlite3.Connection):
    """A connection in a transaction that only the ledger ends. ``with connection:`` in it is a part of it.

    In sqlite3 that block would commit, and its writes would stay if the rest failed.
    """

    def __enter__(self) -> _Transaction:
        self.check()  # else the savepoint would begin a transaction, and its release would commit it
        self.execute(f"SAVEPOINT {PART}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if self.in_transaction:  # else SQLite has rolled back all of it, as INSERT OR ROLLBACK has it do
            if kind is not None:
                self.execute(f"ROLLBACK TO {PART}")
            self.execute(f"RELEASE {PART}")
        return False

    def commit(self) -> NoReturn:
        raise sqlite3.ProgrammingError(ENDS)

    def rollback(self) -> NoReturn:
        raise sqlite3.ProgrammingError(ENDS)

    def begin(self) -> None:
        """Begin. From here on SQLite refuses every statement that would end the transaction."""
        super().execute("BEGIN IMMEDIATE")
        # A method would refer to the connection, which then would not be closed when it is dropped.
        own = ref(self)

        def judged(action: int, *_: object) -> int:
            return _judged(own(), action)

        self.set_authorizer(judged)

    def check(self) -> None:
        """Raise if SQLite has rolled back the transaction, as ``INSERT OR ROLLBACK`` has it do."""
        if not self.in_transaction:
            raise sqlite3.ProgrammingError(f"SQLite has rolled back the transaction: {ENDS}")

    def end(self) -> None:
        """Commit."""
        self.set_authorizer(None)
        super().commit()


def _judged(connection: _Transaction | None, action: int) -> int:
    """Refuse what would end the transaction. When it is rolled back, refuse what would take effect without it."""
    ends = action == sqlite3.SQLITE_TRANSACTION or connection is None or not connection.in_transaction
    return sqlite3.SQLITE_DENY if ends else sqlite3.SQLITE_OK


@frozen
class SqliteLedger:
    """A ledger in a file of SQLite. The transaction is a connection: write through it.

    The ledger commits when the handler has returned, and rolls back if it fails. A ``with connection:`` in the handler
    is a part of the transaction. If it raises, it alone is undone. Else it takes effect with the rest. Any call that
    would end the transaction, such as ``connection.commit()`` and ``executescript()``, raises an error of sqlite3.
    """

    path: str | PathLike[str]

    def __attrs_post_init__(self) -> None:
        given: Any = self.path
        text = text_of_path(given)
        if text is None:
            raise TypeError(f"SqliteLedger(path={given!r}): path must be the path of a file, as text")
        if text in ("", ":memory:"):
            raise ValueError(
                f"SqliteLedger(path={given!r}): a database in memory forgets each batch. Set the path of a file"
            )

    def entry(self, query: str, batch: int) -> AbstractAsyncContextManager[sqlite3.Connection | None]:
        """Begin a transaction, or report that the batch has taken effect."""
        return _Entry(self, query, batch)

    def begin(self) -> _Transaction:
        """Connect, and begin a transaction; on a thread."""
        connection = sqlite3.connect(self.path, check_same_thread=False, factory=_Transaction)
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS reactive_aio_batches (query TEXT PRIMARY KEY, last INTEGER NOT NULL)"
            )
            connection.begin()
        except BaseException:
            connection.close()
            raise
        return connection


@define
class _Entry(AbstractAsyncContextManager[sqlite3.Connection | None]):
    """A transaction. A generator would set the traceback of a leaving exception, which some exceptions forbid."""

    ledger: SqliteLedger
    query: str
    batch: int
    _connection: _Transaction = field(init=False)
    _new: bool = field(init=False, default=False)
    """Whether the batch has not yet taken effect."""
    _lock: Lock = field(init=False, factory=Lock)
    _left: bool = field(init=False, default=False)
    """Whether nobody waits for the connection any more."""

    def _begin(self) -> None:
        """Begin; on a thread. A connection that nobody closes would lock the file until it is collected."""
        connection = self.ledger.begin()
        with self._lock:
            self._connection = connection
            left = self._left
        if left:
            connection.close()

    async def __aenter__(self) -> sqlite3.Connection | None:
        try:
            await asyncio.to_thread(self._begin)
        except BaseException:
            with self._lock:
                self._left = True
                begun = hasattr(self, "_connection")
            if begun:
                await self._close()
            raise
        try:
            cursor = self._connection.execute("SELECT last FROM reactive_aio_batches WHERE query = ?", (self.query,))
            last: tuple[int] | None = cursor.fetchone()
        except BaseException:
            await self._close()
            raise
        self._new = last is None or last[0] < self.batch
        return self._connection if self._new else None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None and self._new:
                self._connection.check()
                self._connection.execute(
                    "INSERT OR REPLACE INTO reactive_aio_batches VALUES (?, ?)", (self.query, self.batch)
                )
                await asyncio.to_thread(self._connection.end)
        finally:
            await self._close()

    async def _close(self) -> None:
        """Close the connection, which rolls back uncommitted work."""
        await asyncio.to_thread(self._connection.close)
