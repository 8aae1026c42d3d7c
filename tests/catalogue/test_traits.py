"""The declared traits of an operator are true, as measured in every entry of the registry that reads a flow."""

from __future__ import annotations

import ast
import inspect
import math
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow
from reactive_aio._catalogue import TRAITS, Completes, Fails
from reactive_aio.testing import run_virtual, settle
from tests.grid.points import HERE
from tests.registry import Entry, FailureError, failed

from .examples import Example, all_examples
from .measuring import Bench, Ending, alive, arguments_of, declared, endings, evaluated, released
from .running import namespace, ran

DEMANDS = [1, 2, 7, UNBOUNDED]

MORE = [
    # Cases that the registry's entries of these operators do not show.
    Entry(
        "flat_map_iterable",
        lambda n, via, _: via(via(Flow.range(n)).flat_map_iterable(lambda item: (item,) * 5)),
        lambda _, via, __: failed(via),
        variant="several",
    ),
    Entry(
        "on_error_map",
        lambda n, via, _: via(via(Flow.range(n)).on_error_map(lambda _: OSError("another"))),
        lambda _, via, __: failed(via),
        variant="another",
    ),
    Entry(
        "on_backpressure_latest",
        lambda n, via, _: via(via(Flow.range(n)).on_backpressure_latest()),
        lambda _, via, __: failed(via),
        variant="several",
    ),
    Entry(
        "on_backpressure_drop",
        lambda n, via, _: via(via(Flow.range(n)).on_backpressure_drop()),
        lambda _, via, __: failed(via),
        variant="alone",
    ),
    Entry(
        "on_backpressure_error",
        lambda n, via, _: via(via(Flow.range(n)).on_backpressure_error()),
        lambda _, via, __: failed(via),
        variant="alone",
    ),
    Entry(
        "window",
        lambda n, via, _: via(via(Flow.range(n)).window(2)),
        lambda _, via, __: failed(via),
        variant="alone",
    ),
    Entry(
        "group_by",
        lambda n, via, settings: via(via(Flow.range(n)).group_by(lambda _: "all", prefetch=settings.prefetch)),
        lambda _, via, __: failed(via),
        variant="alone",
    ),
]
NESTED = {"on_backpressure_drop", "on_backpressure_error", "window", "group_by", "group_by_key-join-within"}
"""Entries of the registry in which something stands right behind the operator that they are about, and reads its flows."""

UNSEEN = {
    "defer": "what it reads is made by a function when it is subscribed to",
    "from_publisher": "what it reads is no flow",
    "using": "what it reads is made by a function when it is subscribed to",
    "delay_subscription": "it asks for nothing before its time has come",
}
"""The traits that only the examples measure."""

IN_TIME = {"buffer_timeout", "debounce", "sample"}
"""These keep elements, and end behind them only when their time has come. The examples show that."""

CANCELS = {
    "through": "is applied to take() in its example",
    "race": "cancels those that are not the first",
    "timeout": "goes over to another flow",
}
"""The operators that cancel a source in an example and do not complete."""

READING = [
    entry
    for entry in [*HERE, *MORE]
    if entry.method in TRAITS
    and TRAITS[entry.method].demand
    and entry.method not in UNSEEN
    and str(entry) not in NESTED
]
methods = pytest.mark.parametrize("method", list(dict.fromkeys(entry.method for entry in READING)))
entries = pytest.mark.parametrize("entry", READING, ids=str)


