"""A flow put into Spark's plan, as a lazy frame."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from attrs import evolve
from pyspark import RDD

from ...errors import UnsupportedOnSparkError
from .._job.asking import asking
from .._job.calls import is_connect
from .._source.source import FromSpark
from .._task.pickling import NotPickled
from .._task.zones import zone_of
from ..sink._columns import Columns
from ..sink._schema import Schema, check_schema, struct_of
from .by_spark import applied
from .columns import check_columns
from .parts import Parts, parts_of
from .planned import framed, named, read_in_zone, session_of, session_zone
from .task import LIST, FrameTask, elements_of, lists_of, unpickled

if TYPE_CHECKING:
    from ..._plan import FlowLike

# `Any` stands for sessions and frames, which are those of a classic session or of Spark Connect.


def to_frame(flow: FlowLike, schema: Schema, columns: Sequence[str] | None = None) -> Any:
    """Return the frame. The arguments are those of ``Flow.to_frame``."""
    check_schema("to_frame", schema)
    parts = parts_of("to_frame", flow, None if columns is None else check_columns(columns))
    session = session_of(parts.sources[0])
    with asking("to_frame", session):
        struct = struct_of("to_frame", schema)
        kind = schema if isinstance(schema, type) else None
        zone = session_zone(session)
        made = Columns(struct, kind, zone_of(zone))
        # By one clock, as they are written: sources of other sessions may have other zones.
        frames = [_framed(source.by_clock_of(zone), made) for source in _sources(parts)]
        # By place, as all have these columns: by name Spark refuses `a` beside `A`.
        return applied(reduce(lambda before, frame: before.union(frame), frames), parts.behind)


def to_rdd(flow: FlowLike) -> Any:
    """Return the RDD of ``Flow.to_rdd``."""
    parts = parts_of("to_rdd", flow)
    if is_connect(parts.sources[0].data):
        raise UnsupportedOnSparkError("to_rdd() needs a classic session: Spark Connect has no RDDs. Use to_frame()")
    context = parts.sources[0].context
    with asking("to_rdd", context):
        rdds = [_as_rdd(source) for source in _sources(parts)]
        return rdds[0] if len(rdds) == 1 else context.union(rdds)


def _sources(parts: Parts) -> list[FromSpark]:
    """Return the sources, with the steps that Spark does before any function of the user."""
    if not parts.before:
        return list(parts.sources)
    (source,) = parts.sources
    return [evolve(source, data=applied(source.data, parts.before))]


def _framed(source: FromSpark, columns: Columns) -> Any:
    """Return the frame of one part, with the values that context variables have now."""
    source = _now(source)
    return framed(source, task_of(source), columns)


def _as_rdd(source: FromSpark) -> Any:
    """Return the elements of one part. Rows come as pickled lists, because Spark's rows would cost more."""
    source = _now(source)
    if isinstance(source.data, RDD):
        return source.data.mapPartitions(partial(elements_of, task_of(source)))
    frame, reading = read_in_zone(source)
    lists = frame.mapInArrow(named(partial(lists_of, task_of(source), reading), source), LIST)
    return lists.rdd.flatMap(unpickled)


def _now(source: FromSpark) -> FromSpark:
    """Return a source with the current values of context variables. Its data has the steps that Spark does before."""
    try:
        return source.within(copy_context()).ready()
    except NotPickled as failed:
        raise failed.error from None


def task_of(source: FromSpark) -> FrameTask:
    """Return the task for the workers."""
    try:
        return FrameTask(str(source), source.pickled())
    except NotPickled as failed:
        raise failed.error from None
