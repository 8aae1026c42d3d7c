"""The architecture, read off the imports: each layer knows only those below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from attrs import frozen

PACKAGE = Path(__file__).parents[2] / "reactive_aio"

BASE = {"_core", "errors", "hooks", "spec"}
PLAN = BASE | {"_fusion", "_plan"}
STAGES = PLAN | {"schedulers"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "_core": {"errors"},
    "hooks": {"_core", "errors"},
    "spec": {"_core", "errors"},
    "_fusion": BASE,
    "_plan": BASE | {"_fusion"},
    "_clocks": {"_core", "errors"},
    "_remote": {"_core", "errors"},
    "schedulers": BASE | {"_clocks", "_remote"},
    "_arbiter": PLAN,
    "operators": STAGES | {"_arbiter"},
    "_flow": STAGES | {"_arbiter", "operators"},
    "_catalogue": STAGES | {"_flow", "operators"},
    "_runtime": STAGES | {"_arbiter", "operators"},
    "spark": STAGES | {"_arbiter", "_remote", "operators"},
    "extend": STAGES | {"_arbiter", "_flow", "_runtime", "operators"},
    "strict": BASE | {"_flow", "_fusion"},
    "tck": BASE | {"_clocks"},
    "testing": BASE | {"_clocks", "_flow", "_plan", "_runtime"},
    "_bytes": BASE | {"_flow", "_fusion", "operators"},
    "_connector": PLAN | {"_flow", "operators"},
    "io": BASE | {"_bytes", "_connector", "_flow", "operators"},
    "web": BASE | {"_bytes", "_connector", "_flow", "_fusion", "operators"},
    "_cli": BASE | {"_flow", "_plan", "_runtime"},
    "__init__": STAGES | {"_flow", "operators"},
    "__main__": {"_cli"},
}
"""The parts that each part may import when it is loaded."""


@frozen
class Import:
    """One import of a module of the package."""

    of: str
    """The module that is imported, dotted."""
    line: int
    typed: bool
    """Whether only type checkers see it."""
    later: bool
    """Whether it is inside a function."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def named(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


NAMES = {named(path) for path in modules()}


def part(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


@cache
def imports(path: Path) -> list[Import]:
    """Every import of the package's own, also for type checkers and inside functions."""
    package = path.relative_to(PACKAGE).parent.parts

    def visit(node: ast.AST, typed: bool, later: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typed = True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            later = True
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = (*package[: len(package) - (node.level - 1)], *(node.module or "").split("."))
            target = ".".join(filter(None, base))
            for alias in node.names:
                whole = f"{target}.{alias.name}".lstrip(".")
                yield Import(whole if whole in NAMES else target, node.lineno, typed, later)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, typed, later)

    return list(visit(ast.parse(path.read_text()), False, False))


def test_each_part_of_the_package_has_its_layer() -> None:
    assert set(MAY_IMPORT) == {part(name) for name in NAMES}


@pytest.mark.parametrize("path", modules(), ids=named)
def test_a_module_imports_only_from_layers_below(path: Path) -> None:
    own = part(named(path))
    found = {part(each.of) for each in imports(path) if not each.typed and not each.later}

    assert found <= MAY_IMPORT[own] | {own}


UPWARDS: dict[tuple[str, str], str] = {
    ("_flow", "_runtime"): "an end meets the engine when it runs, so that the package is light to import",
    ("_flow", "spark"): "likewise, the writers of `to_spark`, and `to_frame`",
    ("operators", "_flow"): "windows and groups are flows; a flow is a class of all operators",
    ("operators", "_runtime"): "a shared flow meets the engine when it is subscribed to",
    ("operators", "spark"): "`from_spark` and its kin meet Spark when they are called",
    ("operators", "strict"): "the operator `strict` meets the tool when it is called",
    ("schedulers", "spark"): "`schedulers.spark` meets Spark when it is called",
    ("spark", "_flow"): "a micro-batch gives its rows as a flow",
}
"""Which parts import a higher one inside functions, and why."""


@pytest.mark.parametrize("path", modules(), ids=named)
def test_a_function_imports_only_from_layers_below_or_for_a_reason(path: Path) -> None:
    own = part(named(path))
    found = {part(each.of) for each in imports(path) if not each.typed and each.later}
    reasons = {above for below, above in UPWARDS if below == own}

    assert found <= MAY_IMPORT[own] | {own} | reasons


def test_no_reason_has_outlived_its_import() -> None:
    found = {(part(named(path)), part(each.of)) for path in modules() for each in imports(path) if each.later}

    assert set(UPWARDS) <= found


# -- circles


def circles(*, typed: bool) -> list[set[str]]:
    """The sets of modules that import each other, in whatever way; those for type checkers only where asked for."""
    graph = {
        named(path): {each.of for each in imports(path) if typed or not each.typed} & NAMES - {named(path)}
        for path in modules()
    }
    # A module reaches what it imports, and so on; two that reach each other are in one circle.
    reached = {name: set(targets) for name, targets in graph.items()}
    for middle in graph:
        for targets in reached.values():
            if middle in targets:
                targets.update(reached[middle])
    found: list[set[str]] = []
    for name in graph:
        circle = {other for other in reached[name] if name in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


AROUND_FLOW = {"_flow", "operators", "spark"}
"""Operators give flows, and a flow has all operators: the one circle of the library, among these parts."""

KNOWN_CIRCLES: list[set[str]] = [
    # A source on Spark makes the sources that it becomes: a sorted one, a union, one of what a plan has shuffled by key.
    {
        "spark._source.sorting",
        "spark._source.source",
        "spark._source.union",
        "spark._source.keyed",
        "spark._frame.planned",
        "spark._frame.shuffling",
        "spark._results.source",
    },
    # Spark imports the data source by name where it runs, and asks it for the writer and for the way back.
    {"spark.streaming._datasink", "spark.streaming._datasource", "spark.streaming._line"},
]


def test_no_circle_but_the_one_around_flow() -> None:
    found = [each for each in circles(typed=False) if each not in KNOWN_CIRCLES]

    assert 1 == len(found), found
    assert {"_flow.flow", "operators.windowing.window"} <= found[0]
    assert {part(name) for name in found[0]} <= AROUND_FLOW


def test_the_circles_of_types_stay_inside_their_parts() -> None:
    for circle in circles(typed=True):
        parts = {part(name) for name in circle}
        assert 1 == len(parts) or "_flow.flow" in circle, circle


def test_only_the_spark_engine_imports_pyspark() -> None:
    users = {
        part(named(path))
        for path in modules()
        for node in ast.parse(path.read_text()).body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        if name.split(".")[0] in {"pyspark", "pyarrow", "pandas"}
    }
    assert users <= {"spark"}


def test_the_two_engines_do_not_know_each_other() -> None:
    assert "spark" not in MAY_IMPORT["_runtime"]
    assert "_runtime" not in MAY_IMPORT["spark"]


# One function a rule, in one place: to be looked up, not read through.
LONGER = {PACKAGE / "spec" / "predicates.py"}


@pytest.mark.parametrize("path", [path for path in modules() if path not in LONGER], ids=str)
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500


def test_importing_the_package_loads_no_engine() -> None:
    import subprocess
    import sys

    code = (
        "import sys, reactive_aio; print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "{'pyspark', 'pyarrow', 'pandas', 'uvloop', 'rich', 'pytest'} or m.startswith('reactive_aio._runtime')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
