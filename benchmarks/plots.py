"""Plots as SVG, by hand: dots for contestants, lines for what grows; figures are on logarithmic scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final

from attrs import field, frozen

from .harness import Spread

WIDTH: Final = 760
INK, FAINT, GRID = "#1f2328", "#656d76", "#d8dee4"
OURS, LIMIT, OTHERS = "#0969da", "#57606a", "#bf8700"
LINES = (OURS, LIMIT, OTHERS, "#1a7f37", "#cf222e", "#8250df")


@frozen
class Dots:
    """One contestant: its spread, with a label, on each kind of loop."""

    name: str
    values: Sequence[tuple[Spread, str]]
    colour: str = OTHERS


@frozen
class _Scale:
    """A logarithmic scale onto pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (log10(max(value, self.low)) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Powers of ten."""
        return [10.0**power for power in range(floor(log10(self.low)), ceil(log10(self.high)) + 1)]

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> _Scale:
        """Reach from the power of ten below the smallest to the one above the largest."""
        positive = [value for value in values if value > 0] or [1.0]
        low, high = floor(log10(min(positive))), ceil(log10(max(positive)))
        return cls(10.0**low, 10.0 ** max(high, low + 1), start, end)


@frozen
class _Canvas:
    parts: list[str] = field(factory=list[str])

    def text(self, x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", colour: str = INK) -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x: float, y: float, colour: str, *, hollow: bool) -> None:
        fill = "#ffffff" if hollow else colour
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="2"/>')

    def whole(self, height: float, title: str) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" font-family="system-ui, sans-serif" role="img">'
        )
        paper = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
        return "\n".join([head, f"<title>{escape(title)}</title>", paper, *self.parts, "</svg>\n"])


def dots(title: str, unit: str, kinds: Sequence[str], rows: Sequence[Dots]) -> str:
    """Draw for each contestant a dot on each kind of loop, with its range.

    Not bars: on a logarithmic scale their lengths would mean nothing.
    """
    canvas = _Canvas()
    left, right, thick, gap, top = 220, WIDTH - 160, 14, 8, 62
    step = len(kinds) * thick + gap
    height = top + len(rows) * step + 34
    scale = _Scale.over(
        (edge for row in rows for value, _ in row.values for edge in (value.low, value.high)), left, right
    )
    canvas.text(16, 26, title, size=15)
    canvas.text(16, 46, f"{unit}, logarithmic; left is better", colour=FAINT)
    for place, kind in enumerate(kinds if len(kinds) > 1 else ()):
        canvas.dot(WIDTH - 180 + 90 * place, 42, INK, hollow=bool(place))
        canvas.text(WIDTH - 170 + 90 * place, 46, kind, colour=FAINT)
    _grid(canvas, scale, top, height - 34)
    for number, row in enumerate(rows):
        y = top + number * step + gap / 2
        canvas.text(left - 8, y + len(kinds) * thick / 2 + 4, row.name, anchor="end")
        for place, (value, label) in enumerate(row.values):
            level = y + (place + 0.5) * thick
            canvas.line([(left, level), (scale(value.median), level)], GRID)
            canvas.line([(scale(value.low), level), (scale(value.high), level)], row.colour, 2)
            canvas.dot(scale(value.median), level, row.colour, hollow=bool(place))
            canvas.text(max(scale(value.high), scale(value.median) + 5) + 5, level + 4, label, size=11, colour=FAINT)
    return canvas.whole(height, title)


def _grid(canvas: _Canvas, scale: _Scale, top: float, bottom: float) -> None:
    for tick in scale.ticks:
        canvas.line([(scale(tick), top), (scale(tick), bottom)], GRID)
        canvas.text(scale(tick), bottom + 16, f"{tick:,g}", size=11, anchor="middle", colour=FAINT)


def lines(title: str, unit: str, x_name: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Draw a line for each contestant over what grows."""
    canvas = _Canvas()
    left, right, top, bottom = 70, WIDTH - 210, 62, 340
    across = _Scale.over((x for points in series.values() for x, _ in points), left, right)
    up = _Scale.over((y for points in series.values() for _, y in points), bottom, top)
    canvas.text(16, 26, title, size=15)
    canvas.text(16, 46, f"{unit} by {x_name}, both logarithmic", colour=FAINT)
    _grid(canvas, across, top, bottom)
    for tick in up.ticks:
        canvas.line([(left, up(tick)), (right, up(tick))], GRID)
        canvas.text(left - 8, up(tick) + 4, f"{tick:,g}", size=11, anchor="end", colour=FAINT)
    canvas.text((left + right) / 2, bottom + 34, x_name, anchor="middle", colour=FAINT)
    ends = sorted(((up(points[-1][1]), name) for name, points in series.items()))
    free = float(top)
    for place, points in enumerate(series.values()):
        canvas.line([(across(x), up(y)) for x, y in points], LINES[place % len(LINES)], 2)
    for y, name in ends:
        # Names stand at the ends of their lines, pushed down where they would overlap.
        free = max(y, free + 15)
        place = list(series).index(name)
        canvas.text(right + 8, free + 4, name, colour=LINES[place % len(LINES)])
    return canvas.whole(bottom + 46, title)
