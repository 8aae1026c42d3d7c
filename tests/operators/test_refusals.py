"""What an operator can't do with its arguments is said when the flow is built, with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_aio import Flow

AWAITING = {
    "map": "map_async",
    "flat_map": "map_async",
    "flat_map_iterable": "map_async",
    "do_on_next": "map_async",
    "filter": "filter_when",
    "retry_if": "retry_when",
}


@pytest.mark.parametrize(("method", "instead"), AWAITING.items())
def test_an_async_function_is_refused_with_the_operator_that_awaits(method: str, instead: str) -> None:
    async def later(*_: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=rf"{method}\(\) .*later is async def.*{instead}\(\)"):
        getattr(Flow.of(1), method)(later)


@pytest.mark.parametrize("arguments", [("1",), (1.5,), (0, 1.5), (0, 1, 0)])
def test_a_range_that_is_none_is_refused_by_name(arguments: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"Flow\.range\(\): "):
        Flow.range(*arguments)


def test_what_is_no_error_is_refused() -> None:
    with pytest.raises(TypeError, match="an exception or a function that makes one, not str"):
        Flow.error("down")


@pytest.mark.parametrize("method", ["merge", "concat_eager", "zip", "race", "concat", "combine_latest"])
def test_a_flow_of_flows_is_shown_by_the_first_of_them(method: str) -> None:
    others = [Flow.of(n) for n in range(2, 9)]

    assert f"Flow.{method}(Flow.of(1), Flow.of(2), ...)" == repr(getattr(Flow.of(1), method)(*others))
