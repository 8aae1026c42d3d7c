"""Where batches are written to, and what each kind of place guarantees.

A batch has a name, made of the *run* it belongs to and its number. A second write of the same run, because the first has failed in the middle,
finds the batches that are there and goes on behind them.
"""

from __future__ import annotations

import json
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import asdict, field, frozen

from ...errors import SparkJobError, UnsupportedOnSparkError
from ...operators._fluent import check_count, is_async
from .._job.calls import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# `Any` is the JVM here, which has no types.

PLAIN: Final = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+)*")
MANIFEST: Final = "_batch.json"
"""Lies beside the data of a batch; Spark reads no file whose name begins so."""
COLUMN: Final = "batch"


@frozen
class Committed:
    """The written part of a run: its first ``batches`` batches, which are its first ``rows`` rows."""

    run: str
    batches: int = 0
    rows: int = 0


@frozen
class Batch:
    """A batch to be written: its run and number, its rows, and the rows before it."""

    run: str
    id: int
    rows: int
    before: int

    @property
    def name(self) -> str:
        """The name by which it is known where it is written to."""
        return f"{self.run}-{self.id:08}"


def _some_run() -> str:
    return secrets.token_hex(4)


def _check_run(writer: BatchWriter, _: object, run: str) -> None:
    if not PLAIN.fullmatch(run):
        raise ValueError(
            f"{type(writer).__name__}(run={run!r}): a run name has letters and digits, and _, . or - between them"
        )


@frozen
class BatchWriter(ABC):
    """Where ``Flow.to_spark`` writes to; its methods are called on a thread, one at a time.

    ``run`` names what is written: the same run again goes on behind the batches that are there. Without a name
    each writer is a run of its own.
    """

    repeatable: ClassVar[bool] = False
    """Whether a batch that may have been written in part can be written again without doubling a row."""

    session: SparkSession = field(repr=False)
    run: str = field(factory=_some_run, kw_only=True, validator=_check_run)

    def prepare(self, empty: DataFrame) -> None:
        """Make ready for batches with the schema of an empty frame; there may be nothing to do."""
        del empty

    @abstractmethod
    def committed(self) -> Committed:
        """Look up what is there of the run."""

    @abstractmethod
    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write a batch, all of it or nothing."""


def _check_columns(writer: BatchWriter, empty: DataFrame) -> None:
    if COLUMN in {name.lower() for name in empty.columns}:
        raise ValueError(
            f"{writer}: the writer adds the column {COLUMN} with the batch of each row. Rename this column in the schema"
        )


def _check_classic(writer: BatchWriter, _: object, session: SparkSession) -> None:
    if is_connect(session):
        raise UnsupportedOnSparkError(
            f"{type(writer).__name__}(session) needs a classic session, because Spark Connect has no access to Spark's file systems. "
            "Write to a Table or with Frames, or build the session with .master(...), not with .remote(...)"
        )


def _path(path: str | PathLike[str]) -> str:
    return fspath(path)


def _check_parts(_: object, __: object, parts: int | None) -> None:
    if parts is not None:
        check_count("Files", "parts", parts, 1)


def _check_folder(_: object, __: object, path: str) -> None:
    if not path:
        raise ValueError("Files(path=''): path must not be empty")


@frozen
class Files(BatchWriter):
    """Files of Spark, Parquet by default, in a folder for each batch: exactly once.

    A batch is written beside and gets its name, ``batch=<run>-<number>``, by one rename, which is atomic on local
    file systems and on HDFS. On object stores it is not, and a reader may see a part of a batch while it is moved.
    ``spark.read.parquet(path)`` reads all committed batches, with their names in a column ``batch``;
    ``spark.readStream.schema(...).parquet(path)`` follows them.
    """

    repeatable = True

    session: SparkSession = field(repr=False, validator=_check_classic)
    path: str = field(converter=_path, validator=_check_folder)
    format: str = field(default="parquet", kw_only=True)
    parts: int | None = field(default=1, kw_only=True, validator=_check_parts)
    """The files of a batch; None for as many as Spark makes."""
    options: Mapping[str, str] = field(factory=dict[str, str], kw_only=True)
    """Options of the DataFrameWriter, such as the compression."""

    def prepare(self, empty: DataFrame) -> None:
        """Keep the name of the column that says the batch."""
        _check_columns(self, empty)

    def committed(self) -> Committed:
        """Count the folders of the run, and read the manifest of the last."""
        _, files = self._hadoop()
        names = sorted(self._names(files))
        own = [name for name in names if re.fullmatch(rf"{COLUMN}={re.escape(self.run)}-\d{{8,}}", name)]
        if not own:
            return Committed(self.run)
        text = bytes(files.open(self._path(own[-1], MANIFEST)).readAllBytes())
        try:
            last = json.loads(text)
        except ValueError as error:
            raise SparkJobError(f"{self}: {own[-1]}/{MANIFEST} is damaged: {error}") from error
        if last["id"] + 1 != len(own):
            raise SparkJobError(f"{self}: the run has {len(own)} batches, but the last one has the number {last['id']}")
        return Committed(self.run, len(own), last["before"] + last["rows"])

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write beside, with the manifest, and rename; by a name of its own, should another process be at the same run."""
        java, files = self._hadoop()
        fs = java.org.apache.hadoop.fs
        aside = self._path(f"_writing-{batch.name}-{secrets.token_hex(4)}")
        frame = frame if self.parts is None else frame.coalesce(self.parts)
        try:
            frame.write.mode("overwrite").format(self.format).options(**self.options).save(str(aside))
            flags = java.java.util.EnumSet.of(fs.CreateFlag.CREATE, fs.CreateFlag.OVERWRITE)
            manifest = self._path(aside.getName(), MANIFEST)
            out = files.create(manifest, flags, self._none(getattr(fs, "Options$CreateOpts")))
            out.write(bytearray(json.dumps(asdict(batch)).encode()))
            out.close()
            # Unlike FileSystem's, this rename fails if the target is there, rather than move the folder into it.
            files.rename(aside, self._path(f"{COLUMN}={batch.name}"), self._none(getattr(fs, "Options$Rename")))
        except Exception:
            with suppress(Exception):  # the failure says more, and what is left is hidden
                files.delete(aside, True)
            raise
        with suppress(Exception):  # nobody can commit this batch any more, so what others have left of it is of no use
            for left in self._names(files):
                if left.startswith(f"_writing-{batch.name}"):
                    files.delete(self._path(left), True)

    def _names(self, files: Any) -> list[str]:
        """List what lies in the folder; a glob would take a part of the path for a pattern too."""
        root = self._path()
        return [each.getPath().getName() for each in files.util().listStatus(root)] if files.util().exists(root) else []

    def _hadoop(self) -> tuple[Any, Any]:
        context: Any = self.session.sparkContext
        java = context._jvm
        conf = context._jsc.hadoopConfiguration()
        root = java.org.apache.hadoop.fs.Path(self.path)
        uri = root.getFileSystem(conf).makeQualified(root).toUri()
        return java, java.org.apache.hadoop.fs.FileContext.getFileContext(uri, conf)

    def _path(self, *names: str) -> Any:
        context: Any = self.session.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path
        root = path(self.path)
        root = root.getFileSystem(context._jsc.hadoopConfiguration()).makeQualified(root)
        for name in names:
            root = path(root, name)
        return root

    def _none(self, kind: Any) -> Any:
        """Give no options of a kind."""
        context: Any = self.session.sparkContext
        return context._gateway.new_array(kind, 0)


