"""The plan of a flow in words: regions, boundaries, and what each region fuses."""

from __future__ import annotations

from typing import Any

from .plan import FlowLike, Plan
from .source import Source
from .stage import label


def describe(flow: FlowLike) -> str:
    """Show the plan of a flow, a line for each region and each boundary.

    Two boundaries with nothing to do between them share a line.
    """
    plan = Plan.of(flow)
    source = plan.source.operator
    if _only_combines(plan):
        return f"{describe(source.inner[0])}\nall of it under {_combination(source)}"
    rows: list[tuple[str, str]] = []
    notes: list[str] = []
    note = ""
    work = [_combination(source) if source.inner else str(source)]
    if source.elsewhere is not None:
        rows.append((source.elsewhere.place, source.elsewhere.work))
        note, work = source.elsewhere.boundary, []
    for region in plan.regions:
        if region.boundary is not None:
            note = ", then ".join(filter(None, [note, f"boundary, prefetch {region.boundary.prefetch}"]))
        work += [str(placed.operator) for placed in region.stages]
        if work or region is plan.regions[-1] or not note:
            notes += [note] if rows else []
            place = region.scheduler.name if region.scheduler is not None else "the subscriber's loop"
            rows.append((place, " -> ".join(work) or "(elements pass as they are)"))
            note, work = "", []
    return "\n".join([*_table(rows, notes), *_inner(source)])


def _table(rows: list[tuple[str, str]], notes: list[str]) -> list[str]:
    width = max(len(place) for place, _ in rows) + 2
    lines: list[str] = []
    for number, (place, done) in enumerate(rows, 1):
        lines.append(f"R{number}  {place:<{width}} {done}".rstrip())
        if number <= len(notes):
            lines.append(f" |  {notes[number - 1]}")
    return lines


def _inner(source: Source[Any]) -> list[str]:
    lines: list[str] = []
    for inner in source.inner:
        lines += ["", f"where {source.name} reads:", *(f"    {line}" for line in describe(inner).splitlines())]
    return lines


def _only_combines(plan: Plan) -> bool:
    """Tell a flow that does nothing to the elements of one other flow but combine its subscriptions."""
    only, *others = plan.regions
    return not others and not only.stages and only.scheduler is None and len(plan.source.operator.inner) == 1


def _combination(source: Source[Any]) -> str:
    """Show a combinator without the flows it reads, which are shown apart."""
    fields: tuple[Any, ...] = getattr(type(source), "__attrs_attrs__", ())
    values = [getattr(source, each.name) for each in fields if each.repr]
    shown = [label(value) for value in values if value is not source.inner and value not in source.inner]
    return f"{source.name}({', '.join(shown)})"
