"""The public surface: what a family of operators must look like."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

import reactive_aio
from reactive_aio import Flow
from reactive_aio.ends import Ends
from reactive_aio.operators._fluent import Fluent

FAMILIES = [base for base in Flow.__mro__ if issubclass(base, Fluent) and base not in {Flow, Fluent}]
CORE = {name for name in vars(Fluent) if not name.startswith("__")}


def own_methods(family: type) -> dict[str, Callable[..., object]]:
    """The public methods that a family itself defines."""
    found: dict[str, Callable[..., object]] = {}
    for name, value in vars(family).items():
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function) and not name.startswith("_") and name not in CORE:
            found[name] = function
    return found


METHODS = [(family, name, fn) for family in FAMILIES for name, fn in own_methods(family).items()]


def test_no_two_families_define_the_same_name() -> None:
    names = [name for _, name, _ in METHODS]

    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(("family", "name", "fn"), METHODS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_method_says_what_it_does_and_where_its_name_comes_from(
    family: type, name: str, fn: Callable[..., object]
) -> None:
    text = inspect.getdoc(fn) or ""

    assert text.splitlines()[0].endswith((".", ":")), "the first line is a sentence"
    if family is not Ends or name != "run_sync":
        assert "\n(" in text, "where the name comes from, in parentheses"
    if name not in {"through", "empty", "never", "error", "run_sync", "subscribe_on"}:
        assert "Demand:" in text


def test_what_is_exported_is_what_is_documented() -> None:
    exported = {name for name in vars(reactive_aio) if not name.startswith("_") and name[0].isupper()}

    assert {"Flow", "Publisher", "Subscriber", "Subscription", "Processor", "UNBOUNDED"} <= exported
    errors = {name for name in exported if name.endswith(("Error", "Violation"))}
    assert errors == {
        name
        for name, value in vars(reactive_aio.errors).items()
        if isinstance(value, type) and issubclass(value, reactive_aio.FlowError)
    }
