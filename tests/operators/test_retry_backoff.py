"""retry with a Backoff: attempts after longer and longer waits, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from reactive_aio import Backoff, Flow
from reactive_aio.testing import TestPublisher, no_leaks, probe, run_virtual
from tests.registry import AnyFlow


def now() -> float:
    return asyncio.get_running_loop().time()


def attempts(*outcomes: Any) -> tuple[AnyFlow, list[float]]:
    """A flow that gives one outcome after another, the elements of each before a failure, and when it was begun."""
    begun: list[float] = []

    def attempt() -> AnyFlow:
        begun.append(now())
        items = outcomes[min(len(begun), len(outcomes)) - 1]
        if items == "up":
            return Flow.of("up")
        return Flow.of(*items).concat(Flow.error(OSError(f"failure {len(begun)}")))

    return Flow.defer(attempt), begun


def waits(begun: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(begun)]


def outcome(flow: AnyFlow) -> tuple[list[Any], str]:
    """Run a flow on virtual time, and give its elements and its failure."""

    async def main() -> tuple[list[Any], str]:
        got: list[Any] = []
        try:
            async for item in flow:
                got.append(item)  # noqa: PERF401 - it is kept though the flow fail
        except OSError as error:
            return got, str(error)
        return got, ""

    return run_virtual(main())


# -- the waits


def test_each_wait_is_so_many_times_the_one_before() -> None:
    flow, begun = attempts("", "", "", "", "up")

    assert (["up"], "") == outcome(flow.retry(Backoff(0.5, max_retries=9, factor=3.0, jitter=0)))
    assert [0.5, 1.5, 4.5, 13.5] == waits(begun)


def test_no_wait_is_longer_than_the_longest() -> None:
    flow, begun = attempts(*[""] * 6, "up")

    assert (["up"], "") == outcome(flow.retry(Backoff(1.0, max_retries=9, max_delay=5.0, jitter=0)))
    assert [1.0, 2.0, 4.0, 5.0, 5.0, 5.0] == waits(begun)


def test_chance_moves_each_wait_by_its_share_at_most_and_never_beyond_the_longest() -> None:
    flow, begun = attempts(*[""] * 5, "up")
    expected, same = Random(7), [1.0, 2.0, 4.0, 5.0, 5.0]

    outcome(flow.retry(Backoff(1.0, max_retries=9, max_delay=5.0, jitter=0.25, random=Random(7))))

    bounds = [(delay * 0.75, min(delay * 1.25, 5.0)) for delay in same]
    assert pytest.approx([expected.uniform(*each) for each in bounds]) == waits(begun)


def test_without_a_random_of_ones_own_the_waits_of_two_subscriptions_differ() -> None:
    flow, begun = attempts(*[""] * 50)
    outcome(flow.retry(Backoff(1.0, max_retries=20, factor=1.0)))

    assert len(set(waits(begun))) > 10
    assert all(0.5 <= wait <= 1.5 for wait in waits(begun))


def test_two_thousand_attempts_without_a_wait_need_no_more_stack_than_one() -> None:
    flow, begun = attempts(*[""] * 2_000, "up")

    assert (["up"], "") == outcome(flow.retry(Backoff(0.0)))
    assert 2_001 == len(begun)
    assert {0.0} == set(begun)


# -- the budget


def test_it_gives_up_with_the_last_failure_and_says_so() -> None:
    flow, begun = attempts("")

    async def main() -> None:
        with pytest.raises(OSError, match="failure 3") as failed:
            await flow.retry(Backoff(1.0, max_retries=2)).to_list()
        assert any("given up after 2 retries: retry(" in note for note in failed.value.__notes__)

    run_virtual(main())
    assert 3 == len(begun)


def test_the_number_of_retries_holds_for_each_subscription() -> None:
    flow, begun = attempts("")
    flow = flow.retry(Backoff(1.0, max_retries=2, jitter=0))

    for _ in range(2):
        begun.clear()
        outcome(flow)
        assert [0.0, 1.0, 3.0] == begun


def test_an_element_is_a_success_behind_which_retries_and_waits_begin_anew() -> None:
    flow, begun = attempts("", "", "a", "", "", "up")

    assert (["a", "up"], "") == outcome(flow.retry(Backoff(1.0, max_retries=3, jitter=0)))
    assert [1.0, 2.0, 1.0, 2.0, 4.0] == waits(begun)


def test_an_element_may_be_no_reason_to_begin_anew() -> None:
    flow, begun = attempts("a")

    assert (["a"] * 4, "failure 4") == outcome(flow.retry(Backoff(1.0, max_retries=3, jitter=0, reset=False)))
    assert [1.0, 2.0, 4.0] == waits(begun)


def test_failures_of_other_types_end_the_flow_at_once() -> None:
    flow, begun = attempts("")

    assert ([], "failure 1") == outcome(flow.retry(Backoff(1.0, max_retries=3), errors=(KeyError, ConnectionError)))
    assert [0.0] == begun


# -- going on from the last element


def test_it_goes_on_from_the_last_element_of_all_attempts() -> None:
    starts: list[int] = []

    def read(start: int) -> Flow[int]:
        """Return two elements at most and fail; at every other attempt fail at once; end behind 4."""
        starts.append(start)
        stop = min(start + 2, 5) if len(starts) % 2 else start
        return Flow.range(start, stop).concat(Flow.error(OSError) if stop < 5 else Flow.empty())

    flow = Flow.defer(lambda: read(0)).retry(Backoff(1.0, max_retries=2), resume=lambda last: read(last + 1))

    for run in (lambda: outcome(flow)[0], lambda: run_virtual(flow.to_list())):
        starts.clear()
        assert [0, 1, 2, 3, 4] == run()
        assert [0, 2, 2, 4, 4] == starts


def test_without_an_element_there_is_nothing_to_go_on_from() -> None:
    flow, begun = attempts("", "", "up")

    assert (["up"], "") == outcome(flow.retry(Backoff(1.0, max_retries=3), resume=lambda last: Flow.of("resumed")))
    assert 3 == len(begun)


@pytest.mark.parametrize(
    ("resume", "error", "text"),
    [
        (lambda last: [last], TypeError, r"retry\(resume=...\)\(\) takes flows, not list"),
        (lambda last: 1 // 0, ZeroDivisionError, "zero"),
    ],
)
def test_a_failing_resume_ends_the_flow_and_is_named(resume: Any, error: Any, text: str) -> None:
    flow, _ = attempts("a")

    with pytest.raises(error, match=text) as failed:
        run_virtual(flow.retry(Backoff(1.0, max_retries=3), resume=resume).to_list())
    assert any("resume of retry" in note for note in failed.value.__notes__)


# -- demand, and the ends


def virtual(test: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        run_virtual(test())

    run.__name__ = test.__name__
    return run


@virtual
async def test_demand_gathers_during_the_wait_and_is_asked_once() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).retry(Backoff(5.0, max_retries=3, jitter=0)), request=2) as p:
        await p.expect_no_event()
        source.next(1)
        source.error(OSError())
        await p.expect_next(1)
        await p.request(3)
        await p.expect_no_event(for_=6.0)
        source.assert_requested(4)
        p.cancel()


@virtual
async def test_a_cancel_during_the_wait_leaves_nothing() -> None:
    source = TestPublisher[int]()
    async with no_leaks(), probe(Flow.from_publisher(source).retry(Backoff(5.0, max_retries=3)), request=2) as p:
        await p.expect_no_event()
        source.error(OSError())
        await p.expect_no_event(for_=1.0)
        p.cancel()
    source.assert_subscribers(0)
    assert 1.0 == now()


# -- building


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda flow: flow.retry(Backoff(1, max_retries=-1)), ValueError, "max_retries must be at least 0"),
        (
            lambda flow: flow.retry(Backoff(-1, max_retries=1)),
            ValueError,
            "first must be a finite number of at least 0",
        ),
        (lambda flow: flow.retry(Backoff(90, max_retries=1)), ValueError, "max_delay must be at least first"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1, factor=0.5)), ValueError, "factor is a number from 1"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1, factor="2")), ValueError, "factor is a number from 1"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1, jitter=2)), ValueError, "jitter is a number from 0 to 1"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1, max_delay=float("inf"))), ValueError, "finite"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1), errors=int), TypeError, "exception type"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1), resume=1), TypeError, "takes a function, not int"),
        (lambda flow: flow.retry(Backoff(1, max_retries=1, random=7)), TypeError, "takes a random.Random, not int"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make(Flow.of(1))
