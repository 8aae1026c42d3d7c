"""The places to write batches to, and the guarantees of each kind.

The name of a batch is made of its *run* and its number. If a write fails in the middle, a second write of the same run
finds the committed batches and goes on after them.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import evolve, field, frozen

from ...errors import UnsupportedOnSparkError
from ...operators._fluent import is_async
from .._job.asking import check_text
from .._job.calls import is_connect
from .._job.local_properties import NO_PROPERTIES, LocalProperties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAIN: Final = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+)*")
LONGEST: Final = 200
"""The length of a name with which those of folders, that begin with it, are within the 255 bytes of most file systems."""
NUMBER: Final = re.compile(r"[0-9.]+[Ee]")
"""A name before ``-00000001`` that makes a number of it. Spark would read a column of such names as numbers."""
COLUMN: Final = "batch"
OF_A_RUN: Final = r"-(\d{8,}|all)"
"""The end of the names of batches, after that of their run."""
MAKING: Final = Lock()
"""Held while a table is made, which a job of Spark does as well."""
LOCKS: Final[dict[tuple[str | None, ...], Lock]] = {}
"""By table, or folder. Two jobs of Spark that write to one table at once remove each other's files, even those that one has committed.

The lock of a folder is held for a commit, and not for the job before it.
"""
NO_PLAN: Final = "Error occurred during query planning"
"""The beginning of what Spark shows in the place of a plan that it can't make."""
PATIENCE: Final = 10.0
"""Seconds for Spark to report how many rows it has written, or to end its tasks. Mostly it has done so when the write returns."""


@frozen
class Committed:
    """The committed part of a run: its first ``batches`` batches, which have its first ``rows`` rows."""

    run: str
    batches: int = 0
    rows: int = 0
    whole: bool = False
    """Whether the run was written by one Spark job, with ``size=None``."""
    written: bool = field(default=True, eq=False)
    """False if ``size=None`` has written nothing.

    The run was already committed, there were other data with ``mode="ignore"``, or a function of ``Frames`` has begun
    no job of Spark.
    """

    def check(self, *, whole: bool) -> None:
        """Raise if a run was written the other way."""
        if self.batches and self.whole is not whole:
            how = "in one job, with size=None" if self.whole else "in batches, with a size"
            raise ValueError(f"run {self.run!r} was written {how}. Repeat it so, or give another run")


@frozen
class Batch:
    """A batch to write: its run and number, its rows, and the rows before it."""

    run: str
    id: int
    rows: int
    before: int
    whole: bool = False

    @property
    def name(self) -> str:
        """The name of the batch at its place."""
        return f"{self.run}-all" if self.whole else f"{self.run}-{self.id:08}"


def _some_run() -> str:
    return f"r{secrets.token_hex(4)}"  # eight digits of these alone may be a number, such as 1234567e


def _check_run(writer: BatchWriter, _: object, run: str) -> None:
    given: Any = run
    if not isinstance(given, str):
        raise TypeError(f"{type(writer).__name__}(run={run!r}): a run name is a text, not {type(given).__name__}")
    if not PLAIN.fullmatch(run):
        raise ValueError(
            f"{type(writer).__name__}(run={run!r}): a run name has letters and digits, and _, . or - between them"
        )
    if len(run) > LONGEST:
        raise ValueError(
            f"{type(writer).__name__}(run={run[:20] + '…'!r}): a run name has {LONGEST} characters at most, not {len(run)}"
        )
    if NUMBER.fullmatch(run):
        raise ValueError(
            f"{type(writer).__name__}(run={run!r}): Spark would read {run}-00000001 as a number. Begin the name with a letter"
        )


def check_session(writer: BatchWriter, _: object, session: SparkSession) -> None:
    """Raise for another object than a session, classic or of Spark Connect."""
    from pyspark.sql import SparkSession

    given: Any = session
    if not isinstance(given, SparkSession) and not is_connect(given):
        raise TypeError(f"{type(writer).__name__}() takes a session of PySpark, not {type(given).__name__}")


