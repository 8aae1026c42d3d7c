"""`Flow.of` makes its nodes only when they are asked for, which nobody can tell."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import pytest

from reactive_aio import Flow


@pytest.fixture(params=["copy", "deepcopy", "pickle"])
def again(request: pytest.FixtureRequest) -> Any:
    """Ways to get the same flow again."""
    return {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda flow: pickle.loads(pickle.dumps(flow)),
    }[request.param]


def test_a_flow_of_given_elements_can_be_copied_and_pickled(again: Any) -> None:
    flow = Flow.of(1, None, 3)
    before, behind = again(flow), again(flow.map(str))

    assert [1, None, 3] == before.run_sync() == flow.run_sync()
    assert ["1", "None", "3"] == behind.run_sync()


def test_its_type_is_named_flow() -> None:
    assert isinstance(Flow.of(1), Flow)
    assert "Flow" == type(Flow.of(1)).__name__


def test_it_is_immutable() -> None:
    flow: Any = Flow.of(1)
    for name in ("__nodes__", "__given__", "other"):
        with pytest.raises(AttributeError):
            setattr(flow, name, None)
    assert [1] == flow.run_sync()


def test_its_line_is_that_of_the_call() -> None:
    line = sys._getframe().f_lineno + 1
    flow = Flow.of(1, 0)
    flow = flow.map(lambda n: 1 // n)

    with pytest.raises(ZeroDivisionError) as failed:
        flow.run_sync()
    assert f"of of(1, 0), chained at {__file__}:{line}" in failed.value.__notes__[0]


def test_a_combinator_takes_its_elements_without_nodes() -> None:
    made: list[Flow[int]] = []

    def fn(n: int) -> Flow[int]:
        made.append(Flow.of(n, n))
        return made[-1]

    assert [0, 0, 1, 1] == Flow.range(2).flat_map(fn).run_sync()
    unmade: Any = type(made[0]).__mro__[1]
    for flow in made:
        with pytest.raises(AttributeError):
            vars(unmade)["__nodes__"].__get__(flow)
