"""Where an operator was chained: the innermost line outside the package."""

from __future__ import annotations

from inspect import currentframe
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._fusion import Origin, calling_line


def here() -> int:
    frame = currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_the_line_that_calls_is_given() -> None:
    assert calling_line() == Origin(__file__, here())


def test_each_operator_has_the_line_that_it_was_chained_on() -> None:
    flow = Flow.range(3)
    line = here()
    flow = flow.map(str)
    flow = flow.take(1)

    assert flow.__nodes__.source.origin == Origin(__file__, line - 1)
    assert [step.origin for step in flow.__nodes__.steps] == [Origin(__file__, line + 1), Origin(__file__, line + 2)]


@pytest.mark.parametrize("module", ["reactive_aio", "reactive_aio.operators.elsewhere"])
def test_lines_of_the_package_are_passed_over(module: str) -> None:
    names: dict[str, Any] = {"calling_line": calling_line, "__name__": module}
    exec(compile("def inside(): return calling_line()", "<inside>", "exec"), names)

    assert names["inside"]() == Origin(__file__, here())


@pytest.mark.parametrize("module", ["reactive_aio_extras", "my.reactive_aio", None])
def test_a_line_of_another_package_is_the_callers(module: str | None) -> None:
    names: dict[str, Any] = {"calling_line": calling_line, "__name__": module}
    exec(compile("\n\ndef outside(): return calling_line()", "<outside>", "exec"), names)

    assert names["outside"]() == Origin("<outside>", 3)


def test_an_origin_is_shown_as_editors_know_it() -> None:
    assert str(Origin("here.py", 12)) == "here.py:12"
