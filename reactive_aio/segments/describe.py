"""The plan of a flow in words: regions, boundaries, and what each region fuses."""

from __future__ import annotations

from .plan import FlowLike, Plan


def describe(flow: FlowLike) -> str:
    """Show the plan of a flow, a line for each region and each boundary."""
    plan = Plan.of(flow)
    source = plan.source.operator
    rows: list[tuple[str, str]] = []
    notes: list[str] = []
    if source.elsewhere is not None:
        rows.append((source.elsewhere.place, source.elsewhere.work))
        notes.append(source.elsewhere.boundary)
        work: list[str] = []
    else:
        work = [str(source)]
    for region in plan.regions:
        if region.boundary is not None:
            notes.append(f"boundary, prefetch {region.boundary.prefetch}")
        place = region.scheduler.name if region.scheduler is not None else "the subscriber's loop"
        work += [str(placed.operator) for placed in region.stages]
        rows.append((place, " -> ".join(work) or "(elements pass as they are)"))
        work = []
    width = max(len(place) for place, _ in rows) + 2
    lines: list[str] = []
    for number, (place, done) in enumerate(rows, 1):
        lines.append(f"R{number}  {place:<{width}} {done}".rstrip())
        if number <= len(notes):
            lines.append(f" |  {notes[number - 1]}")
    for inner in source.inner:
        lines += ["", f"where {source.name} reads {inner!r}:"]
        lines += [f"    {line}" for line in describe(inner).splitlines()]
    return "\n".join(lines)
