"""The plan of a flow in words: as a table, or as the line that the specification draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from .layout import Box, Layout, layout
from .nodes import FlowLike
from .plan import Plan

Style = Literal["table", "line"]
Drawing = Callable[[Layout], list[str]]

AS_THEY_ARE = "(elements pass as they are)"


def describe(flow: FlowLike, style: Style = "table", end: str = "", *, rewrites: bool = False) -> str:
    """Show the plan of a flow, and what consumes it, if it is named; with ``rewrites`` what it was made of."""
    if style not in DRAWINGS:
        raise ValueError(f"describe(style={style!r}): choose one of {', '.join(map(repr, DRAWINGS))}")
    lines = DRAWINGS[style](layout(flow, end))
    return "\n".join([*_history(flow), *lines] if rewrites else lines)


def _history(flow: FlowLike) -> list[str]:
    """Return lines on the flow as it was built, and on each rewrite."""
    done = Plan.of(flow).rewrites or ("nothing: an event loop runs it as it was built",)
    return ["built:", f"    {flow.__nodes__}", "rewritten:", *(f"    {each}" for each in done), "run:"]


def _table(plan: Layout) -> list[str]:
    width = max(len(box.place) for box in plan.boxes) + 2
    lines: list[str] = []
    for number, box in enumerate(plan.boxes, 1):
        lines.append(f"R{number}  {box.place:<{width}} {' -> '.join(box.work) or AS_THEY_ARE}".rstrip())
        if number <= len(plan.notes):
            lines.append(f" |  {plan.notes[number - 1]}")
    return [*lines, *_around(plan, _table)]


def _line(plan: Layout) -> list[str]:
    """Draw as the specification does: the steps in a row, the resources below, and then a list of the resources."""
    columns = [_column(number, box) for number, box in enumerate(plan.boxes, 1)]
    drawn = [" | ".join(done for done, _ in columns).rstrip(), " | ".join(below for _, below in columns)]
    places = [
        f"R{number} {box.place}" + (f", {plan.notes[number - 2]}" if number > 1 else "")
        for number, box in enumerate(plan.boxes, 1)
    ]
    return [*drawn, *places, *_around(plan, _line)]


def _column(number: int, box: Box) -> tuple[str, str]:
    done = " ".join(box.work) or "..."
    width = max(len(done), 8)
    return f"{done:<{width}}", f"{f' R{number} ':-^{width}}"


def _around(plan: Layout, draw: Drawing) -> list[str]:
    """Return the lines on regions elsewhere, on flows that are read, and on the operators that subscribe again."""
    lines = [f"R{number}  {line}" for number, box in enumerate(plan.boxes, 1) for line in box.details]
    for name, inner in plan.reads:
        lines += ["", f"where {name} reads:", *(f"    {line}" for line in draw(inner))]
    lines += [f"all of it under {each}" for each in plan.under]
    return [*lines, f"consumed by {plan.end}"] if plan.end else lines


DRAWINGS: Final[dict[str, Drawing]] = {"table": _table, "line": _line}