def _check_table(_: object, __: object, table: str) -> None:
    given: Any = table
    if not isinstance(given, str):
        raise TypeError(f"Table(table={given!r}): the name of a table is a text, not {type(given).__name__}")
    if not table.strip():
        raise ValueError(f"Table(table={table!r}): the name of a table must not be empty")
    check_text("Table", "table", table)


@frozen
class BatchWriter(ABC):
    """A place for ``Flow.to_spark`` to write to. Its methods are called on a thread, one at a time.

    ``run`` is the name of the written data: the same run again goes on after the committed batches. Without a name each
    writer is a run of its own.
    """

    repeatable: ClassVar[bool] = False
    """Whether a batch that may have been written in part can be written again without doubling a row."""
    keeps_schema: ClassVar[bool] = False
    """Whether a flow without elements writes a batch without rows, by which readers know the schema."""

    session: SparkSession = field(repr=False, validator=check_session)
    run: str = field(factory=_some_run, kw_only=True, validator=_check_run)
    local_properties: LocalProperties = field(default=NO_PROPERTIES, init=False, repr=False, eq=False)
    """The local properties of the jobs: those of the thread that makes the writer."""

    def __attrs_post_init__(self) -> None:
        context: Any = getattr(self.session, "sparkContext", None)  # a session of Spark Connect has none
        object.__setattr__(self, "local_properties", LocalProperties.here(context))

    def prepare(self, empty: DataFrame) -> None:
        """Prepare for batches with the schema of an empty frame. There may be nothing to do."""
        del empty

    @abstractmethod
    def committed(self) -> Committed:
        """Look up the committed part of the run."""

    @abstractmethod
    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write a batch, all of it or nothing."""

    def write_whole(self, frame: DataFrame) -> Committed:
        """Write a whole run. The frame is lazy, and its tasks count the rows while they are written.

        ``rows`` are those of the evaluation of the frame that has read the most. A partition counts if it was read to
        its end. ``written`` is False if the writer has begun no job.
        """
        from ._counted import Counted

        check_classic(self, frame)
        counted = Counted.of(frame)
        self.write(counted.frame, Batch(self.run, 0, 0, 0, whole=True))
        if not counted.may_be_evaluated():
            return Committed(self.run, whole=True, written=False)
        return Committed(self.run, 1, counted.rows(), whole=True)

    def finish(self) -> None:  # noqa: B027 - mostly there is nothing
        """Finish the work that a committed whole run has left. There may be none."""


def check_classic(writer: BatchWriter, frame: DataFrame) -> None:
    """Refuse a frame of Spark Connect, which can't count its rows."""
    if is_connect(frame):
        raise UnsupportedOnSparkError(
            f"{writer} counts rows by a classic session when size=None. Write to a Table, or use Flow.to_frame() and its own write"
        )


def check_columns(writer: BatchWriter, empty: DataFrame) -> None:
    if COLUMN in {name.lower() for name in empty.columns}:
        raise ValueError(
            f"{writer}: the writer adds the column {COLUMN} with the batch of each row. Rename this column in the schema"
        )


