"""The arithmetic of demand."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

import pytest

from reactive_aio.spec import (
    MOST_AT_ONCE,
    UNBOUNDED,
    add_demand,
    bounded,
    demand_error,
    quarter,
    refill_after,
    subtract_demand,
)


@pytest.mark.parametrize(
    ("demand", "n", "total"),
    [
        (0, 1, 1),
        (2, 3, 5),
        (UNBOUNDED - 1, 1, UNBOUNDED),
        (UNBOUNDED - 1, 2, UNBOUNDED),
        (UNBOUNDED, UNBOUNDED, UNBOUNDED),
    ],
)
def test_demands_add_up_until_they_are_unbounded(demand: int, n: int, total: int) -> None:
    assert add_demand(demand, n) == total


def test_unbounded_is_the_largest_number_of_64_bits() -> None:
    assert UNBOUNDED == 9_223_372_036_854_775_807


@pytest.mark.parametrize("n", [1, 2, UNBOUNDED, UNBOUNDED + 1])
def test_a_positive_number_is_in_order(n: int) -> None:
    assert demand_error(n) is None


@pytest.mark.parametrize("n", [0, -1])
def test_no_elements_is_no_demand(n: int) -> None:
    assert isinstance(demand_error(n), ValueError)


@pytest.mark.parametrize("n", [True, False, 1.0, "1", None])
def test_what_is_no_whole_number_is_no_demand(n: Any) -> None:
    assert isinstance(demand_error(n), TypeError)


@pytest.mark.parametrize("n", [0, -1, True, 1.5, None])
def test_bad_demand_is_answered_by_the_rule(n: Any) -> None:
    assert f"request({n!r}): §3.9 demand must be a positive number of elements" in str(demand_error(n))


def test_what_is_asked_of_python_at_once_is_no_more_than_it_counts() -> None:
    assert MOST_AT_ONCE <= min(UNBOUNDED, sys.maxsize)
    assert [0, 1] == [*islice(range(2), MOST_AT_ONCE)]


@pytest.mark.parametrize(
    ("demand", "n", "left"),
    [
        (3, 1, 2),
        (3, 3, 0),
        (3, 4, 0),
        (UNBOUNDED - 1, 1, UNBOUNDED - 2),
        (UNBOUNDED, 1, UNBOUNDED),
        (UNBOUNDED, UNBOUNDED, UNBOUNDED),
    ],
)
def test_what_is_met_of_a_demand_comes_off_it_unless_it_is_unbounded(demand: int, n: int, left: int) -> None:
    assert left == subtract_demand(demand, n)


@pytest.mark.parametrize(("n", "demand"), [(0, 0), (5, 5), (UNBOUNDED, UNBOUNDED), (2 * UNBOUNDED, UNBOUNDED)])
def test_what_is_reckoned_is_unbounded_at_most(n: int, demand: int) -> None:
    assert demand == bounded(n)


@pytest.mark.parametrize(("prefetch", "consumed"), [(1, 1), (2, 2), (3, 3), (4, 3), (16, 12), (256, 192)])
def test_more_is_asked_for_when_three_quarters_of_a_prefetch_are_consumed(prefetch: int, consumed: int) -> None:
    assert consumed == refill_after(prefetch)
    assert prefetch == consumed + quarter(prefetch)
