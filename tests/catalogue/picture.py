"""Draws a run of an example as a marble diagram, in SVG: lanes of elements over time, and under each its demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from itertools import groupby, pairwise
from typing import Any, Final

from attrs import define, field

from reactive_aio.testing.listening import NEXT
from reactive_aio.testing.marbles import MarbleError, parse

from .running import Lane, Ran, label

RADIUS: Final = 13.0
CHAR: Final = 7.25
"""The width of a character of 12 pixels in a monospaced font."""
SMALL: Final = 6.1
LANE: Final = 62.0
ROW: Final = 34.0
BOX: Final = 34.0
PAD: Final = 14.0
FONT: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

LIGHT: Final = {
    "paper": "#fff", "ink": "#1f2328", "soft": "#656d76", "line": "#9aa4af", "tick": "#dde3e9", "box": "#f6f8fa",
    "ask": "#0a7d46", "bad": "#cf222e", "marbles": {
        0: ("#ddeeff", "#1f6feb"), 1: ("#ffe8d1", "#d9730d"), 2: ("#d9f5e1", "#1a7f37"), 3: ("#ffe0ee", "#bf3989"),
        7: ("#eceff2", "#8c959f"), 8: ("#fff", "#9aa4af"), 9: ("#ece5ff", "#7a4fd0"),
    },
}  # fmt: skip
DARK: Final = {
    "paper": "#0d1117", "ink": "#e6edf3", "soft": "#8d96a0", "line": "#6e7681", "tick": "#262c34", "box": "#161b22",
    "ask": "#3fb950", "bad": "#ff7b72", "marbles": {
        0: ("#0f2d52", "#58a6ff"), 1: ("#4a2a0a", "#f0883e"), 2: ("#0f3a1d", "#3fb950"), 3: ("#4a1230", "#ff7bb5"),
        7: ("#21262d", "#6e7681"), 8: ("#0d1117", "#6e7681"), 9: ("#2f2056", "#b392f0"),
    },
}  # fmt: skip


def colours(of: Mapping[str, Any]) -> str:
    """Return the rules that depend on whether the page is light or dark."""
    marbles = "".join(f".m{n}{{fill:{fill};stroke:{stroke}}}" for n, (fill, stroke) in of["marbles"].items())
    return (
        "text{{fill:{ink}}}.paper{{fill:{paper}}}.n,.t{{fill:{soft}}}.q,.u{{fill:{ask}}}.x{{fill:{bad}}}.z{{stroke:{bad}}}"
        ".a,.b{{stroke:{line}}}.h{{fill:{line}}}.k,.d{{stroke:{tick}}}.e{{stroke:{ink}}}.b{{fill:{box}}}"
    ).format(**of) + marbles


STYLE: Final = (
    f"text{{font:12px {FONT};text-anchor:middle}}.l,.n,.q,.x{{text-anchor:start}}.l{{font-weight:700}}"
    ".n,.q,.x{font-size:11px}.t{font-size:10px}.q,.x{font-weight:600}.a,.z{fill:none}.a{stroke-width:1.5}"
    ".m7,.m8{stroke-dasharray:3 2}.m8,.m8+text{opacity:.5}.d{stroke-dasharray:2 3}.e,.z{stroke-width:2.5}rect{stroke-width:1.5}"
    f"{colours(LIGHT)}@media(prefers-color-scheme:dark){{{colours(DARK)}}}"
)


@define
class Row:
    """The labels at one height, with the time, the width and the way to draw each."""

    y: float
    things: list[tuple[float, float, Callable[[float, float], str]]] = field(factory=list[Any])

    def add(self, at: float, wide: float, draw: Callable[[float, float], str]) -> None:
        """Add a thing, to be drawn in the middle of where it finds its place."""
        self.things.append((at, wide, draw))

    def unit(self) -> float:
        """Return the width of a second that leaves room for all."""
        groups = [(at, [wide for _, wide, _ in things]) for at, things in self._groups()]
        room = [(_reach(wide) + after[0] / 2 + 6) / (later - at) for (at, wide), (later, after) in pairwise(groups)]
        return max(room, default=0.0)

    def drawn(self, x: Callable[[float], float]) -> Iterator[tuple[float, str]]:
        """Yield each thing where it stands, with how far it reaches."""
        for at, things in self._groups():
            middle, before = x(at), 0.0
            for _, wide, draw in things:
                middle += _step(before, wide)
                yield middle + wide / 2, draw(middle, self.y)
                before = wide

    def _groups(self) -> Iterator[tuple[float, list[Any]]]:
        for at, things in groupby(sorted(self.things, key=lambda thing: thing[0]), key=lambda thing: thing[0]):
            yield at, list(things)


def _reach(widths: list[float]) -> float:
    """Return how far things of one time reach to the right of it."""
    return sum(map(_step, [0.0, *widths], widths)) + widths[-1] / 2


def _step(before: float, wide: float) -> float:
    """Return the way from one thing to another of the same time; circles overlap, to be seen as one moment."""
    if not before:
        return 0.0
    return 1.5 * RADIUS if before == wide == 2 * RADIUS else (before + wide) / 2 + 3


def element(text: str, kind: int) -> tuple[float, Callable[[float, float], str]]:
    """Return a marble, which is a circle where its text is short: its width, and how it is drawn."""
    wide = max(2 * RADIUS, len(text) * CHAR + 14)

    def draw(x: float, y: float) -> str:
        return (
            f'<rect class="m{kind}" x="{x - wide / 2:.1f}" y="{y - RADIUS:.1f}" width="{wide:.1f}" height="26" rx="13"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}">{escape(text)}</text>'
        )

    return wide, draw


def complete(x: float, y: float) -> str:
    """Draw the end."""
    return f'<path class="e" d="M{x:.1f} {y - 14:.1f}v28"/>'


def failure(error: BaseException) -> Callable[[float, float], str]:
    """Return the mark of a failure, with its name if it is not that of the marbles."""
    name = "" if isinstance(error, MarbleError) else type(error).__name__

    def draw(x: float, y: float) -> str:
        text = f'<text class="x" x="{x + 12:.1f}" y="{y + 4:.1f}">{name}</text>' if name else ""
        return f'<path class="z" d="M{x - 8:.1f} {y - 8:.1f}l16 16m0-16l-16 16"/>{text}'

    return draw


def _missed(lane: Lane, would: str) -> Iterator[tuple[float, str]]:
    """Yield what a lane in marbles would have emitted without the cancel. Its clock starts with the first demand."""
    start = next((at for at, n in lane.asked if n), None)
    if start is not None and lane.cancelled is not None:
        yield from (
            (start + at, sign) for at, kind, sign in parse(would) if kind == NEXT and start + at > lane.cancelled
        )


def asked(n: float) -> tuple[float, Callable[[float, float], str]]:
    """Return the mark of a request, or with 0 that of a cancel."""
    text = "cancel" if not n else "∞" if n == float("inf") else f"{n:g}"
    sign, kind = ("", "x") if not n else ("u", "q")

    def draw(x: float, y: float) -> str:
        arrow = f'<path class="u" d="M{x:.1f} {y - 10:.1f}l4.5 8h-3v5h-3v-5h-3z"/>' if sign else ""
        cross = "" if sign else f'<path class="z" d="M{x - 4:.1f} {y - 7:.1f}l8 8m0-8l-8 8" style="stroke-width:2"/>'
        return f'{arrow}{cross}<text class="{kind}" x="{x + 7:.1f}" y="{y + 2:.1f}">{text}</text>'

    return 18 + len(text) * SMALL, draw


@define
class Canvas:
    """The rows of a picture, from top to bottom."""

    rows: list[Row] = field(factory=list[Row])
    lanes: list[tuple[float, list[Lane]]] = field(factory=list[Any])
    under: list[str] = field(factory=list[str])
    shapes: list[str] = field(factory=list[str])
    bottom: float = PAD
    margin: float = 0.0
    """The width of the names on the left."""

    def name(self, text: str, kind: str, y: float) -> None:
        """Write what stands at the left of a row."""
        self.margin = max(self.margin, len(text) * CHAR + 12)
        self.shapes.append(f'<text class="{kind}" x="{PAD:.0f}" y="{y + 4:.1f}">{escape(text)}</text>')

    def lane(self, name: str, lanes: list[Lane], kinds: Callable[[Any], int], would: str = "") -> None:
        """Add a lane of elements, and below it what is asked; faintly, what it ``would`` have given but for a cancel."""
        y = self.bottom + 16
        elements, demand = Row(y), Row(y + 28)
        self.name(name, "l", y)
        for lane in lanes:
            for at, item in lane.given:
                elements.add(at, *element(label(item), kinds(item)))
            if lane.end:
                elements.add(lane.end[0], 14.0, failure(lane.end[1]) if lane.end[1] else complete)
            for at, sign in _missed(lane, would):
                elements.add(at, *element(sign, 8))
            for at, n in lane.asked:
                demand.add(at, *asked(n))
        self.rows += [elements, demand]
        self.lanes.append((y, lanes))
        self.bottom += LANE if demand.things else LANE - 22

    def notes(self, name: str, notes: Iterable[tuple[float, str]], kind: int) -> None:
        """Add a row of what was told at some times."""
        y = self.bottom + 12
        row = Row(y)
        self.name(name, "n", y)
        for at, text in notes:
            row.add(at, *element(text, kind))
        self.rows.append(row)
        self.lanes.append((y, []))
        self.bottom += ROW


def picture(ran: Ran) -> str:
    """Draw a run."""
    canvas, example = Canvas(), ran.example
    origins = {id(item): at for at, lanes in enumerate(ran.flows.values()) for lane in lanes for _, item in lane.given}

    def kinds(item: Any) -> int:
        return min(origins.get(id(item), 9), 9)

    for name, lanes in ran.flows.items():
        for row in rows(lanes):
            canvas.lane(name, row, kinds, example.flows[name])
    box = canvas.bottom - 2
    canvas.bottom += BOX + 12
    canvas.lane("", [ran.result], kinds)
    meaning = dict(each.split(" = ", 1) for each in example.said("where").split("; ") if each)
    for name, notes, kind in (("tell", ran.told, 9), ("discarded", ran.lost, 7)):
        if notes:
            canvas.notes(name, [(at, meaning.get(text, text)) for at, text in notes], kind)
    return _whole(canvas, ran, box)


def rows(lanes: list[Lane]) -> list[list[Lane]]:
    """Share subscriptions to one flow out to rows, so that none begins in a row before another has ended."""
    found: list[list[Lane]] = [[]]
    for lane in lanes:
        free = (row for row in found if not row or row[-1].over <= lane.begun)
        row = next(free, None)
        if row is None:
            found.append(row := [])
        row.append(lane)
    return found


def _whole(canvas: Canvas, ran: Ran, box: float) -> str:
    left = PAD + canvas.margin + RADIUS
    last = max([at for row in canvas.rows for at, _, _ in row.things] + [1.0])
    unit = max(30.0, *(row.unit() for row in canvas.rows))
    call = ran.call

    def x(at: float) -> float:
        return left + at * unit

    drawn = [each for row in canvas.rows for each in row.drawn(x)]
    named = ran.example.said("fails")
    right = max([x(last) + 26 + len(named) * SMALL, left + len(call) * CHAR + 10, *(reach + 16 for reach, _ in drawn)])
    lines = [shape for y, lanes in canvas.lanes for shape in _lines(y, lanes, x, right)]
    edge, width = PAD + canvas.margin - 4, right + PAD
    operator = (
        f'<rect class="b" x="{edge:.1f}" y="{box:.1f}" width="{right - edge:.1f}" height="{BOX:.0f}" rx="7"/>'
        f'<text x="{(edge + right) / 2:.1f}" y="{box + 21:.1f}">{escape(call)}</text>'
    )
    axis = canvas.bottom + 4
    every = 1 if unit >= 22 else 2
    ticks = [
        f'<path class="k" d="M{x(at):.1f} {PAD - 4:.0f}V{axis - 8:.1f}"/><text class="t" x="{x(at):.1f}" y="{axis + 4:.1f}">{at}</text>'
        for at in range(0, round(last) + 1, every)
    ]
    height = axis + 12
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}><title>{escape(call)}</title>'
        f"<desc>{escape(str(ran.example))}</desc><style>{STYLE}</style>"
        f'<rect class="paper" width="100%" height="100%" rx="8"/>'
        + "\n".join([*ticks, *lines, operator, *canvas.shapes, *(shape for _, shape in drawn)])
        + "</svg>\n"
    )


def _lines(y: float, lanes: list[Lane], x: Callable[[float], float], right: float) -> Iterator[str]:
    """Draw the lines of a lane: from each subscription to its end, or on."""
    if not lanes:
        yield f'<path class="d" d="M{x(0) - 10:.1f} {y:.1f}H{right:.1f}"/>'
    for lane in lanes:
        begun = x(lane.begun) - (10 if not lane.begun else 0)
        ended = lane.over
        if ended == math.inf:
            yield f'<path class="a" d="M{begun:.1f} {y:.1f}H{right - 6:.1f}"/>'
            yield f'<path class="h" d="M{right:.1f} {y:.1f}l-9-4.5v9z"/>'
        else:
            yield f'<path class="a" d="M{begun:.1f} {y:.1f}H{x(ended):.1f}"/>'
            if lane.end is None:
                yield f'<path class="d" d="M{x(ended):.1f} {y:.1f}H{right:.1f}"/>'
        if lane.begun:
            yield f'<circle class="h" cx="{begun:.1f}" cy="{y:.1f}" r="3"/>'
