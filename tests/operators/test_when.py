"""retry_when and repeat_when: a coroutine function says whether to subscribe again, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import Flow, SourceCancelledError, hooks
from reactive_aio.testing import TestPublisher, no_leaks, probe, run_virtual
from tests.registry import AnyFlow
from tests.subscribers import Recorder, idle

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def now() -> float:
    return asyncio.get_running_loop().time()


def broken() -> AnyFlow:
    """A flow of two elements that fails."""
    return Flow.of(1, 2).concat(Flow.error(lambda: OSError("down")))


BOTH: dict[str, Callable[[Any], AnyFlow]] = {
    "retry_when": lambda decide: broken().retry_when(decide),
    "repeat_when": lambda decide: Flow.of(1, 2).repeat_when(decide),
}
both = pytest.mark.parametrize("build", BOTH.values(), ids=BOTH.keys())


# -- the arguments of the function, and its answers


def test_retry_when_is_told_the_failure_and_the_number_of_the_attempt() -> None:
    told: list[tuple[str, int, float]] = []

    async def decide(error: BaseException, attempt: int) -> bool:
        await asyncio.sleep(10.0 * attempt)
        told.append((str(error), attempt, now()))
        return attempt < 3

    with pytest.raises(OSError, match="down"):
        run_virtual(broken().retry_when(decide).to_list())
    assert [("down", 1, 10.0), ("down", 2, 30.0), ("down", 3, 60.0)] == told


def test_repeat_when_is_told_the_number_of_elements_and_of_runs() -> None:
    lengths = iter([2, 0, 3])
    told: list[tuple[int, int, float]] = []

    async def decide(count: int, runs: int) -> bool:
        await asyncio.sleep(10.0)
        told.append((count, runs, now()))
        return runs < 3

    flow = Flow.defer(lambda: Flow.range(next(lengths))).repeat_when(decide)
    assert [0, 1, 0, 1, 2] == run_virtual(flow.to_list())
    assert [(2, 1, 10.0), (0, 2, 20.0), (3, 3, 30.0)] == told


def test_the_counts_begin_anew_with_each_subscription() -> None:
    told: list[int] = []

    async def decide(about: object, ends: int) -> bool:
        told.append(ends)
        return ends < 2

    for build in BOTH.values():
        run_virtual(build(decide).take(9).materialize().to_list())
        run_virtual(build(decide).take(9).materialize().to_list())
    assert [1, 2] * 4 == told


def test_another_flow_may_say_when() -> None:
    lights = Flow.interval(7.0)

    async def when_there_is_light(error: BaseException, attempt: int) -> bool:
        return await lights.first() == 0

    async def main() -> list[float]:
        begun: list[float] = []
        await broken().do_on_subscribe(lambda: begun.append(now())).retry_when(when_there_is_light).take(6).drain()
        return begun

    assert [0.0, 7.0, 14.0] == run_virtual(main())


def test_neither_asks_where_the_flow_ends_otherwise() -> None:
    async def decide(*_: object) -> bool:
        raise AssertionError

    assert [1] == run_virtual(Flow.of(1).retry_when(decide).to_list())
    with pytest.raises(OSError, match="down"):
        run_virtual(broken().repeat_when(decide).to_list())


@both
def test_what_is_true_in_any_way_is_a_yes(build: Any) -> None:
    answers = iter(["yes", ""])

    async def decide(*_: object) -> str:
        return next(answers)

    assert [1, 2, 1, 2] == run_virtual(build(decide).on_error_complete().to_list())


@both
def test_two_thousand_in_a_row_need_no_more_stack_than_one(build: Any) -> None:
    async def decide(_: object, ends: int) -> bool:
        return ends < 2_000

    assert 4_000 == run_virtual(build(decide).on_error_complete().count())


# -- where it runs


@both
def test_it_runs_in_the_context_of_the_subscriber_and_changes_nothing_there(build: Any) -> None:
    seen: list[str] = []

    async def decide(_: object, ends: int) -> bool:
        seen.append(WHO.get())
        WHO.set("decide")
        return ends < 2

    async def main() -> None:
        WHO.set("subscriber")
        await build(decide).on_error_complete().drain()

    run_virtual(main())
    assert ["subscriber", "subscriber"] == seen


# -- failing


def test_a_failure_of_the_function_ends_retrying_with_the_first_failure_as_its_context() -> None:
    async def decide(error: BaseException, attempt: int) -> bool:
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea") as failed:
        run_virtual(broken().retry_when(decide).to_list())
    assert "down" == str(failed.value.__context__)
    assert any("the function of retry_when(" in note for note in failed.value.__notes__)


def test_a_failure_of_the_function_ends_repeating() -> None:
    async def decide(count: int, runs: int) -> bool:
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea") as failed:
        run_virtual(Flow.of(1).repeat_when(decide).to_list())
    assert any("the function of repeat_when(" in note for note in failed.value.__notes__)


@both
def test_an_ordinary_function_is_named_when_it_has_been_called(build: Any) -> None:
    with pytest.raises(TypeError, match="an async def function is needed, but <lambda> returned True"):
        run_virtual(build(lambda *_: True).to_list())


@both
def test_a_task_that_somebody_else_cancels_fails_the_flow(build: Any) -> None:
    async def decide(*_: object) -> bool:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1.0)
        return True

    with pytest.raises(SourceCancelledError, match="_when"):
        run_virtual(build(decide).to_list())


# -- demand and cancellation


@pytest.mark.parametrize("end", ["error", "complete"])
def test_demand_gathers_while_it_is_being_decided_and_is_asked_once(end: str) -> None:
    async def decide(*_: object) -> bool:
        await asyncio.sleep(5.0)
        return True

    async def main() -> None:
        source = TestPublisher[int]()
        flow = Flow.from_publisher(source)
        async with probe(flow.retry_when(decide) if end == "error" else flow.repeat_when(decide), request=2) as p:
            await p.expect_no_event()
            source.next(1)
            if end == "error":
                source.error(OSError())
            else:
                source.complete()
            await p.expect_next(1)
            await p.request(3)
            await p.expect_no_event(for_=6.0)
            source.assert_requested(4)
            p.cancel()

    run_virtual(main())


@both
def test_a_cancel_cancels_the_function_and_waits_until_it_has_cleaned_up(build: Any) -> None:
    cleaned: list[float] = []

    async def decide(*_: object) -> bool:
        try:
            await asyncio.sleep(60.0)
        finally:
            await asyncio.sleep(3.0)
            cleaned.append(now())
        return True

    async def main() -> None:
        async with no_leaks(), build(decide).open() as items:
            assert [1, 2] == [await anext(items), await anext(items)]
            await asyncio.sleep(1.0)
        assert [4.0] == cleaned

    run_virtual(main())


@both
def test_a_failure_during_the_cleanup_is_raised_behind_the_block(build: Any) -> None:
    dropped: list[BaseException] = []

    async def decide(*_: object) -> bool:
        try:
            await asyncio.sleep(60.0)
        finally:
            raise LookupError("late")

    async def main() -> None:
        async with build(decide).open() as items:
            assert [1, 2] == [await anext(items), await anext(items)]
            await asyncio.sleep(1.0)

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(LookupError, match="late"):
        run_virtual(main())
    assert [] == dropped


@pytest.mark.parametrize("method", ["retry_when", "repeat_when"])
def test_an_argument_that_is_no_function_is_refused_when_the_flow_is_built(method: str) -> None:
    with pytest.raises(TypeError, match=rf"{method}\(\) takes a function, not int"):
        getattr(Flow.of(1), method)(3)


async def test_a_cancelled_error_of_the_functions_own_is_told_though_the_flow_is_cancelled_before_it_is_heard() -> None:
    dropped: list[BaseException] = []
    own = asyncio.CancelledError("own")
    recorder = Recorder()

    async def decide(_: int, __: int) -> bool:
        recorder.cancel()
        raise own

    with hooks.using(on_error_dropped=dropped.append):
        Flow[int].empty().repeat_when(decide).subscribe(recorder)
    await idle()

    assert [own] == [error.__cause__ for error in dropped]
