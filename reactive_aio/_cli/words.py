"""The texts of the command line, as plain text."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeGuard

import attrs
from attrs import frozen

from .._core.guard import FAILURES
from .._core.notes import notes_of
from .._plan import RegionSnapshot, Snapshot, TasksSnapshot

WIDEST: Final = 60
"""Characters of a cell. The rest is cut."""


def progress(snapshot: Snapshot, seconds: float) -> str:
    """Return how many elements have left each region, the rate of the first, and the progress of a cluster's tasks.

    >>> from reactive_aio import RegionSnapshot, Snapshot
    >>> from reactive_aio._plan import TasksSnapshot
    >>> spark = RegionSnapshot("spark", 2000, tasks=TasksSnapshot(total=8, running=2, done=3))
    >>> progress(Snapshot((spark, RegionSnapshot("current()", 1900))), 0.5)
    'R1 2,000 (3/8 tasks, 2 running) -> R2 1,900  (4,000/s)'
    """
    counts = [f"R{number} {region.delivered:,}{_tasks(region)}" for number, region in enumerate(snapshot.regions, 1)]
    rate = snapshot.regions[0].delivered / seconds if snapshot.regions and seconds else 0
    return f"{' -> '.join(counts)}  ({rate:,.0f}/s)"


def _tasks(region: RegionSnapshot) -> str:
    return "" if region.tasks is None else f" ({_counts(region.tasks)})"


def _counts(tasks: TasksSnapshot) -> str:
    return f"{'preparing, ' * tasks.preparing}{tasks.done:,}/{tasks.total:,} tasks, {tasks.running:,} running"


@frozen
class Jobs:
    """The progress of the tasks of one region on a cluster."""

    done: int
    total: int
    text: str


def jobs(snapshot: Snapshot, seconds: float) -> list[Jobs]:
    """Return the jobs of each region that counts its tasks: done, running, and elements a second.

    >>> from reactive_aio import RegionSnapshot, Snapshot
    >>> from reactive_aio._plan import TasksSnapshot
    >>> spark = RegionSnapshot("Spark local[3]", 2000, tasks=TasksSnapshot(total=8, running=2, done=3))
    >>> jobs(Snapshot((spark, RegionSnapshot("current()", 1900))), 0.5)
    [Jobs(done=3, total=8, text='Spark local[3]: 3/8 tasks, 2 running, 2,000 elements (4,000/s)')]
    >>> spark = RegionSnapshot("Spark local[3]", 0, tasks=TasksSnapshot(total=4, running=1, done=3, preparing=True))
    >>> jobs(Snapshot((spark,)), 0.5)
    [Jobs(done=3, total=4, text='Spark local[3]: preparing, 3/4 tasks, 1 running, 0 elements (0/s)')]
    """
    found: list[Jobs] = []
    for region in _all_regions(snapshot.regions):
        tasks = region.tasks
        if tasks is not None and tasks.total:
            rate = region.delivered / seconds if seconds else 0
            text = f"{region.place}: {_counts(tasks)}, {region.delivered:,} elements ({rate:,.0f}/s)"
            found.append(Jobs(tasks.done, tasks.total, text))
    return found


def _all_regions(regions: Iterable[RegionSnapshot]) -> Iterator[RegionSnapshot]:
    """Yield the regions, and the regions of the flows that a combinator reads."""
    for region in regions:
        for inner in region.inner:
            yield from _all_regions(inner.regions)
        yield region


def summary(emitted: int, seconds: float) -> str:
    """Return the result as text.

    >>> summary(1, 0.25)
    '1 element in 0.25 s (4/s)'
    """
    rate = emitted / seconds if seconds else 0
    return f"{emitted:,} element{'s' * (emitted != 1)} in {seconds:.2f} s ({rate:,.0f}/s)"


def failure(error: BaseException, *, whole: bool) -> str:
    """Show an exception with its notes and what it came from; with ``whole`` as Python does."""
    if whole:
        return "".join(traceback.format_exception(error)).rstrip()
    lines = [f"error: {_line(error)}", *_notes(error)]
    seen = {id(error)}
    before = _before(error)
    while before is not None and id(before) not in seen:
        seen.add(id(before))
        lines += [f"after: {_line(before)}", *_notes(before)]
        before = _before(before)
    return "\n".join([*lines, "(--traceback shows all)"])


def _before(error: BaseException) -> BaseException | None:
    """Return the cause or context of an exception, as Python shows it."""
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _line(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error).strip()
    except FAILURES:  # whatever a class does when it is shown
        return name
    return f"{name}: {text}" if text else name


def _notes(error: BaseException) -> list[str]:
    nested: Iterable[BaseException] = getattr(error, "exceptions", ())  # of a group
    return [f"    {line}" for note in (*map(_line, nested), *notes_of(error)) for line in note.splitlines()]


def cells(item: object) -> dict[str, Any]:
    """Return the columns of a row: the fields of an attrs instance or named tuple, keys, places, or the element itself.

    >>> cells((1, "a")), cells({"b": 2}), cells("c")
    ({'0': 1, '1': 'a'}, {'b': 2}, {'element': 'c'})
    """
    kind: type = type(item)
    if attrs.has(kind):
        return {each.name: getattr(item, each.name) for each in attrs.fields(kind)}
    if _is_mapping(item):
        return {str(key): value for key, value in item.items()}
    if _is_tuple(item):
        names: Iterable[str] = getattr(kind, "_fields", map(str, range(len(item))))
        return dict(zip(names, item, strict=True))
    return {"element": item}


def _is_mapping(item: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(item, Mapping)


def _is_tuple(item: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(item, tuple)


def text(value: object) -> str:
    """Show a value in one line.

    >>> text(None), text(2.5), text("x")
    ('', '2.5', 'x')
    """
    shown = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    shown = " ".join(shown.split())
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 3] + "..."


def columns(items: Iterable[Any]) -> dict[str, list[Any]]:
    """Turn rows into columns; what a row lacks is None."""
    rows = [cells(item) for item in items]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def numeric(values: Iterable[Any]) -> bool:
    """Return whether a column holds numbers, which are set to the right."""
    return all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in values)


def table(items: Iterable[Any]) -> str:
    """Show rows below each other, in columns.

    >>> print(table([("ape", 1), ("bear", 22)]))
    0      1
    ----  --
    ape    1
    bear  22
    """
    shown: list[list[str]] = []
    for name, values in columns(items).items():
        column = [name, *map(text, values)]
        width = max(map(len, column))
        column = [each.rjust(width) if numeric(values) else each.ljust(width) for each in column]
        shown.append([column[0], "-" * width, *column[1:]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*shown, strict=True))
