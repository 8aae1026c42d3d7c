"""Queries and keyed work derived from TPC-H, each in several ways with equal results.

The scale is 0.1; another one is in the variable of the environment ``TPCH_SCALE``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from .bench_spark import CPU_OF_ALL, PROC, timed
from .harness import WALL, Bar, Contestant, Row
from .spark_session import session
from .tpch import data, keyed, vectorised, ways
from .tpch.queries import QUERIES, q1, q14

WARM: Final = 30
"""Rounds after which the JVM's compilers are through with most of it."""
MANY: Final = 15
"""Rounds of short ways, whose figures differ from one round to the next."""


@cache
def _folder() -> Path:
    folder = data.made(float(os.environ.get("TPCH_SCALE", "0.1")))
    ways.tables(session(), folder)
    return folder


def rows(n: int) -> list[Row]:
    """Each query and each keyed workload; figures are for a row of the table that is read, whatever ``n`` is."""
    try:
        data.generator()
    except data.GeneratorMissingError as error:
        raise ImportError(str(error)) from error
    queries = [_row(query.name, "lineitem", query, ways.ways_of(query), ways.on_the_loop, ()) for query in QUERIES]
    works = [row for work in keyed.WORKS for row in _works(work)]
    return [*queries, *_alone(), *works]


def _alone() -> list[Row]:
    """Return rows of the ways that a bar is about. With RDDs in a row, the JVM collects their garbage while the next way runs."""
    by_rows = {way: ways.WAYS[way] for way in (ways.BY_FRAME, ways.BY_HAND)}
    filtered = {ways.BEHIND_FILTER: ways.behind_filter, ways.BY_SQL: ways.by_sql, **ways.FILTERED}
    return [
        _row("Q1, by rows", "lineitem", q1(), by_rows, None, (_bar(ways.BY_HAND, 1.1),), WARM, MANY),
        _row("Q1, by columns", "lineitem", q1(), vectorised.WAYS, None, (_bar(ways.BY_HAND, 1.2),), WARM, MANY),
        _row("Q14, behind Spark's filter", "lineitem", q14(), filtered, None, (_bar(ways.BY_SQL, 1.1),), WARM, MANY),
    ]


def _bar(name: str, at_most: float) -> Bar:
    return Bar(name, at_most=at_most, metric=CPU_OF_ALL)


def _works(work: keyed.Work) -> list[Row]:
    by_spark = keyed.ways_of(work)
    in_arrow = [way for way in by_spark if "Arrow" in way]
    others = {way: run for way, run in by_spark.items() if way not in in_arrow}
    alone = {way: by_spark[way] for way in (ways.BY_FRAME, *in_arrow)}
    bars = tuple(_bar(way, 1) for way in in_arrow)
    return [
        _row(work.name, work.table, work, others, keyed.on_the_loop, (_bar("RDD by hand", 1),)),
        _row(f"{work.name}, in Arrow", work.table, work, alone, None, bars, WARM // 3),
    ]


def _row(
    name: str,
    table: str,
    what: Any,
    by_spark: dict[str, Callable[[Any, Any], Any]],
    on_the_loop: Callable[[Path, Any], Any] | None,
    bars: tuple[Bar, ...],
    warm: int = 3,
    rounds: int = 5,
) -> Row:
    works: dict[str, Callable[[], Any]] = {way: partial(_on_spark, run, what) for way, run in by_spark.items()}
    if on_the_loop is not None:
        works[ways.ON_THE_LOOP] = lambda: on_the_loop(_folder(), what)
    elements = _size(table)
    return Row(
        name,
        elements,
        tuple(Contestant(way, partial(timed, work, elements)) for way, work in works.items()),
        bars if PROC.exists() else (),
        rounds=rounds,
        warm=warm,
        metrics=(CPU_OF_ALL, WALL),
        limit=list(works)[1],
    )


def _on_spark(run: Callable[[Any, Any], Any], what: Any) -> Any:
    _folder()
    return run(session(), what)


def _size(table: str) -> int:
    from pyarrow import parquet

    files: Any = parquet
    return int(files.ParquetFile(_folder() / f"{table}.parquet").metadata.num_rows)
