"""The transaction of a ledger ends when the handler has ended, and not before, whatever the handler does with it."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import SqliteLedger, exactly_once
from tests.spark.waiting import LIMIT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    connection.close()
    return tmp_path / "ledger.db"


def written(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    numbers = [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]
    connection.close()
    return numbers


async def handled(path: Path, handle: Callable[[sqlite3.Connection], object]) -> bool:
    """Handle a batch, and tell whether it had not taken effect before."""
    async with SqliteLedger(path).entry("query", 0) as connection:
        if connection is not None:
            handle(connection)
        return connection is not None


def insert(connection: sqlite3.Connection, *numbers: int) -> None:
    connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in numbers])


async def test_a_block_of_the_connection_commits_nothing_by_itself(path: Path) -> None:
    def failing(connection: sqlite3.Connection) -> None:
        with connection:
            insert(connection, 1, 2)
        raise OSError("behind the block")

    def well(connection: sqlite3.Connection) -> None:
        with connection:
            insert(connection, 1, 2)

    with pytest.raises(OSError, match="behind the block"):
        await handled(path, failing)
    assert [] == written(path)
    assert [True, False] == [await handled(path, well), await handled(path, well)]
    assert [1, 2] == written(path)


async def test_a_block_that_fails_is_undone_by_itself(path: Path) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        with connection:
            insert(connection, 2)
            with connection:
                insert(connection, 3)
            raise ValueError("inside")

    def handle(connection: sqlite3.Connection) -> None:
        insert(connection, 1)
        with pytest.raises(ValueError, match="inside"):
            fail(connection)
        insert(connection, 4)

    assert await handled(path, handle)
    assert [1, 4] == written(path)


@pytest.mark.parametrize(
    "end",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        lambda connection: connection.execute("COMMIT"),
        lambda connection: connection.cursor().execute("END"),
        lambda connection: connection.execute("ROLLBACK"),
        lambda connection: connection.executescript("DELETE FROM numbers"),
        lambda connection: connection.cursor().executescript("DELETE FROM numbers"),
    ],
    ids=["commit", "rollback", "COMMIT", "END", "ROLLBACK", "executescript", "executescript of a cursor"],
)
async def test_whatever_else_would_end_the_transaction_is_refused(
    path: Path, end: Callable[[sqlite3.Connection], object]
) -> None:
    def handle(connection: sqlite3.Connection) -> None:
        insert(connection, 1)
        with pytest.raises(sqlite3.Error):
            end(connection)
        insert(connection, 2)
        raise OSError("behind it")

    with pytest.raises(OSError, match="behind it"):
        await handled(path, handle)
    assert [] == written(path)


async def test_where_sqlite_has_rolled_back_the_batch_has_not_taken_effect(path: Path) -> None:
    def handle(connection: sqlite3.Connection) -> None:
        insert(connection, 1)
        with pytest.raises(sqlite3.IntegrityError), connection:
            connection.execute("INSERT OR ROLLBACK INTO numbers VALUES (1)")

    with pytest.raises(sqlite3.Error):
        await handled(path, handle)
    assert [] == written(path)
    assert await handled(path, lambda connection: insert(connection, 5))
    assert [5] == written(path)


@pytest.mark.parametrize(
    "more",
    [
        lambda connection: connection.__enter__(),
        lambda connection: connection.execute("SAVEPOINT mine"),
        lambda connection: connection.execute("CREATE TABLE others (n INTEGER)"),
        lambda connection: insert(connection, 2),
    ],
    ids=["block", "savepoint", "CREATE TABLE", "INSERT"],
)
async def test_where_sqlite_has_rolled_back_nothing_more_takes_effect(
    path: Path, more: Callable[[sqlite3.Connection], object]
) -> None:
    def handle(connection: sqlite3.Connection) -> None:
        insert(connection, 1)
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO numbers VALUES (1)")
        with pytest.raises(sqlite3.Error):
            more(connection)

    with pytest.raises(sqlite3.ProgrammingError, match="SQLite has rolled back the transaction"):
        await handled(path, handle)
    assert [] == written(path)
    with sqlite3.connect(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"numbers", "reactive_aio_batches"} == tables


@pytest.mark.parametrize("path", [":memory:", ""])
def test_a_database_that_forgets_is_no_ledger(path: str) -> None:
    with pytest.raises(ValueError, match=r"forgets each batch\. Set the path of a file"):
        SqliteLedger(path)


def test_what_is_no_path_is_refused() -> None:
    path: Any = 5
    with pytest.raises(TypeError, match=r"SqliteLedger\(path=5\): path must be the path of a file"):
        SqliteLedger(path)


async def _generator(batch: Any, transaction: Any) -> Any:
    yield batch, transaction


@pytest.mark.parametrize(
    ("handle", "ledger", "told"),
    [
        (None, SqliteLedger("a.db"), "takes a function, not NoneType"),
        (_generator, SqliteLedger("a.db"), "exactly_once"),
        (print, "a.db", r"takes a ledger, such as SqliteLedger\(path\), not str"),
        (print, SqliteLedger, "takes a ledger, .* not SqliteLedger"),
    ],
    ids=["no function", "async generator", "no ledger", "its class"],
)
def test_exactly_once_refuses_at_once(handle: Any, ledger: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        exactly_once(handle, ledger)


@pytest.mark.parametrize("begun", [False, True])
async def test_a_cancel_while_it_begins_leaves_the_file_free(
    path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    at_it, go_on, over, begin = Event(), Event(), Event(), SqliteLedger.begin

    def slow(ledger: SqliteLedger) -> Any:
        at_it.set()
        go_on.wait(LIMIT)
        connection = begin(ledger)
        over.set()
        return connection

    monkeypatch.setattr(SqliteLedger, "begin", slow)
    running = asyncio.create_task(handled(path, lambda connection: insert(connection, 1)))
    await asyncio.to_thread(at_it.wait, LIMIT)
    if begun:
        go_on.set()
        over.wait(LIMIT)  # the loop has not heard of it
    gc.disable()
    try:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        go_on.set()
        await asyncio.to_thread(over.wait, LIMIT)
        with sqlite3.connect(path, check_same_thread=False) as other:
            await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        other.close()
    finally:
        gc.enable()
    assert [] == written(path)


class Handed:
    """A micro-batch as `exactly_once` sees it."""

    query, id = "query", 0

    def __init__(self) -> None:
        self.errors: list[type[BaseException] | None] = []

    async def __aenter__(self) -> Handed:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.errors.append(kind)


async def test_a_handler_that_is_no_async_function_is_named_and_nothing_of_it_stays(path: Path) -> None:
    def ordinary(_: object, connection: sqlite3.Connection) -> None:
        insert(connection, 1)

    batch, unfit = Handed(), cast("Any", ordinary)
    handle: Callable[[Any], Awaitable[None]] = exactly_once(unfit, SqliteLedger(path))

    with pytest.raises(TypeError, match=r"exactly_once\(\) takes an async def function, but ordinary returned None"):
        await handle(batch)

    assert [] == written(path)
    assert [TypeError] == batch.errors
