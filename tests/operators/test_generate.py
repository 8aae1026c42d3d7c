"""generate: an element for each state, and the next state."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_aio import Flow
from tests.subscribers import Recorder, idle


def doubling(n: int) -> tuple[str, int] | None:
    return (str(n), 2 * n) if n < 20 else None


async def test_elements_are_those_of_the_states_until_there_is_no_next() -> None:
    assert ["1", "2", "4", "8", "16"] == await Flow.generate(doubling, 1).to_list()
    assert [] == await Flow.generate(doubling, 20).to_list()


async def test_a_subscription_begins_with_the_first_state() -> None:
    assert ["8", "16"] * 3 == await Flow.generate(doubling, 8).repeat(3).to_list()


async def test_one_step_is_taken_for_each_element_that_is_wanted() -> None:
    steps: list[int] = []

    def count(n: int) -> tuple[int, int]:
        steps.append(n)
        return n, n + 1

    recorder = Recorder()
    Flow.generate(count, 0).subscribe(recorder)
    await idle()
    assert [] == steps
    recorder.request(3)
    await idle()
    assert [0, 1, 2] == steps == recorder.items
    recorder.cancel()
    await idle()


async def test_none_is_an_element_like_any_other() -> None:
    assert [None, None] == await Flow.generate(lambda n: (None, n - 1) if n else None, 2).to_list()


async def test_it_is_fused_with_what_follows() -> None:
    effects: list[str] = []

    def step(n: int) -> tuple[int, int] | None:
        effects.append(f"step {n}")
        return (n, n + 1) if n < 2 else None

    await Flow.generate(step, 0).map(str).for_each(effects.append)
    assert ["step 0", "0", "step 1", "1", "step 2"] == effects


async def test_a_failure_names_the_source() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        await Flow.generate(lambda n: (1 // n, n - 1), 1).to_list()

    assert "generate(<lambda>, 1), chained at" in caught.value.__notes__[0]


async def test_a_step_that_stops_an_iteration_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await Flow.generate(lambda items: (next(items), items), iter(())).to_list()


@pytest.mark.parametrize("made", [3, (1,), (1, 2, 3), []], ids=str)
async def test_a_step_that_gives_no_pair_is_an_error_that_says_what_to_give(made: Any) -> None:
    with pytest.raises(TypeError, match=r"<lambda> returned .* for the state 0, not \(item, next_state\) or None"):
        await Flow.generate(lambda _: made, 0).to_list()


@pytest.mark.parametrize("step", [3, None])
def test_bad_arguments_are_refused_when_the_flow_is_built(step: Any) -> None:
    with pytest.raises(TypeError, match=r"generate\(\) takes a function"):
        Flow.generate(step, 0)


def test_an_async_step_is_refused_when_the_flow_is_built() -> None:
    async def step(n: int) -> tuple[int, int]:
        return n, n

    wrong: Any = step
    with pytest.raises(TypeError, match=r"use Flow\.from_async_iterable with an async generator"):
        Flow.generate(wrong, 0)
