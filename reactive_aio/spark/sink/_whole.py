"""Writes a flow on Spark by one job: its tasks make the rows and write them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

from attrs import evolve

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ...errors import UnsupportedOnSparkError
from .._frame.framing import to_frame
from .._job.asking import asking
from .._job.calls import Calls, jobs_of
from .._job.told import notes_in
from ._schema import Schema, struct_of
from ._writers import BatchWriter, Committed
from ._writing import check_arguments, raise_told, tell

if TYPE_CHECKING:
    from ..._flow.flow import Flow

NOT_WRITTEN: Final = "run {!r} was not written to its end"
AGAIN: Final = "to_spark: the same run again writes all of it, or finds it written"
UNKNOWN: Final = "to_spark: this writer can't tell how much of the run it has written"


async def to_spark_whole(
    flow: Flow[Any], writer: BatchWriter, schema: Schema, progress: Callable[[Committed], object] | None
) -> Committed:
    """Write a flow. The arguments are those of ``Flow.to_spark``."""
    check_arguments(writer, schema)
    async with Calls(jobs_of(writer.session, f"reactive_aio: to_spark({writer})", writer.local_properties)) as calls:
        done = await calls(_written, flow, writer, schema)
    if progress is not None:
        tell(progress, done)
    return done


def _written(flow: Flow[Any], writer: BatchWriter, schema: Schema) -> Committed:
    with asking("to_spark", writer.session):
        struct = struct_of("to_spark", schema)  # before to_frame names itself in the errors
    frame = _framed(flow, schema)
    try:
        writer.prepare(writer.session.createDataFrame([], struct))
    except FAILURES as error:  # without a note on the same run: what is refused here is refused again
        raise_told(writer, error, NOT_WRITTEN.format(writer.run))
    with _noting(writer):
        done = writer.committed()
    done.check(whole=True)  # outside: a run that was written in batches can't be repeated like that
    with _noting(writer):
        if done.batches:
            writer.finish()
            return evolve(done, written=False)
        return writer.write_whole(frame)


@contextmanager
def _noting(writer: BatchWriter) -> Generator[None]:
    """Note on a failure whether the run can be repeated."""
    try:
        yield
    except FileExistsError:
        raise  # of the mode, or of a user's function
    except FAILURES as error:
        _raise(writer, error)


def _framed(flow: Flow[Any], schema: Schema) -> Any:
    try:
        return to_frame(flow, schema)
    except UnsupportedOnSparkError as error:
        add_note(
            error,
            "to_spark(size=None) writes what to_frame() gives; with a size, to_spark() writes any flow in batches",
        )
        raise


def _raise(writer: BatchWriter, error: BaseException) -> NoReturn:
    try:
        raise_told(writer, error, NOT_WRITTEN.format(writer.run))
    except FAILURES as failed:
        if failed is not error:  # else a user's function has raised it here, with its own notes
            for note in notes_in(error):
                add_note(failed, note)
        add_note(failed, AGAIN if writer.repeatable else UNKNOWN)
        raise
