"""The registry knows every method that gives a flow, so that none escapes the tests that go through it."""

import ast
import inspect
from pathlib import Path

from reactive_aio import Flow
from reactive_aio._catalogue import TRAITS
from tests.registry import NOT_ENTERED, REGISTRY


def methods_that_give_a_flow() -> set[str]:
    found: set[str] = set()
    for name in dir(Flow):
        method = inspect.getattr_static(Flow, name)
        function = getattr(method, "__func__", method)
        if (
            (name.startswith("_") and name != "__getitem__")
            or not inspect.isfunction(function)
            or inspect.iscoroutinefunction(function)
        ):
            continue
        given = str(inspect.signature(function).return_annotation)
        if "Flow[" in given or given.startswith("Shared["):
            found.add(name)
    return found


def test_every_method_that_gives_a_flow_is_in_the_registry() -> None:
    entered = {entry.method for entry in REGISTRY}

    assert set() == methods_that_give_a_flow() - entered - set(NOT_ENTERED), (
        "enter it in tests/registry.py: conformance, typing, demand and leak tests go through the registry"
    )


def test_the_registry_names_only_methods_that_there_are() -> None:
    assert {entry.method for entry in REGISTRY} | set(NOT_ENTERED) <= methods_that_give_a_flow()


def test_the_entries_can_be_told_apart() -> None:
    names = [str(entry) for entry in REGISTRY]

    assert sorted(set(names)) == sorted(names)


def methods_with_a_type_asserted() -> set[str]:
    """Return the methods that are called in what an ``assert_type`` is about, which the type checkers read."""
    asserted: set[str] = set()
    for file in (Path(__file__).parents[1] / "typing").glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "assert_type":
                for made in ast.walk(call.args[0]):
                    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
                        asserted.add(made.func.attr)
                    elif isinstance(made, ast.Subscript):
                        asserted.add("__getitem__")
    return asserted


def test_every_method_has_its_type_asserted() -> None:
    assert {entry.method for entry in REGISTRY} | set(TRAITS) <= methods_with_a_type_asserted(), (
        "give each a line of assert_type(flow.<method>(...), Flow[...]) in tests/typing"
    )
