"""The picture of a flow: valid, complete, and within its frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from attrs import frozen

from reactive_aio import Flow, schedulers
from reactive_aio._plan import Elsewhere, Inlet, Pushed
from reactive_aio._plan.layout import Box, Layout
from reactive_aio._plan.svg import LONGEST, draw
from reactive_aio.extend import flow_of
from reactive_aio.spec import Subscription
from tests.registry import REGISTRY, AnyFlow, Settings

NAMESPACE = "{http://www.w3.org/2000/svg}"


def picture(flow: AnyFlow, **options: Any) -> ET.Element:
    return ET.fromstring(flow.diagram(**options))


def all_of(svg: ET.Element, tag: str, kind: str) -> list[ET.Element]:
    return [each for each in svg.iter(NAMESPACE + tag) if each.get("class") == kind]


def texts(svg: ET.Element, kind: str) -> list[str]:
    return [each.text or "" for each in all_of(svg, "text", kind)]


def test_a_region_is_a_box_with_its_place_and_its_steps() -> None:
    flow = Flow.range(9).map(str).publish_on(schedulers.thread("writer"), prefetch=16).filter(bool).take(3)
    svg = picture(flow)

    assert 2 == len(all_of(svg, "rect", "box"))
    assert ["R1", "R2"] == texts(svg, "r")
    assert ["the subscriber's loop", "thread('writer')"] == texts(svg, "p")
    assert ["range(0, 9)", "map(str)", "filter(bool)", "take(3)"] == texts(svg, "s")


def test_a_boundary_is_a_dashed_line_with_its_prefetch() -> None:
    svg = picture(
        Flow.range(9)
        .publish_on(schedulers.current(), prefetch=16)
        .map(str)
        .publish_on(schedulers.current(), prefetch=1)
        .map(str)
    )

    assert 2 == len(all_of(svg, "path", "cut"))
    assert ["boundary", "prefetch 16", "boundary", "prefetch 1"] == texts(svg, "n")
    assert "stroke-dasharray" in (svg.findtext(f"{NAMESPACE}style") or "")


def test_what_consumes_a_flow_is_shown_when_it_is_named() -> None:
    flow = Flow.range(9).publish_on(schedulers.thread("far")).map(str)

    assert ["R1", "R2", "R3"] == texts(picture(flow, end="for_each(print)"), "r")
    assert "for_each(print)" == texts(picture(flow, end="for_each(print)"), "s")[-1]


def test_the_flows_that_a_combinator_reads_are_framed_below_it() -> None:
    other = Flow.of("x").publish_on(schedulers.thread("far")).map(str)
    svg = picture(Flow.range(9).concat(other).map(str))

    assert 2 == len(all_of(svg, "rect", "frame"))
    assert 2 == texts(svg, "p").count("where concat reads:")
    assert ["concat()", "map(str)", "range(0, 9)", "of('x')", "map(str)"] == texts(svg, "s")


def test_what_only_subscribes_again_is_a_caption() -> None:
    assert ["the subscriber's loop", "all of it under retry(2)"] == texts(picture(Flow.range(9).retry(2)), "p")


@frozen
class Far(Pushed[int]):
    """A source whose elements are made outside of the process."""

    @property
    def elsewhere(self) -> Elsewhere:
        return Elsewhere("Cluster <local>", "far() -> map(f)", "credit boundary, prefetch 64")

    def open(self, inlet: Inlet[Any]) -> Subscription:
        raise NotImplementedError


def test_a_region_outside_the_process_is_one_more_box() -> None:
    svg = picture(flow_of(Far()).map(str))

    assert ["R1", "R2"] == texts(svg, "r")
    assert ["Cluster <local>", "the subscriber's loop"] == texts(svg, "p")
    assert ["far()", "map(f)", "map(str)"] == texts(svg, "s")
    assert ["credit boundary", "prefetch 64"] == texts(svg, "n")


def test_text_is_escaped() -> None:
    svg = picture(Flow.of("<a href='x'>&amp;</a>").publish_on(schedulers.thread('"<&>"')).map(str))

    assert """of("<a href='x'>&amp;</a>")""" in texts(svg, "s")
    assert """thread('"<&>"')""" in texts(svg, "p")


def test_a_long_step_is_cut_and_shown_whole_when_it_is_pointed_at() -> None:
    svg = picture(Flow.of("x" * 25, "y" * 25))
    (step,) = all_of(svg, "text", "s")

    assert step.text is not None
    assert 44 == len(step.text)
    assert step.text.endswith("…")
    assert "y" * 20 in (step.findtext(f"{NAMESPACE}title") or "")


def test_a_notebook_shows_it() -> None:
    flow = Flow.range(3)

    assert flow.diagram() == flow._repr_svg_()


@pytest.mark.parametrize(
    "entry", [each for each in REGISTRY if not each.threaded and not getattr(each, "pool", "")], ids=str
)
def test_every_flow_can_be_drawn_and_nothing_is_outside_of_the_frame(entry: Any) -> None:
    flow = entry.make(5, lambda each: each, Settings(prefetch=2))
    for each in (flow, flow.retry(1).map(str).publish_on(schedulers.current(), prefetch=1).concat(flow)):
        svg = picture(each, end="to_list()")
        width, height = float(svg.get("width", 0)), float(svg.get("height", 0))
        boxes = [box for kind in ("box", "step", "frame", "paper") for box in all_of(svg, "rect", kind)]
        assert boxes
        for box in boxes:
            x, y = float(box.get("x", 0)), float(box.get("y", 0))
            assert x >= 0
            assert y >= 0
            assert x + float(box.get("width", 0)) <= width
            assert y + float(box.get("height", 0)) <= height
        for text in svg.iter(f"{NAMESPACE}text"):
            assert 0 < float(text.get("x", 0)) < width
            assert 0 < float(text.get("y", 0)) < height


def test_steps_lie_within_the_boxes_of_their_regions() -> None:
    flow = Flow.range(9).map(str).publish_on(schedulers.current(), prefetch=1).map(str).map(len).map(abs)
    svg = picture(flow)
    boxes = [span(box) for box in all_of(svg, "rect", "box")]

    for step in all_of(svg, "rect", "step"):
        left, right, top, bottom = span(step)
        assert 1 == sum(a < left and right < b and c < top and bottom < d for a, b, c, d in boxes)


def test_words_fit_into_what_they_are_written_in() -> None:
    flow = (
        Flow.of("a rather long element").publish_on(schedulers.thread("with a rather long name"), prefetch=1).map(str)
    )
    svg = picture(flow)

    for kind, inside, character in [("s", "step", 7.2), ("n", "paper", 5.5)]:
        for text, box in zip(all_of(svg, "text", kind), all_of(svg, "rect", inside), strict=True):
            assert len(text.text or "") * character <= float(box.get("width", 0))
    for place, box in zip(all_of(svg, "text", "p"), all_of(svg, "rect", "box"), strict=True):
        left, right, _, _ = span(box)
        assert left < float(place.get("x", 0)) + len(place.text or "") * 5.5 < right


def span(box: ET.Element) -> tuple[float, float, float, float]:
    x, y, width, height = (float(box.get(name, 0)) for name in ("x", "y", "width", "height"))
    return x, x + width, y, y + height


# -- what has been looked at

LOOKED_AT = Path(__file__).parent / "pictures"

LOOP = "the subscriber's loop"
LAYOUTS: dict[str, Layout] = {
    "one_box": Layout((Box("here", ()),), ()),
    "many_notes": Layout(
        (Box("a", ("f",)), Box("b", ("g",)), Box("c", ("h",))), ("one, two, three, then four, five, six, seven", "one")
    ),
    "everything": Layout(
        (
            Box(LOOP, ("range(0, 3)", "map(str)", "x" * LONGEST, "<" + "y" * LONGEST)),
            Box("p", ("f",)),
            Box("thread('a name that is longer than all that is done there')", ()),
        ),
        ("boundary, prefetch 16, then boundary, prefetch 1", "boundary"),
        under=("retry(2)", "repeat(3)"),
        reads=(
            ("concat", Layout((Box(LOOP, ("of('a')",)),), ())),
            ("zip", Layout((Box("a", ("f",)), Box("b", ())), ("prefetch 2",), under=("retry()",), reads=(
                ("merge", Layout((Box("c", ("g", "h")),), (), end="to_set()")),
            ))),
        ),
        end="to_list()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_picture_is_drawn_as_it_was_when_somebody_looked_at_it(name: str) -> None:
    drawn = draw(LAYOUTS[name])

    # After a change on purpose: look at the new one, and put it there.
    assert (LOOKED_AT / f"{name}.svg").read_text("utf-8") == drawn + "\n"