@frozen
class Table(BatchWriter):
    """A table of the session's catalog, partitioned by a column ``batch``: a batch written again replaces itself.

    The table is made as Parquet if it is not there. A reader may see a part of a batch, or none of it, while it is
    written or replaced. When a write has failed, the next one of the same run makes it whole.
    """

    repeatable = True

    table: str

    def prepare(self, empty: DataFrame) -> None:
        """Make the table, or see that it has the columns in their order, and the partitions."""
        from pyspark.sql.functions import lit

        _check_columns(self, empty)
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

    def committed(self) -> Committed:
        """Count the partitions of the run, and their rows."""
        from pyspark.sql.functions import col

        own = re.escape(self.run) + r"-\d{8,}"
        partitions = [row[0] for row in self.session.sql(f"SHOW PARTITIONS {self.table}").collect()]
        batches = sum(re.fullmatch(f"{COLUMN}={own}", name) is not None for name in partitions)
        rows = self.session.table(self.table).where(col(COLUMN).rlike(f"^{own}$"))
        return Committed(self.run, batches, rows.count() if batches else 0)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Replace the partition of the batch, and no other: `insertInto` would overwrite the whole table."""
        self.session.sql(
            f"INSERT OVERWRITE TABLE {self.table} PARTITION ({COLUMN} = '{batch.name}') SELECT * FROM {{frame}}",
            frame=frame.coalesce(1),
        )


@frozen
class Frames(BatchWriter):
    """A function of one's own, called with the frame of each batch and its number, as by ``foreachBatch``.

    Its guarantee is its own: at least once, since a flow that is run again writes all batches again. It is exactly once
    if the function drops or replaces a number that it has seen.
    """

    fn: Callable[[DataFrame, int], object]

    def __attrs_post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"Frames(fn={self.fn!r}): fn must be a function of a DataFrame and a number")
        if is_async(self.fn):
            raise TypeError(
                f"Frames(fn={self.fn!r}): fn must be an ordinary function, because it runs on a thread without an event loop"
            )

    def committed(self) -> Committed:
        """Know of none."""
        return Committed(self.run)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Call the function."""
        self.fn(frame, batch.id)
