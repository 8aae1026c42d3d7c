"""The architecture, read off the imports: each layer knows only those below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "reactive_aio"

BASE = {"budgets", "errors", "guard", "hooks", "notes", "spec"}
STAGES = BASE | {"segments", "schedulers"}
# What each part may import when it is loaded. Imports inside functions and for type checkers don't count: that
# is how an end meets its engine.
MAY_IMPORT: dict[str, set[str]] = {
    "budgets": set(),
    "errors": set(),
    "guard": {"errors", "notes"},
    "hooks": {"guard", "notes"},
    "notes": set(),
    "spec": {"errors", "guard"},
    "segments": BASE,
    "clocks": set(),
    "remote": {"budgets", "errors", "guard", "notes"},
    "schedulers": BASE | {"clocks", "remote"},
    "arbiter": BASE | {"segments"},
    "gathering": BASE | {"segments", "arbiter"},
    "operators": STAGES | {"arbiter", "gathering"},
    "reductions": STAGES | {"operators"},
    "ends": STAGES | {"operators", "reductions"},
    "flow": STAGES | {"operators", "ends"},
    "catalogue": STAGES | {"operators", "reductions", "ends", "flow"},
    "grouped": {"flow"},
    "processor": STAGES | {"operators", "flow"},
    "runtime": STAGES | {"arbiter", "gathering", "operators"},
    "spark": STAGES | {"arbiter", "gathering", "operators", "remote"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The parts of the package that a module imports when it is loaded."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            package = path.relative_to(PACKAGE).parent.parts
            base = package[: len(package) - (node.level - 1)]
            target = (*base, *(node.module.split(".") if node.module else ()))
            found |= {target[0]} if target else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("path", [path for path in modules() if part(path) in MAY_IMPORT], ids=str)
def test_a_module_imports_only_from_layers_below(path: Path) -> None:
    assert imports(path) <= MAY_IMPORT[part(path)] | {part(path)}


def test_only_the_spark_engine_imports_pyspark() -> None:
    users = {
        part(path)
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
    assert "spark" not in MAY_IMPORT["runtime"]
    assert "runtime" not in MAY_IMPORT["spark"]


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
        "{'pyspark', 'pyarrow', 'pandas', 'uvloop', 'rich', 'pytest'} or m.startswith('reactive_aio.runtime')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
