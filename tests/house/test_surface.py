"""The public surface: what a family of operators must look like."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter

import pytest

import reactive_aio
from reactive_aio import Flow
from reactive_aio._flow.ends import Ends
from reactive_aio.operators._fluent import Fluent

FAMILIES = [base for base in Flow.__mro__ if issubclass(base, Fluent) and base not in {Flow, Fluent}]
CORE = {name for name in vars(Fluent) if not name.startswith("_")}


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


PARAMETERS = [
    (name, at, parameter)
    for _, name, fn in METHODS
    for at, parameter in enumerate(list(inspect.signature(fn).parameters.values())[1:])
    if parameter.kind not in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
]
AS_IN_PYTHON = {("range", "stop"), ("range", "step"), ("reduce", "initial"), ("scan", "initial")}
"""The arguments that a function of Python takes by position."""
AS_IN_A_SIBLING = {("for_each_batch", "seconds")}
"""The arguments that ``buffer_timeout(size, seconds)`` takes by position."""
SHAPES = {"buffer", "buffer_timeout", "for_each_batch", "map_batches", "sliding", "to_spark", "window"}
"""The methods that make lists, windows or batches of a ``size``."""
WHOLE = {
    "n": {"take", "take_last", "skip", "skip_last"},
    "k": {"top_k"},
    "times": {"repeat"},
    "policy": {"retry"},
    "size": SHAPES,
    "step": {"range", "sliding"},
    "start": {"range", "index", "share"},
    "lag": {"share", "multicast"},
    "replay": {"share"},
    "stop": {"range"},
    "index": {"element_at"},
    "partitions": {"repartition", "group_by_key"},
    "offset": {"to_spark"},
    "seed": {"sample_fraction"},
    "level": {"log"},
}
"""The names of whole numbers, and the methods that may use them; beside ``prefetch``, and ``max_*`` for whatever limits."""


def test_what_has_no_default_is_positional_and_what_has_one_behind_the_first_is_keyword_only() -> None:
    for name, at, parameter in PARAMETERS:
        keyword_only = parameter.kind is Parameter.KEYWORD_ONLY
        if parameter.default is Parameter.empty:
            assert not keyword_only, f"{name}({parameter}): it has no default, so let it be given by position"
        elif at and (name, parameter.name) not in AS_IN_PYTHON | AS_IN_A_SIBLING:
            assert keyword_only, f"{name}({parameter}): it has a default and is not the first, so make it keyword-only"


def test_a_size_is_a_shape_and_a_limit_is_called_max() -> None:
    for name, _, parameter in PARAMETERS:
        number = str(parameter.annotation).startswith("int")
        called = parameter.name
        assert called not in {"count", "limit", "concurrency", "retries", "batch"}, f"{name}({called})"
        if number or called in {"n", "k", "size"}:
            assert called == "prefetch" or called.startswith("max_") or name in WHOLE.get(called, ()), (
                f"{name}({parameter}): `size` is for {sorted(SHAPES)}, a limit is called max_..., and other names of whole "
                "numbers stand in this test"
            )


def test_what_a_flow_is_made_of_is_hidden() -> None:
    public = {name for name in dir(Flow) if not name.startswith("_")}

    assert {"then", "describe", "diagram"} == public - {name for _, name, _ in METHODS}


def test_what_is_exported_is_what_is_documented() -> None:
    exported = {name for name in dir(reactive_aio) if not name.startswith("_") and name[0].isupper()}

    assert {"Flow", "Publisher", "Subscriber", "Subscription", "Processor", "UNBOUNDED"} <= exported
    errors = {name for name in exported if name.endswith(("Error", "Violation"))}
    assert errors == {
        name
        for name, value in vars(reactive_aio.errors).items()
        if isinstance(value, type) and issubclass(value, reactive_aio.FlowError)
    }
