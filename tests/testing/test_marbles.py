"""Marbles: from a line to a flow, and from a run to a line."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow
from reactive_aio.testing import MarbleError, TestPublisher, from_marbles, no_leaks, probe, record, run_virtual
from reactive_aio.testing.marbles import parse


async def timed(flow: Flow[Any]) -> list[tuple[float, Any]]:
    loop, seen = asyncio.get_running_loop(), list[tuple[float, Any]]()
    await flow.for_each(lambda item: seen.append((loop.time(), item)))
    return seen


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|", []),
        ("a|", [(0, "a")]),
        ("-a-b-|", [(1, "a"), (3, "b")]),
        ("-a-(bc)--d|", [(1, "a"), (3, "b"), (3, "c"), (9, "d")]),
        ("--a- -b|", [(2, "a"), (5, "b")]),
        ("(ab|)", [(0, "a"), (0, "b")]),
    ],
)
def test_elements_come_at_their_times(text: str, expected: list[Any]) -> None:
    assert expected == run_virtual(timed(from_marbles(text)))


def test_values_error_and_unit() -> None:
    async def main() -> None:
        failure = KeyError("mine")
        flow = from_marbles("-a-#", {"a": 42}, failure, unit=0.25)
        async with probe(flow, request=9) as p:
            await p.expect_next(42)
            await p.expect_no_event(for_=0.5)
            assert failure is await p.expect_error()
            assert 0.75 == asyncio.get_running_loop().time()

    run_virtual(main())


def test_a_failure_has_an_error_of_its_own_unless_one_is_given() -> None:
    with pytest.raises(MarbleError, match="the # of '-#'"):
        run_virtual(from_marbles("-#").to_list())


def test_without_an_end_it_never_ends_and_leaves_nothing_when_it_is_cancelled() -> None:
    async def main() -> None:
        async with no_leaks(), probe(from_marbles("a-"), request=2) as p:
            await p.expect_next("a")
            await p.expect_no_event(for_=1_000_000)
            p.cancel()

    run_virtual(main())


def test_an_element_that_is_not_wanted_waits() -> None:
    async def main() -> None:
        async with probe(from_marbles("a-b-c|"), request=1) as p:
            await p.expect_next("a")
            await p.expect_no_event(for_=10)
            await p.request(2)
            await p.expect_next("b", "c")
            assert 10 == asyncio.get_running_loop().time()
            await p.expect_complete()

    run_virtual(main())


@pytest.mark.parametrize("text", ["(a", "a)", "(a-)", "((a))", "a|b", "a#|", "^a", "a!"])
def test_an_argument_that_is_no_diagram_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="marbles"):
        from_marbles(text)


# -- recording


def test_a_run_is_drawn_with_its_values() -> None:
    flow = from_marbles("-a--b|", {"a": 10, "b": 20}).map(lambda n: n + 1)

    assert "-x--y|" == run_virtual(record(flow, {"x": 11, "y": 21}))


def test_a_run_of_an_endless_flow_is_drawn_for_a_while() -> None:
    async def ticking(emit: Any) -> None:
        while True:
            await asyncio.sleep(2)
            await emit("t")

    async def main() -> str:
        async with no_leaks():
            return await record(Flow.create(ticking), until=7)

    assert "--t-t-t" == run_virtual(main())


def test_a_run_under_demand_is_drawn_until_nothing_comes_any_more() -> None:
    assert "(01)" == run_virtual(record(Flow.range(5), request=2))


def test_times_are_rounded_to_the_unit() -> None:
    assert "-a-b|" == run_virtual(record(from_marbles("--a---b-|", unit=0.5)))
    assert "----a---b-|" == run_virtual(record(from_marbles("--a-b|", unit=2)))[:11]


def test_what_does_not_fit_into_a_line_is_refused() -> None:
    with pytest.raises(ValueError, match="too close behind"):
        run_virtual(record(from_marbles("(abc)--d|", unit=0.25)))
    with pytest.raises(ValueError, match="be a sign of a diagram"):
        run_virtual(record(Flow.of("long")))
    with pytest.raises(ValueError, match="be a sign of a diagram"):
        run_virtual(record(Flow.of("-")))


def test_a_publisher_that_breaks_a_rule_is_not_drawn() -> None:
    class Twice(TestPublisher[Any]):
        __test__ = False

        def subscribe(self, subscriber: Any) -> None:
            super().subscribe(subscriber)
            self.complete()
            subscriber.on_complete()

    with pytest.raises(AssertionError, match=r"§1\.7"):
        run_virtual(record(Twice()))


bits = st.one_of(st.sampled_from("abc-"), st.text("abc", min_size=2, max_size=3).map(lambda group: f"({group})"))


@settings(deadline=None)
@given(st.lists(bits, max_size=12).map("".join), st.sampled_from("|#"))
def test_what_was_parsed_is_drawn_again(body: str, end: str) -> None:
    draws_again(body + end)


def test_what_was_parsed_without_an_end_is_drawn_again() -> None:
    draws_again("-a-(bc)--a")


def draws_again(text: str) -> None:
    drawn = run_virtual(record(from_marbles(text)))

    assert text.rstrip("-") == drawn
    assert parse(text) == parse(drawn)
