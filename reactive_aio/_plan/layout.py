"""The layout of all pictures of a flow: its regions in a row, the boundaries between them, and the flows it reads."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, frozen

from .._fusion.stage import label
from .nodes import FlowLike
from .plan import Plan, Region
from .source import Source

HERE: Final = "the subscriber's loop"
HOMEWARD: Final = 256
"""The prefetch of the boundary by which elements come home to an end."""


@frozen
class Box:
    """One region."""

    place: str
    """The place where it runs."""
    work: tuple[str, ...]
    """Its operators; none where elements pass as they are."""
    details: tuple[str, ...] = ()
    """Further lines about it, where it is run elsewhere."""


@frozen
class Layout:
    """A flow as pictures show it."""

    boxes: tuple[Box, ...]
    """The regions, from the source to the end."""
    notes: tuple[str, ...]
    """The boundaries between them, one less than there are regions."""
    under: tuple[str, ...] = ()
    """The combinators that do nothing but subscribe to all of it again, from the inside out."""
    reads: tuple[tuple[str, Layout], ...] = ()
    """The flows that a combinator reads, by the combinator's name."""
    end: str = ""
    """The consumer of the flow, where it can't be shown as part of the last region."""


def layout(flow: FlowLike, end: str = "") -> Layout:
    """Lay a flow out, and what consumes it, if it is named. Boundaries with nothing to do between them become one."""
    plan = Plan.of(flow)
    source = plan.source.operator
    if _only_combines(plan):
        below = layout(source.inner[0])
        return evolve(below, under=(*below.under, _combination(source)), end=end)
    row = _row(plan)
    return _ended(row, plan.regions[-1], end) if end else row


def _ended(row: Layout, last: Region, end: str) -> Layout:
    """Add the consumer of the flow to the last region. An end gets a boundary to its own loop."""
    if last.scheduler is None or last.scheduler.name == "current()":
        box = row.boxes[-1]
        return evolve(row, boxes=(*row.boxes[:-1], evolve(box, work=(*box.work, end))))
    return evolve(row, boxes=(*row.boxes, Box(HERE, (end,))), notes=(*row.notes, f"boundary, prefetch {HOMEWARD}"))


def _row(plan: Plan) -> Layout:
    source = plan.source.operator
    before = Layout((), ())
    note = ""
    work = [_combination(source) if source.inner else str(source)]
    elsewhere = source.elsewhere
    if elsewhere is not None:
        if elsewhere.front:
            read = source.inner[0]
            before = _row(Plan.of(read))
            # Elements from elsewhere come home first, to the loop that feeds the workers.
            hop = "" if read.__nodes__.scheduler is None else "boundary, as requested, then "
            before = evolve(before, notes=(*before.notes, f"{hop}{elsewhere.front}"))
        done = () if elsewhere.work.startswith("(") else tuple(elsewhere.work.split(" -> "))
        before = evolve(before, boxes=(*before.boxes, Box(elsewhere.place, done, source.details)))
        note, work = elsewhere.boundary, []
    elif source.crossing:
        before, note, work = layout(source.inner[0]), source.crossing, []
    boxes, notes = list(before.boxes), list(before.notes)
    for region in plan.regions:
        if region.boundary is not None:
            note = ", then ".join(filter(None, [note, f"boundary, prefetch {region.boundary.prefetch}"]))
        work += [str(placed.operator) for placed in region.stages]
        if work or region is plan.regions[-1] or not note:
            notes += [note] if boxes else []
            boxes.append(Box(region.scheduler.name if region.scheduler is not None else HERE, tuple(work)))
            note, work = "", []
    reads = before.reads
    if not source.crossing and (elsewhere is None or not elsewhere.front):
        reads = tuple((source.name, layout(inner)) for inner in source.inner)
    return Layout(tuple(boxes), tuple(notes), before.under, reads)


def _only_combines(plan: Plan) -> bool:
    """Return whether a flow does nothing to the elements of one other flow but combine its subscriptions."""
    only, *others = plan.regions
    source = plan.source.operator
    chains = source.crossing or (source.elsewhere is not None and source.elsewhere.front)
    moves = plan.moved is not None or not (plan.follows or only.scheduler is None)
    return not others and not only.stages and not moves and len(source.inner) == 1 and not chains


def _combination(source: Source[Any]) -> str:
    """Show a combinator without the flows it reads, which are shown apart, and without what was left at its default."""
    fields: tuple[Any, ...] = getattr(type(source), "__attrs_attrs__", ())
    values = [getattr(source, each.name) for each in fields if each.repr]
    shown = [
        label(each) for each in values if each is not None and each is not source.inner and each not in source.inner
    ]
    return f"{source.name}({', '.join(shown)})"