@pytest.mark.costly
@entries
def test_what_is_asked_and_kept_is_what_is_declared(entry: Entry) -> None:
    traits = TRAITS[entry.method]

    async def main(demand: int, prefetch: int) -> None:
        bench, before = Bench(entry, prefetch), alive(0)
        own = await bench.begin(demand)
        first, *others = own.inputs
        arguments = arguments_of(own.operators[0]) if own.operators else {}
        for each in others:
            assert each.asked == (evaluated(traits.others, arguments, own.asked) if traits.others else 0)
        if not first.asked:
            await released(others)
        expected, _ = declared(own, own.asked)
        assert first.asked == expected, f"{own.operators} for a demand of {own.asked:g}"

        await released(own.inputs)
        for _ in range(3):
            await settle()
            most, kept = declared(own, own.most_outstanding)
            assert first.most_outstanding <= max(expected, most)
            # The last given element, list or chunk is still at hand: the code that gave it refers to it.
            bound = before + kept * len(own.inputs + bench.made) + own.lingers * max(1, own.given)
            assert alive(bound) <= bound
            own.given = 0
            for each in bench.made if traits.others else ():
                assert each.most_outstanding <= evaluated(traits.others, arguments, own.most_outstanding)
            if bench.end is None:
                bench.request(demand)
        bench.cancel()
        assert not bench.dropped

    for demand in DEMANDS:
        for prefetch in (1, 2, 256) if entry.prefetches else (2,):
            run_virtual(main(demand, prefetch))


async def all_endings(method: str, error: BaseException | None) -> list[Ending]:
    """Let what is read end in all entries of a method."""
    return [end for entry in READING if entry.method == method for end in await endings(entry, error)]


@methods
def test_a_failure_does_what_is_declared(method: str) -> None:
    error = FailureError("failed")
    ends = run_virtual(all_endings(method, error))

    measured = Fails.AT_ONCE
    if any(end.when == "not" or end.error is None for end in ends):
        measured = Fails.ANSWERED
    elif any(end.error is not error for end in ends):
        measured = Fails.REPLACED
    elif any(end.discarded for end in ends):
        several = TRAITS[method].others and any(end.when == "behind" for end in ends)
        measured = Fails.IN_TURN if several else Fails.DISCARDS
    elif any(end.when == "behind" for end in ends):
        measured = Fails.BEHIND
    assert TRAITS[method].fails == measured


@methods
def test_the_end_of_what_is_read_does_what_is_declared(method: str) -> None:
    ends = run_virtual(all_endings(method, None))

    measured = Completes.WITH_SOURCE
    if any(end.when == "not" for end in ends):
        measured = Completes.ALL
    elif any(end.when == "behind" for end in ends):
        measured = Completes.BEHIND
    # An operator that completes early also completes with a source that ends before. The examples show that it is early.
    shown_as = {Completes.EARLY: Completes.WITH_SOURCE, Completes.ANY: Completes.BEHIND}
    expected = shown_as.get(TRAITS[method].completes, TRAITS[method].completes)
    assert measured == (Completes.WITH_SOURCE if method in IN_TIME else expected)


CALLED = [each for each in all_examples() if each.call.startswith("a.") and each.operator in set(TRAITS) - {"through"}]


@pytest.mark.parametrize("example", CALLED, ids=lambda example: example.operator)
def test_an_example_asks_for_what_is_declared_in_the_arguments_of_the_method(example: Example) -> None:
    traits, run = TRAITS[example.operator], ran(example)
    arguments = called_with(example)
    if arguments is None:
        return
    wanted = next((number for at, number in example.wanted if at == 0), math.inf)
    ((_, first), *_) = run.flows["a"][0].asked

    assert first == evaluated(traits.demand, arguments, wanted)


def called_with(example: Example) -> dict[str, Any] | None:
    """Return the arguments of the call of an example, by their names; None where it calls more than its method."""
    call = ast.parse(example.call, mode="eval").body
    method = inspect.getattr_static(Flow, example.operator)
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == example.operator):
        return None
    if not isinstance(call.func.value, ast.Name):
        return None
    values = namespace() | dict.fromkeys([*example.flows, "tell", "subscriber"])
    given = [eval(ast.unparse(each), values) for each in call.args]
    named = {each.arg: eval(ast.unparse(each.value), values) for each in call.keywords if each.arg is not None}
    bound = inspect.signature(method).bind(None, *given, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def test_what_completes_early_cancels_its_source_in_an_example_and_nothing_else_does() -> None:
    cancelling = {
        example.operator
        for example in all_examples()
        if "x@" in example.said("asked") and "x@" not in example.said("wanted") and "#" not in example.said("given")
    }

    early = {name for name, traits in TRAITS.items() if traits.completes in {Completes.EARLY, Completes.ANY}}
    assert early == cancelling - set(CANCELS)
