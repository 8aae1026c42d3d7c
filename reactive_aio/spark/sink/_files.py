"""Batches as folders of files, each with a manifest. One rename makes a folder visible."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, evolve, field, frozen

from ..._core.containers import new_dict
from ...errors import SparkJobError, UnsupportedOnSparkError
from ...operators._fluent import check_count
from .._job.asking import check_text, text_of_path
from .._job.calls import is_connect
from .._job.once import settings
from .._job.told import told
from ._writers import COLUMN, LOCKS, OF_A_RUN, PATIENCE, Batch, BatchWriter, Committed, check_columns, check_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# `Any` is the JVM here, which has no types.

MANIFEST: Final = "_batch.json"
"""The file beside the data of a batch. Spark reads no file with such a name."""
LEFTOVER: Final = "-[^-]+"
"""The end of the names of temporary folders, after that of their batch. A longer name is another run's."""
REPLACES: Final = "_replaces.json"
"""The file with the names that a run still has to remove."""
MODES: Final = ("append", "overwrite", "error", "ignore")
OF_FILES: Final = (
    "org.apache.spark.sql.execution.datasources.FileFormat",
    "org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2",
)
"""The types of Spark's own formats that are files."""


def _check_classic(writer: BatchWriter, _: object, session: SparkSession) -> None:
    if is_connect(session):
        raise UnsupportedOnSparkError(
            f"{type(writer).__name__}(session) needs a classic session, because Spark Connect has no access to Spark's file systems. "
            "Write to a Table or with Frames, or build the session with .master(...), not with .remote(...)"
        )


def _path(path: str | PathLike[str]) -> str:
    text = text_of_path(path)
    if text is None:
        raise TypeError(f"Files(path={path!r}): path is a text or the path of one, not {type(path).__name__}")
    check_text("Files", "path", text)
    return text


def _check_format(_: object, __: object, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"Files(format={name!r}): format is the name of one of Spark's, not {type(name).__name__}")
    check_text("Files", "format", name)


def _check_options(_: object, __: object, options: Any) -> None:
    checked: object = options  # its declared type, which the test narrows
    if not isinstance(checked, Mapping):
        raise TypeError(f"Files(options={options!r}): options are a dict, such as {{'compression': 'zstd'}}")
    for name, value in options.items():
        if not isinstance(name, str):
            raise TypeError(f"Files(options={options!r}): the name of an option is a text, not {type(name).__name__}")
        check_text("Files", "options", f"{name}={value}")


def _check_parts(_: object, __: object, parts: int | None) -> None:
    if parts is not None:
        check_count("Files", "parts", parts, 1)


def _check_folder(_: object, __: object, path: str) -> None:
    if not path:
        raise ValueError("Files(path=''): path must not be empty")


def _check_mode(_: object, __: object, mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"Files(mode={mode!r}): mode is one of {', '.join(MODES)}")


def _columns(names: str | Sequence[str]) -> tuple[str, ...]:
    given: Any = names
    several = hasattr(given, "__iter__") and not isinstance(given, str)
    columns: tuple[Any, ...] = tuple(given) if several else (given,)
    if not all(isinstance(each, str) for each in columns):
        raise TypeError(f"Files(partition_by={names!r}): partition_by is the name of a column, or a list of names")
    if len(set(columns)) < len(columns):
        raise ValueError(f"Files(partition_by={columns}): a column is named twice")
    return columns


