"""Queries and keyed work derived from TPC-H, each in several ways with equal results.

The scale is 0.1; another one is in the variable of the environment ``TPCH_SCALE``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from .bench_spark import CPU_OF_ALL, PROC, timed
from .harness import WALL, Bar, Contestant, Row
from .spark_session import session
from .tpch import data, keyed, vectorised, ways
from .tpch.queries import QUERIES, q1

BARS = {
    "Q1": (Bar("mapInArrow by hand", at_most=1.1, metric=CPU_OF_ALL),),
    "Q14": (Bar("Spark's SQL", at_most=1.1, metric=CPU_OF_ALL, of=ways.BEHIND_FILTER),),
}


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
    queries = [
        _row(
            query.name,
            "lineitem",
            query,
            ways.ways_of(query),
            ways.on_the_loop,
            BARS.get(query.name.partition(",")[0], ()),
        )
        for query in QUERIES
    ]
    works = [_work(each) for each in keyed.WORKS]
    whole = Bar("mapInArrow by hand", at_most=1.2, metric=CPU_OF_ALL)
    return [*queries, _row("Q1, by columns", "lineitem", q1(), vectorised.WAYS, None, (whole,)), *works]


def _work(work: keyed.Work) -> Row:
    by_spark = keyed.ways_of(work)
    by_hand = tuple(Bar(way, at_most=1, metric=CPU_OF_ALL) for way in by_spark if way.endswith("by hand"))
    return _row(work.name, work.table, work, by_spark, keyed.on_the_loop, by_hand)


def _row(
    name: str,
    table: str,
    what: Any,
    by_spark: dict[str, Callable[[Any, Any], Any]],
    on_the_loop: Callable[[Path, Any], Any] | None,
    bars: tuple[Bar, ...],
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
        rounds=5,
        warm=3,
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
