"""Writes a flow in batches, one after the other, each of them as a whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from attrs import define, field
from pyspark.errors import PySparkException

from ..._core.guard import FAILURES, as_failure, as_of_a_generator
from ..._core.notes import add_note
from ...errors import SparkJobError
from .._frame.task import packed, unpacked
from .._job.asking import STOPPED, answers, check_running, is_stopped
from .._job.calls import Calls, is_connect, jobs_of
from .._job.told import told
from .._task.zones import zone_of
from ._columns import Columns
from ._schema import Schema, check_schema, struct_of
from ._writers import Batch, BatchWriter, Committed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..._flow.flow import Flow

RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


async def to_spark(
    flow: Flow[Any],
    writer: BatchWriter,
    schema: Schema,
    batch: int,
    seconds: float | None,
    offset: int,
    max_retries: int,
    progress: Callable[[Committed], object] | None,
) -> Committed:
    """Write a flow. The arguments are those of ``Flow.to_spark``."""
    check_arguments(writer, schema)
    if getattr(writer, "mode", "append") != "append":
        raise ValueError(
            f"to_spark(size={batch}): {writer} adds batches, so its mode is 'append'. Set size=None for others"
        )
    if max_retries and not writer.repeatable:
        raise ValueError(
            f"to_spark(max_retries={max_retries}): {writer} can't tell how much of a failed batch it has written. Set max_retries=0"
        )
    async with Calls(jobs_of(writer.session, f"reactive_aio: to_spark({writer})", writer.local_properties)) as calls:
        sink = Sink(writer, calls, max_retries, progress)
        committed = await sink.begin(schema)
        committed.check(whole=False)
        first = committed.rows - offset
        if first < 0:
            raise ValueError(
                f"to_spark(offset={offset}): run {writer.run!r} has only {committed.rows} rows, so the rows "
                "between would be lost"
            )
        rest = flow.skip(first)
        batched = rest.buffer(batch) if seconds is None else rest.buffer_timeout(batch, seconds)
        try:
            async with batched.open() as batches:
                async for items in batches:
                    await sink.add(items)
            if writer.keeps_schema and not sink.done.batches:
                await sink.add([])
        except BaseException as error:  # the one that has failed, or cancelled
            done = sink.done
            add_note(error, f"to_spark: {done.batches} batches of run {done.run!r} are committed, {done.rows} rows")
            raise
    return sink.done


def check_arguments(writer: BatchWriter, schema: Schema) -> None:
    """Raise unless the arguments are a writer and a schema, and if a session has been stopped."""
    given: Any = writer
    if not isinstance(given, BatchWriter):
        raise TypeError(
            f"to_spark() takes a writer of reactive_aio.spark.sink, such as Files(session, path), not "
            f"{type(given).__name__}"
        )
    check_running("to_spark", writer.session)
    check_schema("to_spark", schema)


def tell(progress: Callable[[Committed], object], done: Committed) -> None:
    """Report progress. A CancelledError of the callback cancels nothing, and a StopIteration ends nothing."""
    try:
        progress(done)
    except (asyncio.CancelledError, StopIteration) as error:
        raise as_of_a_generator(as_failure(error), "progress") from error


@define(eq=False)
class Sink:
    """The written part of a run, and how to write more."""

    writer: BatchWriter
    calls: Calls
    max_retries: int
    progress: Callable[[Committed], object] | None
    done: Committed = field(init=False)
    _columns: Columns = field(init=False)

    async def begin(self, schema: Schema) -> Committed:
        """Look up the committed batches."""
        self.done = await self.calls(self._begin, schema)
        return self.done

    def _begin(self, schema: Schema) -> Committed:
        session = self.writer.session
        kind = schema if isinstance(schema, type) else None
        try:
            struct = struct_of("to_spark", schema)
            self._columns = Columns(struct, kind, zone_of(str(session.conf.get("spark.sql.session.timeZone"))))
            self.writer.prepare(session.createDataFrame([], struct))
            return self.writer.committed()
        except FAILURES as error:
            raise_told(self.writer, error, "the batches of the run could not be read")

    async def add(self, items: list[Any]) -> None:
        """Write a batch, and report it."""
        done = self.done
        batch = Batch(done.run, done.batches, len(items), done.rows)
        await self.calls(self._add, items, batch)
        self.done = Committed(done.run, done.batches + 1, done.rows + len(items))
        if self.progress is not None:
            tell(self.progress, self.done)

    def _add(self, items: list[Any], batch: Batch) -> None:
        table = self._columns.table(items, batch.before)
        for left in range(self.max_retries, -1, -1):
            try:
                self.writer.write(frame_of(self.writer.session, table, self._columns.struct), batch)
            except FAILURES as error:
                # A write whose answer was lost may have been done all the same.
                if self.writer.repeatable and self._is_there(batch):
                    return
                if not left:
                    raise_told(self.writer, error, f"batch #{batch.id} was not written")
            else:
                return

    def _is_there(self, batch: Batch) -> bool:
        try:
            return self.writer.committed() == Committed(batch.run, batch.id + 1, batch.before + batch.rows)
        except FAILURES:
            return False  # the failure of the write says more


def frame_of(session: Any, table: Any, struct: StructType) -> Any:
    """Return the frame of a table of Arrow.

    PySpark cuts a table into batches of `RECORDS`. It fails if that is 0, which stands for no limit. So the batches then travel packed.
    """
    if is_connect(session) or int(session.conf.get(RECORDS)) > 0:
        return session.createDataFrame(table, struct)
    return session.createDataFrame([packed(table)], "batch binary").mapInArrow(unpacked, struct)


def raise_told(writer: BatchWriter, error: BaseException, what: str) -> NoReturn:
    """Raise Spark's failures as SparkJobError, and an exception of a user's function unchanged."""
    from py4j.protocol import Py4JError

    stopped = is_stopped(writer.session)  # then it may be an error of any type
    of_spark = isinstance(error, Exception if stopped else (PySparkException, Py4JError))
    if not of_spark and (not isinstance(error, OSError) or answers(writer.session)):
        raise error
    raise SparkJobError(f"to_spark({writer}): {what}: {STOPPED if stopped else told(error)}") from error
