"""Every argument of every method is refused if it makes no sense, by the method's name, and before anything runs."""

from __future__ import annotations

import inspect
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from inspect import Parameter
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._catalogue import Operator, operators
from reactive_aio.operators.transforming.map import Map
from tests.subscribers import ByHand, Recorder


async def later(*_: object) -> None:
    """An `async def`, where an ordinary function is needed."""
    raise NotImplementedError


async def elements() -> AsyncIterator[int]:
    yield 1


WHOLE = [None, 1.5, True, "1"]
NUMBER = [None, "1", True, -1, math.nan, math.inf]
OBJECT = [None, 5]
FUNCTION = [None, 5, "f"]

# By what an annotation begins with: something that will do, and what will not.
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "BaseException | Callable": (OSError(), [*OBJECT, later]),
    "Flow[U] | Callable": (Flow.of(1), [*OBJECT, later]),
    "Order | Callable": ("input", [*OBJECT, "best", later]),
    "Flow": (Flow.of(1), [*OBJECT, "a", [Flow.of(1)]]),
    "Callable": (lambda *_: None, [*FUNCTION, later]),
    "int": (1, [*WHOLE, -1]),
    "float": (0.5, NUMBER),
    "bool": (True, [None, 1, "no"]),
    "str": ("name", OBJECT),
    "Condition": (None, [5, "now", []]),
    "type": (int, [*OBJECT, "int"]),
    "Errors": (OSError, [*OBJECT, "OSError", (5,)]),
    "Overflow": ("error", [*OBJECT, "best"]),
    "Restart": ("never", [*OBJECT, "best"]),
    "Scheduler": (schedulers.current(), [*OBJECT, "thread"]),
    "Iterable": ([1], [*OBJECT, elements, later]),
    "AsyncIterable": (elements, [*OBJECT, [1], later]),
    "Publisher": (Flow.of(1), OBJECT),
    "Subscriber": (Recorder(), OBJECT),
    "Stage": (Map(str), [*OBJECT, str]),
    "Random": (None, [5]),
    "builtins.slice": (slice(1), [5, "a", slice(-1), slice(None, None, 0), slice("a"), slice(1.5), slice(True)]),
    "object": (1, []),
    "Any": (1, []),
    "U": (1, []),
    "A": (1, []),
    "S": (1, []),
}

# Unusual arguments that make sense.
FINE: dict[tuple[str, str], list[Any]] = {
    ("range", "start"): [-1, True],  # as the builtin range does
    ("range", "stop"): [-1, True],
    ("range", "step"): [-1, True],
    ("index", "start"): [-1],
    ("sample_fraction", "seed"): [-1],
    ("log", "level"): [-1],
    ("for_each", "fn"): [later],
    ("for_each_batch", "fn"): [later],
    ("run_sync", "end"): [later],
    ("through", "operator"): [later],  # such as an end
}
ELSEWHERE = {
    "from_spark": "needs a session; tests/spark has it",
    "to_spark": "needs a session; tests/spark has it",
}


def kind_of(parameter: Parameter) -> tuple[Any, list[Any]]:
    """Return what a parameter takes, and what it refuses."""
    annotation = str(parameter.annotation)
    good, bad = next(KINDS[kind] for kind in KINDS if annotation.startswith(kind))
    optional = annotation.endswith("| None") and not annotation.endswith("R | None]")
    if "Awaitable[" in annotation:
        bad = [each for each in bad if each is not later]
    return good, [each for each in bad if not (each is None and optional)]


def parameters(operator: Operator) -> list[Parameter]:
    """Return the parameters but for the flow itself."""
    given = inspect.signature(operator.function).parameters.values()
    return [each for each in given if each.name not in {"self", "cls"}]


def calls(operator: Operator) -> Iterator[tuple[str, Any, Callable[[Flow[Any]], Any]]]:
    """Yield each call of a method that has one bad argument: the name of the argument, the argument, and the call."""
    for wrong in parameters(operator):
        for bad in kind_of(wrong)[1]:
            if not any(bad is fine for fine in FINE.get((operator.name, wrong.name), [])):
                yield wrong.name, bad, call(operator, wrong, bad)


def call(operator: Operator, wrong: Parameter, bad: Any) -> Callable[[Flow[Any]], Any]:
    """Call a method with one bad argument."""
    placed: list[Any] = []
    named: dict[str, Any] = {}
    for each in parameters(operator):
        good = kind_of(each)[0] if each.default is Parameter.empty else each.default
        if each.kind is Parameter.KEYWORD_ONLY:
            named[each.name] = bad if each.name == wrong.name else good
        else:
            placed.append(bad if each.name == wrong.name else good)
    return lambda flow: getattr(flow, operator.name)(*placed, **named)


def begun(made: object) -> None:
    """Begin to await an end, as far as it goes without an event loop."""
    if isinstance(made, Coroutine):
        try:
            made.send(None)
        finally:
            made.close()


@pytest.mark.parametrize(
    "operator",
    [each for each in operators() if each.name not in ELSEWHERE and any(calls(each))],
    ids=lambda operator: operator.name,
)
def test_bad_arguments_are_refused_before_anything_runs(operator: Operator) -> None:
    for name, bad, wrong in calls(operator):
        source = ByHand()
        with pytest.raises((TypeError, ValueError)) as refused:
            begun(wrong(Flow.from_publisher(source)))

        message = str(refused.value)
        assert operator.name in message or "flow[" in message, f"{name}={bad!r}: {message}"
        assert source.requests == [], f"{name}={bad!r}"


def test_every_argument_is_of_a_known_kind() -> None:
    assert {each.name for each in operators()} >= set(ELSEWHERE)
    for operator in operators():
        if operator.name not in ELSEWHERE:
            assert all(kind_of(each) for each in parameters(operator))


def test_a_range_with_a_step_and_no_stop_begins_at_zero() -> None:
    assert Flow.range(10, step=4).run_sync() == [0, 4, 8]
