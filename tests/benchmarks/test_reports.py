"""The figures of a run: read back, compared, drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from attrs import evolve
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import compare, page
from benchmarks.harness import Bar, Contestant, Effort, Figures, Measured, Outcome, Row, Spread, Verdict, measure
from benchmarks.report import Machine, Report

DOCS = Path(__file__).parents[2] / "docs"
HERE = Machine("CPython 3.11", "Linux 6", "a processor", 2, {"anyio": "4"})


def outcome(title: str, *, limit: str = "", **figures: Spread) -> Outcome:
    measured = tuple(Measured(name, 1_000, {"CPU ns": each}, each) for name, each in figures.items())
    return Outcome(Row(title, 1_000, (), cpu=True, limit=limit, chapter="Chapter"), measured)


def report(*outcomes: Outcome) -> Report:
    return Report(HERE, False, "2026-01-01", outcomes, {"spark": "no Java"})


def test_a_report_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    contestants = (
        Contestant("ours", lambda: Figures({"size": 1.5})),
        Contestant("gone", print, needs="no_such_module"),
    )
    measured = measure(Row("sizes", 1, contestants, (Bar(at_most=2),), metrics=("size",)), Effort(0.001, 2))
    written = report(measured)

    written.save(tmp_path / "figures.json")
    read = Report.load(tmp_path / "figures.json")

    assert (read.machine, read.verdicts, read.absent) == (written.machine, written.verdicts, written.absent)
    assert read.outcomes[0].measured == written.outcomes[0].measured
    assert read.outcomes[0].row.metrics == ("size",)


@pytest.mark.parametrize(
    ("before", "after", "slower", "faster"),
    [
        (Spread(100, 95, 105), Spread(120, 110, 125), True, False),
        (Spread(120, 110, 125), Spread(100, 95, 105), False, True),
        (Spread(100, 80, 125), Spread(120, 110, 125), False, False),
        (Spread(100, 100, 100), Spread(101, 101, 101), False, False),
    ],
    ids=["beyond the spread", "the other way", "ranges that touch", "too little to speak of"],
)
def test_slower_is_what_got_worse_beyond_the_spread(before: Spread, after: Spread, slower: bool, faster: bool) -> None:
    (change,) = compare.changes(report(outcome("w", reactive_aio=before)), report(outcome("w", reactive_aio=after)))

    assert (change.slower, change.faster) == (slower, faster)


def test_ours_are_compared_and_by_wish_everybodys() -> None:
    run = report(outcome("w", reactive_aio=Spread(1, 1, 1), peer=Spread(2, 2, 2)))

    assert [each.contestant for each in compare.changes(run, run)] == ["reactive_aio"]
    assert [each.contestant for each in compare.changes(run, run, everybody=True)] == ["reactive_aio", "peer"]


def test_where_there_is_a_limit_ratios_to_it_are_compared() -> None:
    run = report(outcome("w", limit="peer", reactive_aio=Spread(1, 1, 1), peer=Spread(2, 2, 2)))

    metrics = [each.metric for each in compare.changes(run, run, everybody=True)]

    assert metrics == ["to peer", "CPU ns"]


def test_compare_fails_when_something_got_slower(tmp_path: Path) -> None:
    fast, slow = tmp_path / "fast.json", tmp_path / "slow.json"
    report(outcome("w", reactive_aio=Spread(1, 1, 1))).save(fast)
    report(outcome("w", reactive_aio=Spread(2, 2, 2))).save(slow)

    assert command.main(["compare", str(fast), str(slow)]) == 1
    assert command.main(["compare", str(slow), str(fast)]) == 0


def test_a_comparison_of_two_machines_says_so() -> None:
    there = Report(Machine("PyPy", "Linux 6", "another", 8, {}), False, "2026-01-01", (), {})
    console = Console(width=200, record=True, quiet=False)

    compare.show(report(), there, console)

    assert "not the same machine" in console.export_text()


def test_every_plot_is_sound_xml_and_linked_from_the_page() -> None:
    lines = [
        Outcome(Row(f"x {x}", 1, (), chapter="Chapter", series="growth", x=x, x_name="x", metrics=("size",)),
                (Measured("a & b", 1, {"size": Spread(x, x, x)}),))
        for x in (1, 10, 100)
    ]  # fmt: skip
    files = page.files(report(outcome("some <work>", reactive_aio=Spread(1, 1, 1), peer=Spread(2, 2, 2)), *lines))

    plots = {name: text for name, text in files.items() if name.endswith(".svg")}
    assert set(plots) == {"benchmarks/some-work.svg", "benchmarks/growth.svg"}
    for name, text in plots.items():
        ET.fromstring(text)
        assert f"({name})" in files["benchmarks.md"]


def test_the_page_names_the_machine_the_bars_and_who_is_absent() -> None:
    missed = Verdict("w", "at most 1x", "2x", False)
    lost = Outcome(Row("w", 1, ()), (Measured("peer", absent="peer can't be imported"),), (missed,))

    text = page.files(report(lost))["benchmarks.md"]

    assert "a processor" in text
    assert "| w | at most 1x | 2x | **missed** |" in text
    assert "- peer: peer can't be imported" in text
    assert "- spark (a chapter): no Java" in text


def test_rows_of_a_later_run_take_the_places_of_those_before_and_say_their_date() -> None:
    one, ten = Spread(1, 1, 1), Spread(10, 10, 10)
    first = report(outcome("a", reactive_aio=one), evolve_chapter(outcome("b", reactive_aio=one), "Another"))
    later = evolve(report(outcome("a", reactive_aio=ten), outcome("c", reactive_aio=ten)), date="2026-02-02")

    both = first.updated(later)

    assert ["a", "c", "b"] == [each.row.title for each in both.outcomes]
    assert [ten, ten, one] == [each.measured[0].ratio for each in both.outcomes]
    text = page.files(both)["benchmarks.md"]
    assert "## Chapter\n\nMeasured on 2026-02-02.\n" in text
    assert "## Another\n\nMeasured" not in text


def test_rows_of_another_machine_name_its_processor() -> None:
    first = report(outcome("a", reactive_aio=Spread(1, 1, 1)))
    later = evolve(first, date="2026-02-02", machine=evolve(first.machine, processor="another"))

    both = first.updated(later).updated(report())

    assert "## Chapter\n\nMeasured on 2026-02-02, another.\n" in page.files(both)["benchmarks.md"]


def evolve_chapter(made: Outcome, chapter: str) -> Outcome:
    return evolve(made, row=evolve(made.row, chapter=chapter))


def test_the_page_and_its_plots_are_those_of_the_figures_beside_them() -> None:
    files = page.files(Report.load(DOCS / "benchmarks" / page.FIGURES))

    assert {path.name for path in (DOCS / "benchmarks").glob("*.svg")} == {
        Path(name).name for name in files if "/" in name
    }
    for name, text in files.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, (
            f"{name}: python3 dev.py bench docs docs/benchmarks/results.json"
        )


def test_every_module_of_workloads_is_found_by_its_name() -> None:
    modules = {path.stem.removeprefix("bench_") for path in (DOCS.parent / "benchmarks").glob("bench_*.py")}

    assert set(command.names()) == modules


def test_a_chapter_that_cannot_be_imported_is_named() -> None:
    absent: dict[str, str] = {}

    assert list(command.all_rows(1, ["no_such_chapter"], absent)) == []
    assert "no_such_chapter" in absent["no_such_chapter"]
