"""The catalogue is complete: each operator, source and end has its traits and an example, and they speak of what there is."""

from __future__ import annotations

import ast
import inspect

import pytest

from reactive_aio._catalogue import LEFT_OUT, TRAITS, Operator, methods, names_in, operators
from reactive_aio._catalogue.docstring import read
from reactive_aio._fusion import Stage

from .examples import Example, all_examples
from .page import PAGE, examples, spark
from .recorded import recorded_examples
from .running import ran

KNOWN = {"d", "unbounded", "min", "max", "len", "range", "is_async", "MISSING"}
EXPRESSIONS = {"demand", "others", "keeps"}
SPARK = {
    "": "after the boundary",
    "in parts": "in",
    "in turn": "one partition after another",
    "shuffled by key": "shuffled by key",
    "in the workers": "runs in the workers",
}
"""The words of a docstring about the place of a stage, by the entry of the table."""

each = pytest.mark.parametrize("operator", operators(), ids=lambda operator: operator.name)


def test_every_method_has_its_traits() -> None:
    assert set() == {name for name, _, _ in methods()} - set(TRAITS), (
        "give it a line in reactive_aio/_catalogue, as docs/writing-an-operator.md says, and an example in "
        "tests/catalogue/marbles; then run python -m tests.catalogue.page"
    )


def test_there_are_no_traits_without_a_method() -> None:
    assert set(TRAITS) <= {name for name, _, _ in methods()}


def test_what_is_left_out_is_there() -> None:
    from reactive_aio import Flow

    assert all(hasattr(Flow, name) for name in LEFT_OUT)


def test_everything_has_an_example() -> None:
    shown = {example.operator for example in [*all_examples(), *recorded_examples()]}

    assert set() == set(TRAITS) - shown, (
        "give it an example in tests/catalogue/marbles, as docs/writing-an-operator.md says"
    )
    assert shown <= set(TRAITS)


def test_the_readme_names_them_all() -> None:
    text = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")

    assert [] == [name for name in TRAITS if f"`{name}`" not in text and name != "__getitem__"]


@each
def test_the_traits_speak_of_the_arguments(operator: Operator) -> None:
    arguments = set(inspect.signature(operator.function).parameters) | {"start", "stop", "step"} & {
        name for name in ("start", "stop", "step") if operator.name == "__getitem__"
    }
    for kind in EXPRESSIONS:
        if text := getattr(operator.traits, kind):
            names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
            assert names <= arguments | KNOWN


@each
def test_no_name_is_told_twice(operator: Operator) -> None:
    assert set() == set(names_in(operator.traits.names)) & set(operator.told.peers)


@pytest.mark.parametrize("example", all_examples(), ids=lambda example: example.operator)
def test_an_example_runs_as_it_is_written(example: Example) -> None:
    assert str(ran(example).example) == str(example), (
        "see whether what came is right; python -m tests.catalogue.examples writes it"
    )


@each
def test_a_docstring_says_of_spark_what_the_stage_does(operator: Operator) -> None:
    said = operator.told.parts.get("Spark", "")
    flows = [run.flow for _, run in examples().get(operator.name, [])]
    for flow in flows:
        last = flow.__nodes__.steps[-1].operator if flow is not None and flow.__nodes__.steps else None
        if isinstance(last, Stage) and operator.name not in {"then", "through"}:
            assert SPARK[spark(last)] in said


def test_a_docstring_is_taken_apart() -> None:
    told = read(
        "Do.\n\nMore\nof it.\nDemand: one;\ntwo.\nErrors: none.\n(Reactor: ``a``,\n``b``; RxPY: ``cD``, else ``e``.)\n\n>>> 1"
    )

    assert told.sentence == "Do."
    assert told.parts == {"Demand": "one; two.", "Errors": "none."}
    assert told.peers == {"Reactor": ("a", "b"), "RxPY": ("c_d",)}


@each
def test_a_docstring_says_what_is_asked_and_where_the_term_is_from_and_has_an_example(operator: Operator) -> None:
    text = inspect.getdoc(operator.function) or ""

    # Where there is no cluster, an example of one can't run.
    assert ">>> " in text or (operator.name in {"from_spark", "to_spark"} and ".. code-block:: python" in text)
    assert "Demand" in operator.told.parts
    assert operator.told.origin
