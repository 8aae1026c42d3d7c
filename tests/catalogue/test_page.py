"""The page of the operators is what is generated."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

import reactive_aio
from reactive_aio._catalogue import operators

from .page import DOCS, PAGE, PICTURES, page, pictures, place
from .sources import SECTIONS, members

AGAIN = "write it anew: python -m tests.catalogue.page"


def test_the_page_is_up_to_date() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), AGAIN


def test_there_is_a_diagram_for_each_example_and_no_other() -> None:
    assert set(pictures()) == {path.name for path in PICTURES.glob("*.svg")}, AGAIN


@pytest.mark.parametrize("name", pictures())
def test_a_diagram_is_up_to_date_and_within_its_frame(name: str) -> None:
    text = (PICTURES / name).read_text(encoding="utf-8")
    assert pictures()[name] == text, AGAIN

    svg = ET.fromstring(text)
    width, height = float(svg.get("width", 0)), float(svg.get("height", 0))
    for each in svg.iter():
        if each.get("x") is not None:
            assert 0 <= float(each.get("x", 0)) <= width
            assert 0 <= float(each.get("y", 0)) <= height


def test_the_page_on_workers_names_the_operators_that_they_run() -> None:
    bullet = (DOCS / "concepts" / "workers.md").read_text(encoding="utf-8").partition("- **On the workers:**")[2]
    named = re.findall(r"`(\w+)`", bullet.partition(". ")[0])

    on_spark_too = {each.name for each in operators() if place(each)[1] == "in the workers"}
    assert sorted(on_spark_too - {"repartition", "then"}) == sorted(named)


def test_each_public_member_of_a_hot_source_is_on_the_page() -> None:
    for kind in (kind for _, documented in SECTIONS.values() for kind in documented if isinstance(kind, type)):
        shown = [name for name, _ in members(kind)]
        fields = {each.name for each in getattr(kind, "__attrs_attrs__", ())}
        for name in {*vars(kind), *fields}:
            if not name.startswith("_"):
                assert [each for each in shown if re.search(rf"\b{name}\b", each)], f"{kind.__name__}.{name}"


def test_each_snapshot_of_the_library_is_on_the_page() -> None:
    documented = {each.__name__ for _, kinds in SECTIONS.values() for each in kinds}

    assert set() == {name for name in dir(reactive_aio) if name.endswith("Snapshot")} - documented