@frozen
class Files(BatchWriter):
    """Files of Spark, Parquet by default, in a folder for each batch: exactly once.

    A batch is written to a temporary folder. One rename gives it its name, ``batch=<run>-<number>``. The rename is
    atomic on local file systems and on HDFS. On object stores it is not, and a reader may see a part of a batch
    meanwhile. ``spark.read.parquet(path)`` reads all committed batches, with their names in a column ``batch``.
    ``spark.readStream.schema(...).parquet(path)`` follows them.
    """

    repeatable = True
    keeps_schema = True

    session: SparkSession = field(repr=False, validator=[check_session, _check_classic])
    path: str = field(converter=_path, validator=_check_folder)
    format: str = field(default="parquet", kw_only=True, validator=_check_format)
    parts: int | None = field(default=1, kw_only=True, validator=_check_parts)
    """The number of files of a batch, by default chosen by Spark. With ``size=None`` each task writes its own."""
    mode: str = field(default="append", kw_only=True, validator=_check_mode)
    """With ``size=None``: ``"append"``, or ``"overwrite"``, ``"error"`` or ``"ignore"`` if there are other data."""
    partition_by: tuple[str, ...] = field(default=(), kw_only=True, converter=_columns)
    """Columns whose values become names of folders inside that of the batch."""
    options: Mapping[str, str] = field(factory=new_dict, kw_only=True, validator=_check_options)
    """Options of the DataFrameWriter, such as the compression."""

    def prepare(self, empty: DataFrame) -> None:
        """Reserve the name of the batch column, and check the format and the columns of the folders."""
        check_columns(self, empty)
        self._check_kind()
        for name in self.partition_by:
            if name not in empty.columns:
                raise ValueError(f"Files(partition_by={self.partition_by}): the schema has no column {name}")
        if len(self.partition_by) == len(empty.columns):
            raise ValueError(
                f"Files(partition_by={self.partition_by}): these are all columns of the schema, and files need another one"
            )

    def _check_kind(self) -> None:
        """Raise for a format that Spark does not know, or in which it writes no files. It does not know of others' formats."""
        context: Any = self.session.sparkContext
        kinds, classes = context._jvm.org.apache.spark.sql.execution.datasources, context._jvm.java.lang.Class
        try:
            kind = kinds.DataSource.lookupDataSource(self.format, settings(self.session))
        except Exception as error:
            raise ValueError(f"Files(format={self.format!r}): {told(error)}") from error
        loader, name = kind.getClassLoader(), kind.getName()
        if name.startswith("org.apache.spark.") and not any(
            classes.forName(each, False, loader).isAssignableFrom(kind) for each in OF_FILES
        ):
            raise ValueError(
                f"Files(format={self.format!r}): Spark writes no files in this format. Choose another, such as parquet or json"
            )

    def committed(self) -> Committed:
        """Count the folders of the run, and read the manifest of the last."""
        _, files = self._hadoop()
        names = sorted(self._names(files))
        own = [name for name in names if re.fullmatch(f"{COLUMN}={re.escape(self.run)}{OF_A_RUN}", name)]
        if not own:
            return Committed(self.run)
        last = self._read(files, own[-1], MANIFEST)
        try:
            number, rows = int(last["id"]), int(last["before"]) + int(last["rows"])
        except (TypeError, KeyError, ValueError) as error:
            raise self._damaged(own[-1], MANIFEST, f"it is no manifest of a batch: {last!r}") from error
        if number + 1 != len(own):
            raise SparkJobError(f"{self}: the run has {len(own)} batches, but the last one has the number {number}")
        return Committed(self.run, len(own), rows, own[-1].endswith("-all"))

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write to a temporary folder, with the manifest, and rename it."""
        with self._aside(batch) as aside:
            self._commit(aside, self._save(frame, batch, aside))

    @contextmanager
    def _aside(self, batch: Batch) -> Generator[Any]:
        """Name a temporary folder, unique among processes. It is removed after a failure."""
        _, files = self._hadoop()
        aside = self._path(f"_writing-{batch.name}-{secrets.token_hex(4)}")
        try:
            yield aside
        except Exception:
            # The failure says more than one here, and what is left is hidden.
            with suppress(Exception):
                self._wait_for_tasks()
            with suppress(Exception):
                files.delete(aside, True)
            raise

    def _save(self, frame: DataFrame, batch: Batch, aside: Any) -> Batch:
        """Write the files, and return the batch with its rows."""
        counted = None
        if batch.whole:
            frame, counted = _observed(frame)
        elif self.parts is not None:
            frame = frame.coalesce(self.parts)
        writing = frame.write.mode("overwrite").format(self.format).options(**self.options)
        (writing.partitionBy(*self.partition_by) if self.partition_by else writing).save(str(aside))
        return batch if counted is None else evolve(batch, rows=self._told(counted()))

    def _commit(self, aside: Any, batch: Batch) -> None:
        java, files = self._hadoop()
        fs = java.org.apache.hadoop.fs
        if batch.whole and self.mode == "overwrite":
            self._note(aside.getName(), REPLACES, self._others())
        self._note(aside.getName(), MANIFEST, asdict(batch))
        # Unlike FileSystem's, this rename fails if the target is there, rather than move the folder into it.
        files.rename(aside, self._path(f"{COLUMN}={batch.name}"), self._none(getattr(fs, "Options$Rename")))
        with suppress(Exception):  # nobody can commit this batch any more, so what others have left of it is of no use
            for left in self._names(files):
                if re.fullmatch(f"_writing-{re.escape(batch.name)}{LEFTOVER}", left):
                    files.delete(self._path(left), True)

    def write_whole(self, frame: DataFrame) -> Committed:
        """Write the folder of the run, if the mode allows it."""
        others = self._others() if self.mode in {"error", "ignore"} else []
        if others and self.mode == "ignore":
            return Committed(self.run, whole=True, written=False)
        if others:
            raise FileExistsError(f"{self}: there are other data already, such as {others[0]}")
        batch = Batch(self.run, 0, 0, 0, whole=True)
        with self._aside(batch) as aside:
            batch = self._save(frame, batch, aside)
            # Else, of two that overwrite the folder at once, neither may see the other, and both would stay.
            with LOCKS.setdefault((None, str(self._path())), Lock()):
                self._commit(aside, batch)
                self.finish()
                return self.committed()

    def finish(self) -> None:
        """Remove the data that the run replaces, after its commit, so that a crash loses nothing."""
        _, files = self._hadoop()
        own = f"{COLUMN}={self.run}-all"
        if REPLACES not in self._names(files, own):
            return
        for name in self._read(files, own, REPLACES):
            files.delete(self._path(name), True)
        files.delete(self._path(own, REPLACES), False)

    def _wait_for_tasks(self) -> None:
        """Wait for the tasks of the job that has failed here. One that Spark has not ended yet would make its folder anew."""
        context: Any = self.session.sparkContext
        tracker: Any = context.statusTracker()
        jobs = tracker.getJobIdsForGroup(context.getLocalProperty("spark.jobGroup.id"))
        stages = tracker.getJobInfo(max(jobs)).stageIds
        until = time.monotonic() + PATIENCE
        while any(info.numActiveTasks for info in map(tracker.getStageInfo, stages) if info is not None):
            if time.monotonic() > until:
                return
            time.sleep(0.01)

    def _told(self, rows: int | None) -> int:
        if rows is None:
            raise SparkJobError(f"{self}: Spark has not told how many rows it has written")
        return rows

    def _others(self) -> list[str]:
        """List the data of others, without entries that Spark hides from readers."""
        own = f"{COLUMN}={self.run}-all"
        return sorted(name for name in self._names(self._hadoop()[1]) if not is_hidden(name) and name != own)

    def _note(self, folder: str, name: str, what: object) -> None:
        java, files = self._hadoop()
        fs = java.org.apache.hadoop.fs
        flags = java.java.util.EnumSet.of(fs.CreateFlag.CREATE, fs.CreateFlag.OVERWRITE)
        out = files.create(self._path(folder, name), flags, self._none(getattr(fs, "Options$CreateOpts")))
        out.write(bytearray(json.dumps(what).encode()))
        out.close()

    def _read(self, files: Any, folder: str, name: str) -> Any:
        text = bytes(files.open(self._path(folder, name)).readAllBytes())
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._damaged(folder, name, error) from error

    def _damaged(self, folder: str, name: str, why: object) -> SparkJobError:
        return SparkJobError(f"{self}: {folder}/{name} is damaged: {why}")

    def _names(self, files: Any, *folder: str) -> list[str]:
        """List the content of a folder. A glob would also treat the path as a pattern."""
        root = self._path(*folder)
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
        """Return no option of a kind."""
        context: Any = self.session.sparkContext
        return context._gateway.new_array(kind, 0)


def is_hidden(name: str) -> bool:
    """Return whether Spark hides an entry of a folder from readers. The folder of a column may begin with _, as in _day=3.

    >>> [is_hidden(name) for name in ("_SUCCESS", ".part", "part._COPYING_", "_day=3", "part-0")]
    [True, True, True, False, False]
    """
    return name[0] == "." or (name[0] == "_" and "=" not in name) or name.endswith("._COPYING_")


def _observed(frame: DataFrame) -> tuple[DataFrame, Callable[[], int | None]]:
    """Return a frame that counts its rows, and a function for their number or None, once it has been written.

    An Observation sees the first action only, and there is no other here. It costs no task in Python.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation = Observation()
    observed = frame.observe(observation, count(lit(1)).alias("rows"))
    seen: Any = observation

    def counted() -> int | None:
        # Asked before it is waited for: `get` would wait for ever if Spark reports nothing.
        until = time.monotonic() + PATIENCE
        while not seen._jo.future().isCompleted():
            if time.monotonic() > until:
                return None
            time.sleep(0.01)
        return int(observation.get.get("rows", 0))

    return observed, counted
