"""on_error_resume_next: another flow in the place of the rest of one that failed."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, schedulers
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle

BROKEN = Flow.of(1, 2).concat(Flow.error(lambda: OSError("down")))


async def test_it_goes_on_with_the_flow_given() -> None:
    assert [1, 2, 8, 9] == await BROKEN.on_error_resume_next(Flow.of(8, 9)).to_list()


async def test_it_goes_on_with_what_the_function_returns_for_the_error() -> None:
    def choose(error: BaseException) -> Flow[str]:
        return Flow.of(type(error).__name__, str(error))

    assert [1, 2, "OSError", "down"] == await BROKEN.on_error_resume_next(choose).to_list()


async def test_a_flow_that_completes_needs_no_other() -> None:
    other = Sessions()

    assert [1] == await Flow.of(1).on_error_resume_next(Flow.from_publisher(other)).to_list()
    assert [] == other.all


async def test_it_resumes_once_in_each_subscription() -> None:
    flow = Flow.error(OSError("first")).on_error_resume_next(Flow.error(lambda: OSError("second")))

    for _ in range(2):
        with pytest.raises(OSError, match="second"):
            await flow.to_list()


async def test_the_failure_of_the_other_flow_has_the_first_one_as_its_context() -> None:
    first, second = OSError("first"), ValueError("second")

    with pytest.raises(ValueError, match="second") as failed:
        await Flow.error(first).on_error_resume_next(Flow.error(second)).to_list()

    assert failed.value is second
    assert failed.value.__context__ is first


async def test_a_failure_that_has_a_context_of_its_own_keeps_it() -> None:
    try:
        raise ValueError("second") from KeyError("its own")
    except ValueError as error:
        second = error
    second.__context__ = own = LookupError("its own")

    with pytest.raises(ValueError, match="second"):
        await BROKEN.on_error_resume_next(Flow.error(second)).to_list()

    assert second.__context__ is own


async def test_the_same_failure_twice_is_not_its_own_context() -> None:
    error = OSError("down")

    with pytest.raises(OSError, match="down") as failed:
        await Flow.error(error).on_error_resume_next(Flow.error(error)).to_list()

    assert failed.value is error
    assert error.__context__ is None


async def test_the_failure_of_the_function_ends_the_flow_with_the_first_one_as_its_context() -> None:
    def choose(error: BaseException) -> Flow[int]:
        raise LookupError("no fallback")

    with pytest.raises(LookupError, match="no fallback") as failed:
        await BROKEN.on_error_resume_next(choose).to_list()

    assert isinstance(failed.value.__context__, OSError)


async def test_a_function_that_returns_no_flow_fails_by_the_name_of_the_operator() -> None:
    choose: Any = lambda error: [8, 9]  # noqa: E731 - its type is the point

    with pytest.raises(TypeError, match=r"on_error_resume_next\(\) takes flows, not list") as failed:
        await BROKEN.on_error_resume_next(choose).to_list()

    assert isinstance(failed.value.__context__, OSError)


async def test_the_function_is_called_once_for_each_subscription_in_the_context_of_the_subscriber() -> None:
    user = contextvars.ContextVar[str]("user")
    seen: list[str] = []

    def choose(error: BaseException) -> Flow[int]:
        seen.append(user.get())
        user.set("nobody")
        return Flow.of(8)

    flow = BROKEN.on_error_resume_next(choose)
    for name in ("ann", "bob"):
        user.set(name)
        await flow.to_list()

    assert ["ann", "bob"] == seen
    assert "bob" == user.get()


async def test_the_other_flow_is_asked_for_what_the_first_has_left_of_the_demand() -> None:
    first, second, subscriber = Sessions(), Sessions(), Recorder(5)
    Flow.from_publisher(first).on_error_resume_next(Flow.from_publisher(second)).subscribe(subscriber)
    await idle()
    first.last.next(1, 2)
    first.last.error(OSError())
    await idle()
    subscriber.request(4)
    await idle()
    second.last.next(3)
    second.last.complete()
    await idle()

    assert ([[5]], [[3, 4]]) == (first.requests, second.requests)
    assert ["subscribe", "next", "next", "next", "complete"] == subscriber.kinds


async def test_cancel_before_the_failure_leaves_the_other_flow_alone() -> None:
    first, second, subscriber = Sessions(), Sessions(), Recorder(1)
    Flow.from_publisher(first).on_error_resume_next(Flow.from_publisher(second)).subscribe(subscriber)
    await idle()
    subscriber.cancel()
    await idle()

    assert 1 == first.last.cancels
    assert [] == second.all


async def test_cancel_behind_the_failure_cancels_the_other_flow_and_not_the_failed_one() -> None:
    first, second, subscriber = Sessions(), Sessions(), Recorder(1)
    Flow.from_publisher(first).on_error_resume_next(Flow.from_publisher(second)).subscribe(subscriber)
    await idle()
    first.last.error(OSError())
    await idle()
    subscriber.cancel()
    await idle()

    assert (0, 1) == (first.last.cancels, second.last.cancels)
    assert ["subscribe"] == subscriber.kinds


async def test_the_other_flow_may_be_on_another_thread() -> None:
    other = Flow.of(8, 9).publish_on(schedulers.thread("other"))

    assert [1, 2, 8, 9] == await BROKEN.on_error_resume_next(other).to_list()


async def test_a_row_of_fallbacks_is_as_long_as_one_likes() -> None:
    flow: Flow[Any] = Flow.error(OSError("first"))
    for n in range(300):
        flow = flow.on_error_resume_next(Flow.error(OSError(f"fallback {n}")))
    subscriber = Recorder(UNBOUNDED)

    flow.on_error_resume_next(Flow.of("at last")).subscribe(subscriber)
    await subscriber.over.wait()

    assert ["at last"] == subscriber.items


@pytest.mark.parametrize("fallback", [None, 3, [1, 2]])
def test_it_refuses_what_is_neither_a_flow_nor_a_function_when_it_is_built(fallback: Any) -> None:
    with pytest.raises(TypeError, match="on_error_resume_next"):
        BROKEN.on_error_resume_next(fallback)


def test_it_refuses_a_coroutine_function_when_it_is_built() -> None:
    async def choose(error: BaseException) -> Flow[int]:
        return Flow.of(1)

    not_yet: Any = choose
    with pytest.raises(TypeError, match="async def"):
        BROKEN.on_error_resume_next(not_yet)