@frozen
class Table(BatchWriter):
    """A table of the session's catalog, partitioned by a column ``batch``: a repeated batch replaces itself.

    A missing table is made as Parquet. A reader may see a part of a batch, or none of it, while it is written or
    replaced. After a failed write, the next one of the same run completes it. Runs of one process take turns, batch by
    batch. A run that waits for its turn ends only after that batch if it is cancelled. Two processes must not write to one
    table at the same time.
    """

    repeatable = True

    table: str = field(validator=_check_table)

    def prepare(self, empty: DataFrame) -> None:
        """Make the table, or check that it has the columns in their order, and the partitions."""
        from pyspark.sql.functions import lit

        check_columns(self, empty)
        with MAKING:
            if not self.session.catalog.tableExists(self.table):
                empty.withColumn(COLUMN, lit("")).write.format("parquet").partitionBy(COLUMN).saveAsTable(self.table)
                return
        wanted = [*empty.columns, COLUMN]
        columns = self.session.table(self.table).columns
        partitions = [each.name for each in self.session.catalog.listColumns(self.table) if each.isPartition]
        if columns != wanted or partitions != [COLUMN]:
            raise ValueError(
                f"{self}: the table has columns {', '.join(columns)}, partitioned by {', '.join(partitions) or 'none'}. "
                f"It needs {', '.join(wanted)}, partitioned by {COLUMN}"
            )
        insert = self._insert(Batch(self.run, 0, 0, 0))
        plan: str = self.session.sql(f"EXPLAIN {insert}", frame=empty).collect()[0][0]
        if plan.startswith(NO_PLAN):
            pairs = zip(empty.schema, self.session.table(self.table).schema, strict=False)
            told = [
                f"{mine.name} is {mine.dataType.simpleString()} and not {its.dataType.simpleString()}"
                for mine, its in pairs
                if mine.dataType != its.dataType
            ]
            raise ValueError(
                f"{self}: Spark can't store the types of the schema in those of the table: {', '.join(told)}"
            )

    def committed(self) -> Committed:
        """Count the partitions of the run, and their rows."""
        from pyspark.sql.functions import col

        own = re.escape(self.run) + OF_A_RUN
        partitions = [row[0] for row in self.session.sql(f"SHOW PARTITIONS {self.table}").collect()]
        batches = [name for name in partitions if re.fullmatch(f"{COLUMN}={own}", name)]
        rows = self.session.table(self.table).where(col(COLUMN).rlike(f"^{own}$"))
        whole = any(name.endswith("-all") for name in batches)
        return Committed(self.run, len(batches), rows.count() if batches else 0, whole)

    def write_whole(self, frame: DataFrame) -> Committed:
        """Write the partition of the run, and count its rows there, in one turn.

        The same run may have been written meanwhile by another call. If it was replaced, its rows would be gone for a moment.
        """
        with self._lock():
            done = self.committed()
            if done.batches:
                done.check(whole=True)
                return evolve(done, written=False)
            self._replace(frame, Batch(self.run, 0, 0, 0, whole=True))
            return self.committed()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Replace the partition of the batch."""
        with self._lock():
            self._replace(frame, batch)

    def _replace(self, frame: DataFrame, batch: Batch) -> None:
        """Replace a partition, and no other: `insertInto` would overwrite the whole table."""
        self.session.sql(self._insert(batch), frame=frame if batch.whole else frame.coalesce(1))

    def _insert(self, batch: Batch) -> str:
        return f"INSERT OVERWRITE TABLE {self.table} PARTITION ({COLUMN} = '{batch.name}') SELECT * FROM {{frame}}"

    def _lock(self) -> Lock:
        """Return the lock of the table, which may have several names."""
        found = self.session.catalog.getTable(self.table)
        return LOCKS.setdefault((found.catalog, *(found.namespace or ()), found.name), Lock())


@frozen
class Frames(BatchWriter):
    """Your own function, called with the frame of each batch and its number, as by ``foreachBatch``.

    The guarantee is at least once, because a flow that is run again writes all batches again. It is exactly once if the
    function drops or replaces a number that it has seen.

    With ``size=None`` the function gets one lazy frame, and may evaluate it by any actions, and several times. ``rows``
    of the result are those of the evaluation that has read the most. A partition counts if it was read to its end. So
    behind ``limit()`` there may be fewer. ``written`` is False only if no Spark job has begun meanwhile.
    """

    fn: Callable[[DataFrame, int], object]

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not callable(self.fn):
            raise TypeError(f"Frames(fn={self.fn!r}): fn must be a function of a DataFrame and a number")
        if is_async(self.fn):
            raise TypeError(
                f"Frames(fn={self.fn!r}): fn must be an ordinary function, because it runs on a thread without an event loop"
            )

    def committed(self) -> Committed:
        """Return no committed batches."""
        return Committed(self.run)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Call the function."""
        self.fn(frame, batch.id)
