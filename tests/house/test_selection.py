"""CI leaves out cases, but no operator, no way to run it and no value of a parameter. The daily run also leaves out costly tests."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import frozen

from tests import selection
from tests.selection import FEW, LOOP, MANY, SHARE

ROOT = Path(__file__).parents[2]
SEEDS = ["6de74a4", "0", "another"]
NAMES = [f"operator {n}" for n in range(2 * MANY)]


@frozen
class Both(selection.Case):
    """Two parameters in one value."""

    entry: str
    way: str

    def axes(self) -> dict[Hashable, Hashable]:
        return {"entry": self.entry, "way": self.way}


@frozen
class Callspec:
    params: dict[str, Any]

    @property
    def _idlist(self) -> list[str]:
        return [*map(str, self.params.values())]


@frozen(eq=False)
class Sample:
    """The parts of a test that the selection reads."""

    nodeid: str
    callspec: Callspec
    marks: tuple[str, ...] = ()
    config: Any = None

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def product_of(
    name: str = "test_it", marks: tuple[str, ...] = (), folder: str = "tests", **parameters: Sequence[Any]
) -> list[Any]:
    """Return the cases of a test, which are all combinations of its parameters."""
    found: list[Any] = []
    for values in product(*parameters.values()):
        params = dict(zip(parameters, values, strict=True))
        shown = "-".join(map(str, values))
        found.append(Sample(f"{folder}/test_it.py::{name}[{shown}]", Callspec(params), marks))
    return found


def values(items: Sequence[Any], name: str) -> set[Any]:
    return {item.callspec.params[name] for item in items}


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_product_a_run_has_every_operator_and_every_way_on_one_loop(seed: str) -> None:
    ways, loops = ["fused", "apart", "by ones"], ["asyncio", "uvloop"]
    items = product_of(**{LOOP: loops}, entry=NAMES, way=ways)

    found = list(selection.brief(items, seed))

    assert set(NAMES) == values(found, "entry")
    assert set(ways) == values(found, "way")
    assert 1 == len(values(found, LOOP))
    assert len(found) < len(items) // 3


def test_a_value_that_stands_for_several_parameters_is_taken_for_these() -> None:
    items = product_of(case=[Both(entry, way) for entry in NAMES for way in ("fused", "apart")])

    found = {item.callspec.params["case"] for item in selection.brief(items, "0")}

    assert set(NAMES) == {case.entry for case in found}
    assert {"fused", "apart"} == {case.way for case in found}
    assert len(found) <= len(NAMES) + 2


def test_a_test_with_few_cases_runs_all_of_them_on_one_loop() -> None:
    cases = [str(n) for n in range(MANY // 2)]
    items = product_of(**{LOOP: ["asyncio", "uvloop"]}, n=cases)

    found = [item.callspec.params["n"] for item in selection.brief(items, "0")]

    assert cases == sorted(found, key=int)


def test_of_a_test_on_spark_a_few_cases_run_and_in_time_all_of_them() -> None:
    items = product_of(folder="tests/spark/sink", n=[str(n) for n in range(MANY // 2)])

    found = [selection.brief(items, str(seed)) for seed in range(100)]

    assert {FEW} == {len(each) for each in found}
    assert set(items) == set().union(*found)


def test_the_seed_draws_the_loop() -> None:
    items = product_of(**{LOOP: ["asyncio", "uvloop"]})

    assert {"asyncio", "uvloop"} == {
        item.callspec.params[LOOP] for n in range(20) for item in selection.brief(items, str(n))
    }


def test_the_loop_that_is_drawn_is_the_same_before_the_cases_are_made() -> None:
    class Config:
        def getoption(self, name: str) -> str:
            return {"--part": "daily", "--seed": "5"}[name]

    items = product_of(**{LOOP: ["asyncio", "uvloop"]})
    before = Sample("tests/test_it.py::test_it", Callspec({}), config=Config())

    (item,) = selection.brief(items, "5")

    assert {item.callspec.params[LOOP]: None} == selection.loops(cast(Any, before), {"uvloop": None, "asyncio": None})


def test_a_seed_draws_the_same_tests_every_time_and_another_one_others() -> None:
    items = product_of(entry=NAMES, way=["fused", "apart"])

    for part in ("daily", "ci"):
        drawn = [selection.chosen(items, part, seed) for seed in ("0", "0", "1")]
        assert drawn[0] == drawn[1]
        assert drawn[0] != drawn[2]


def test_what_takes_long_is_left_to_the_whole_run_and_to_the_draw_of_ci() -> None:
    items = product_of(marks=("long",), entry=NAMES)

    assert set() == selection.brief(items, "0")
    assert set(items) == selection.chosen(items, "all", "0")
    assert set(items) == {item for n in range(20 * SHARE) for item in selection.chosen(items, "ci", str(n))}


@pytest.mark.parametrize("seed", SEEDS)
def test_ci_draws_about_one_in_so_many_of_the_rest(seed: str) -> None:
    items = product_of(entry=NAMES, way=["fused", "apart"]) + product_of("test_long", ("long",), n=range(100 * SHARE))

    brief, found = selection.brief(items, seed), selection.chosen(items, "ci", seed)

    assert brief < found
    assert 50 < len(found - brief) < 150


@pytest.mark.parametrize(
    ("folder", "marks", "cases"), [("tests/spark/sink", (), 1), ("tests", ("costly",), 2), ("tests", ("spark",), 2)]
)
def test_of_what_takes_seconds_the_daily_run_has_a_quarter_of_the_tests_and_in_time_all(
    folder: str, marks: tuple[str, ...], cases: int
) -> None:
    items = [each for n in range(200) for each in product_of(f"test_{n}", marks, folder, n=["1", "2"])]

    found = [selection.chosen(items, "daily", str(seed)) for seed in range(120)]

    assert all(27 * cases < len(each) < 73 * cases for each in found)
    assert set(items) == set().union(*found)
    assert set(items) == selection.chosen(items, "brief", "0")
    assert set(items) == selection.chosen(items, "ci", "0")


def test_of_the_cases_of_one_test_that_takes_seconds_each_daily_run_has_about_a_quarter() -> None:
    items = product_of("test_it", ("costly",), n=range(100), way=["1"])

    found = [selection.chosen(items, "daily", str(seed)) for seed in range(40)]

    assert all(10 < len(each) < 40 for each in found)
    assert set(items) == set().union(*found)


def test_of_a_test_on_spark_the_daily_run_has_one_case() -> None:
    items = [each for n in range(20) for each in product_of(f"test_{n}", folder="tests/spark", n=["1", "2"])]

    found = selection.chosen(items, "daily", "0")

    assert 0 < len(found) < len(items)
    assert len({selection.name_of(item) for item in found}) == len(found)


def test_of_other_tests_the_daily_run_has_all() -> None:
    items = [each for n in range(200) for each in product_of(f"test_{n}", n=["1", "2"])]

    assert set(items) == selection.chosen(items, "daily", "0")


def test_a_module_is_run_by_one_process() -> None:
    assert "tests/grid/test_leaks.py" == selection.unit("tests/grid/test_leaks.py::test_it[map-1]")


def test_modules_with_a_session_of_spark_are_run_by_one_process() -> None:
    modules = ["tests/spark/sink/test_whole.py", "reactive_aio/spark/session.py", "tests/benchmarks/test_tpch.py"]

    assert {"spark"} == {selection.unit(f"{module}::test_it") for module in modules}


def test_no_other_module_takes_the_session() -> None:
    takes = re.compile(r"^ *(async )?def [^)]*\bspark: ", re.MULTILINE)
    modules = {
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/*.py") if takes.search(path.read_text())
    }

    assert "tests/benchmarks/test_tpch.py" in modules
    assert set() == {each for each in modules if not each.startswith(selection.SESSION)}


def test_what_takes_long_comes_first_and_a_module_stays_together() -> None:
    many = product_of("test_many", n=range(selection.SECONDS - 1))
    costly = product_of("test_costly", ("costly",), folder="tests/web", n=[1])
    spark = product_of("test_spark", folder="tests/spark", n=[1, 2])
    items = [*many[:5], *costly, *many[5:], *spark]

    selection.long_first(items)

    assert [*spark, *costly, *many] == items
