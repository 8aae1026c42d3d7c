"""The picture of a flow, in SVG: a box for each region, a dashed line for each boundary.

Written by hand, without a library: text of a fixed width makes the sizes simple arithmetic.
"""

from __future__ import annotations

from html import escape
from typing import Final

from attrs import define, field

from .._core.containers import new_list
from .layout import Box, Layout

CHAR: Final = 7.25
"""The width of a character of the steps, which are set in 12 pixels of a monospaced font."""
SMALL: Final = 6.2
"""The width of a character of places and notes, on average."""
STEP: Final = 26
NOTE: Final = 14
HEAD: Final = 46
PAD: Final = 14
LONGEST: Final = 44
"""Characters of a step. A longer one is cut, and shown whole when it is pointed at."""

STYLE: Final = (
    "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2933}"
    ".paper{fill:#fff}.r{font-weight:700;fill:#1d4e89}.p,.n{font:11px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "fill:#52606d}.box{fill:#f4f8fc;stroke:#1d4e89;stroke-width:1.2}.step{fill:#fff;stroke:#cbd5e0}"
    ".cut{stroke:#b44d12;stroke-width:1.4;stroke-dasharray:5 4}.n{fill:#b44d12}"
    ".flow{stroke:#52606d;stroke-width:1.4;fill:none}.tip{fill:#52606d}.frame{fill:none;stroke:#9aa5b1;"
    "stroke-dasharray:2 3}"
)


@define
class Canvas:
    """The elements drawn so far, and how far they reach."""

    shapes: list[str] = field(factory=new_list)
    width: float = 0.0
    height: float = 0.0

    def add(self, shape: str, right: float, bottom: float) -> None:
        """Add an element."""
        self.shapes.append(shape)
        self.width, self.height = max(self.width, right), max(self.height, bottom)

    def text(self, kind: str, x: float, y: float, text: str, wide: float, *, anchor: str = "start") -> None:
        """Add a line of text, ``wide`` pixels a character."""
        shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        whole = "" if shown == text else f"<title>{escape(text)}</title>"
        right = x + len(shown) * wide / (2 if anchor == "middle" else 1)
        self.add(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(shown)}{whole}</text>',
            right,
            y,
        )

    def rectangle(self, kind: str, x: float, y: float, width: float, height: float, round_by: int) -> None:
        """Add a rectangle."""
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_by}"'
        self.add(f'<rect class="{kind}" {size}/>', x + width, y + height)


def draw(plan: Layout) -> str:
    """Return the picture as a document of its own."""
    canvas = Canvas()
    _draw(canvas, plan, PAD, PAD)
    width, height = canvas.width + PAD, canvas.height + PAD
    title = " | ".join(" ".join(box.work) or "..." for box in plan.boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(canvas.shapes)}</svg>'
    )


def _draw(canvas: Canvas, plan: Layout, left: float, top: float) -> None:
    bottom = _row(canvas, plan, left, top)
    for caption in [f"all of it under {each}" for each in plan.under] + (
        [f"consumed by {plan.end}"] if plan.end else []
    ):
        bottom += 20
        canvas.text("p", left, bottom, caption, SMALL)
    for name, inner in plan.reads:
        bottom += 26
        canvas.text("p", left, bottom, f"where {name} reads:", SMALL)
        frame, before = bottom + 8, len(canvas.shapes)
        part = Canvas()
        _draw(part, inner, left + 2 * PAD, frame + PAD)
        canvas.rectangle("frame", left + PAD, frame, part.width - left, part.height + PAD - frame, 4)
        canvas.shapes[before + 1 :] = part.shapes
        bottom = part.height + PAD


def _row(canvas: Canvas, plan: Layout, left: float, top: float) -> float:
    """Draw the regions from left to right. Return the y of their lower edge."""
    notes = [_words(note) for note in plan.notes]
    beside = NOTE * max([len(words) for words in notes], default=0)
    height = max(HEAD + STEP * max(1, *(len(box.work) for box in plan.boxes)) + PAD - 4, beside + 26.0)
    arrow = top + max(height / 2 + 2, beside + 12)
    x = left
    for number, box in enumerate(plan.boxes, 1):
        if number > 1:
            x = _boundary(canvas, notes[number - 2], x, top, height, arrow)
        x += _region(canvas, number, box, x, top, height)
    return top + height


def _words(note: str) -> list[str]:
    """Return the lines of a note: each boundary, and what it says of itself."""
    return [word.removeprefix("then ") for word in note.split(", ")]


def _region(canvas: Canvas, number: int, box: Box, x: float, top: float, height: float) -> float:
    longest = max([len(step) for step in box.work] or [len("…")])
    width = max(min(longest, LONGEST) * CHAR + 4 * PAD, min(len(box.place), LONGEST) * SMALL + 2 * PAD, 90.0)
    canvas.rectangle("box", x, top, width, height, 7)
    canvas.text("r", x + PAD, top + 19, f"R{number}", CHAR)
    canvas.text("p", x + PAD, top + 35, box.place, SMALL)
    for at, step in enumerate(box.work or ("…",)):
        y = top + HEAD + at * STEP
        canvas.rectangle("step", x + PAD, y, width - 2 * PAD, STEP - 6, 4)
        canvas.text("s", x + width / 2, y + 14, step, CHAR, anchor="middle")
        if at:
            canvas.add(f'<path class="flow" d="M{x + width / 2:.1f} {y - 6:.1f}v6"/>', x, y)
    return width


def _boundary(canvas: Canvas, words: list[str], x: float, top: float, height: float, arrow: float) -> float:
    """Draw the dashed line between two regions, with an arrow across it. Return the x of the next region."""
    gap = max(max(map(len, words)) * SMALL + 2 * PAD, 70.0)
    middle = x + gap / 2
    canvas.add(f'<path class="cut" d="M{middle:.1f} {top - 6:.1f}v{height + 12:.1f}"/>', middle, top + height + 6)
    canvas.add(f'<path class="flow" d="M{x + 4:.1f} {arrow:.1f}H{x + gap - 10:.1f}"/>', x + gap, arrow)
    canvas.add(f'<path class="tip" d="M{x + gap - 3:.1f} {arrow:.1f}l-9 -4.5v9z"/>', x + gap, arrow)
    for at, word in enumerate(words):
        canvas.rectangle(
            "paper", middle - len(word) * SMALL / 2 - 2, top + 2 + NOTE * at, len(word) * SMALL + 4, NOTE, 0
        )
        canvas.text("n", middle, top + 13 + NOTE * at, word, SMALL, anchor="middle")
    return x + gap
