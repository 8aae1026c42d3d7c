"""sort_by: all elements in order; sample_fraction: a random part of them, the same one each time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, LimitExceededError


@given(st.lists(st.integers(-9, 9)), st.booleans())
@settings(max_examples=30, deadline=None)
def test_it_is_the_builtin_sorted(items: list[int], reverse: bool) -> None:
    pairs = list(enumerate(items))

    def key(pair: tuple[int, int]) -> int:
        return pair[1]

    assert sorted(pairs, key=key, reverse=reverse) == Flow.from_iterable(pairs).sort_by(key, reverse=reverse).run_sync()
    assert sorted(items) == Flow.from_iterable(items).sort_by().run_sync()


async def test_elements_come_one_by_one_as_they_are_wanted() -> None:
    async with Flow.of(3, 1, 2).sort_by().open() as items:
        assert 1 == await anext(items)
        assert 2 == await anext(items)


def test_one_element_more_than_there_is_room_for_is_a_failure() -> None:
    assert [0, 1, 2] == Flow.range(3).sort_by(max_size=3).run_sync()
    with pytest.raises(LimitExceededError, match=r"sort_by\(\) has more than 3 elements\. Raise max_size"):
        Flow.range(4).sort_by(max_size=3).run_sync()


def test_elements_that_cannot_be_compared_are_a_failure_that_names_the_operator() -> None:
    with pytest.raises(TypeError) as failed:
        Flow.of(1, "a").sort_by().run_sync()
    assert failed.value.__notes__[0].startswith("in sort_by(None, False, 1000000), chained at ")


# -- sample_fraction


def drawn(flow: Flow[Any], fraction: float, seed: int = 0, key: Callable[[Any], Any] | None = None) -> list[Any]:
    return flow.sample_fraction(fraction, seed=seed, key=key).run_sync()


def test_what_is_drawn_is_the_same_each_time_and_another_with_another_seed() -> None:
    flow = Flow.range(200)

    assert drawn(flow, 0.3) == drawn(flow, 0.3)
    assert drawn(flow, 0.3) != drawn(flow, 0.3, seed=1)


def test_what_is_drawn_is_known_by_its_numbers_so_that_it_stays_the_same_in_later_versions() -> None:
    assert [1, 2, 6, 24, 25, 27] == drawn(Flow.range(40), 0.25, seed=42)


def test_a_larger_fraction_draws_more_of_the_same() -> None:
    flow = Flow.range(500)

    assert set(drawn(flow, 0.2)) < set(drawn(flow, 0.5)) < set(drawn(flow, 0.9))
    assert [] == drawn(flow, 0.0)
    assert list(range(500)) == drawn(flow, 1.0)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_the_share_is_about_the_fraction(fraction: float) -> None:
    """Within four standard deviations of a binomial distribution, and the same each time."""
    n = 4000
    found = len(drawn(Flow.range(n), fraction))

    assert abs(found - n * fraction) < 4 * (n * fraction * (1 - fraction)) ** 0.5


def test_it_does_not_depend_on_the_place_or_on_what_else_there_is() -> None:
    assert sorted(drawn(Flow.range(100), 0.4)) == sorted(drawn(Flow.from_iterable(reversed(range(100))), 0.4))
    assert [n for n in drawn(Flow.range(100), 0.4) if n % 2] == drawn(Flow.range(1, 100, 2), 0.4)


def test_elements_of_one_key_are_drawn_together() -> None:
    found = drawn(Flow.range(100), 0.5, key=lambda n: n // 10)

    assert len(found) in range(10, 100, 10)
    assert all(len([n for n in found if n // 10 == key]) == 10 for key in {n // 10 for n in found})


@pytest.mark.parametrize("element", ["x", b"x", None, (1, "a"), 2.5, Fraction(1, 3), {"a": 1}], ids=repr)
def test_what_shows_what_it_is_may_be_drawn(element: Any) -> None:
    assert [element] == drawn(Flow.of(element), 1.0)


@pytest.mark.parametrize("element", [object(), {1, 2}, frozenset("ab"), [object()]], ids=lambda one: type(one).__name__)
def test_what_is_shown_otherwise_in_each_process_needs_a_key(element: Any) -> None:
    with pytest.raises(TypeError, match=r"Set key=\.\.\., such as a function"):
        drawn(Flow.of(element), 0.5)
    assert [element] == drawn(Flow.of(element), 1.0, key=lambda _: 1)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda flow: flow.sample_fraction(1.5), ValueError, "sample_fraction(1.5): a fraction is from 0 to 1"),
        (lambda flow: flow.sample_fraction(-0.1), ValueError, "a fraction is from 0 to 1"),
        (lambda flow: flow.sample_fraction("half"), TypeError, "a fraction is a number, not str"),
        (lambda flow: flow.sample_fraction(0.5, seed=1.5), TypeError, "seed is a whole number"),
        (lambda flow: flow.sort_by(max_size=0), ValueError, "max_size must be at least 1"),
        (lambda flow: flow.sort_by(7), TypeError, "takes a function, not int"),
    ],
)
def test_bad_input_is_refused_when_the_flow_is_built(
    build: Callable[[Flow[int]], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as refused:
        build(Flow.range(3))
    assert words in str(refused.value)
