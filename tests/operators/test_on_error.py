"""The operators that answer a failure: on_error_return, on_error_complete, on_error_map, retry_if."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

from reactive_aio import Flow
from tests.subscribers import ByHand, Recorder, idle

BROKEN = Flow.of(1, 2).concat(Flow.error(lambda: OSError("down")))


# -- a value, or the end, in the place of the failure


async def test_a_value_stands_for_what_is_missing() -> None:
    assert [1, 2, 9] == await BROKEN.on_error_return(9).to_list()
    assert [1, 2, None] == await BROKEN.on_error_return(None).to_list()


async def test_the_value_waits_for_demand() -> None:
    recorder = Recorder(2)
    BROKEN.on_error_return(9).subscribe(recorder)
    await idle()
    assert ["subscribe", "next", "next"] == recorder.kinds

    recorder.request(1)
    await idle()
    assert [("next", 9), ("complete", None)] == recorder.signals[3:]


async def test_a_failure_may_count_as_the_end_and_needs_no_demand_then() -> None:
    recorder = Recorder(2)
    BROKEN.on_error_complete().subscribe(recorder)
    await idle()

    assert ["subscribe", "next", "next", "complete"] == recorder.kinds


def same(error: Any) -> Any:
    return error


# -- on_error_map


async def test_the_error_is_replaced_and_is_the_cause_then() -> None:
    with pytest.raises(LookupError, match="no down") as failed:
        await BROKEN.on_error_map(lambda error: LookupError(f"no {error}")).to_list()

    assert isinstance(failed.value.__cause__, OSError)


async def test_an_error_with_a_cause_of_its_own_keeps_it() -> None:
    own = KeyError()

    def mapped(_: BaseException) -> Exception:
        error = LookupError()
        error.__cause__ = own
        return error

    with pytest.raises(LookupError) as failed:
        await BROKEN.on_error_map(mapped).to_list()

    assert failed.value.__cause__ is own


async def test_the_same_error_is_not_its_own_cause() -> None:
    with pytest.raises(OSError, match="down") as failed:
        await BROKEN.on_error_map(same).to_list()

    assert failed.value.__cause__ is None


async def test_an_exception_of_a_function_has_the_failure_as_its_context() -> None:
    def broken(*_: object) -> Any:
        raise ValueError("broken")

    for flow in (BROKEN.on_error_map(broken), BROKEN.retry_if(broken)):
        with pytest.raises(ValueError, match="broken") as failed:
            await flow.to_list()
        assert isinstance(failed.value.__context__, OSError)


@pytest.mark.parametrize("method", ["on_error_map", "retry_if", "do_on_error"])
async def test_it_has_it_too_where_the_failure_was_not_raised_here(method: str) -> None:
    def broken(*_: object) -> Any:
        raise ValueError("broken")

    source, recorder, error = ByHand(), Recorder(1), OSError("down")
    getattr(Flow.from_publisher(source), method)(broken).subscribe(recorder)
    await idle()
    source.error(error)
    await idle()

    assert isinstance(recorder.error, ValueError)
    assert recorder.error.__context__ is error


async def test_a_function_that_returns_no_exception_is_an_error() -> None:
    flow: Any = BROKEN

    with pytest.raises(TypeError, match=r"on_error_map.*not str") as failed:
        await flow.on_error_map(str).to_list()

    assert isinstance(failed.value.__context__, OSError)


# -- retry_if


async def test_it_is_told_the_failure_and_the_attempt_from_one_for_each_subscription() -> None:
    told: list[Any] = []

    def twice(error: BaseException, attempt: int) -> bool:
        told.append((str(error), attempt))
        return attempt < 3

    flow = BROKEN.retry_if(twice).on_error_complete()

    assert [1, 2] * 3 == await flow.to_list() == await flow.to_list()
    assert [("down", 1), ("down", 2), ("down", 3)] * 2 == told


async def test_it_asks_the_next_attempt_for_what_is_left() -> None:
    source, recorder = ByHand(), Recorder(3)
    Flow.from_publisher(source).retry_if(lambda *_: True).subscribe(recorder)
    await idle()
    source.next(1)
    source.error(OSError())
    await idle()

    assert [3, 2] == source.requests
    assert 2 == len({id(subscriber) for subscriber in source.subscribers})


async def test_an_attempt_that_completes_is_the_last() -> None:
    assert [1] == await Flow.of(1).retry_if(lambda *_: True).to_list()


async def test_the_functions_run_in_the_context_of_the_subscriber() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="")
    seen: list[str] = []

    def note(error: Any, attempt: int = 0) -> Any:
        seen.append(name.get())
        name.set("leaked")
        return error if not attempt else False

    name.set("subscriber")
    for flow in (BROKEN.retry_if(note), BROKEN.on_error_map(note)):
        with pytest.raises(OSError, match="down"):
            await flow.to_list()

    assert ["subscriber", "subscriber"] == seen
    assert "subscriber" == name.get()


@pytest.mark.parametrize("method", ["retry_if", "on_error_map"])
def test_an_argument_that_is_no_ordinary_function_is_refused_when_the_flow_is_built(method: str) -> None:
    async def later(*_: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=f"{method}.*async def"):
        getattr(Flow.of(1), method)(later)
    with pytest.raises(TypeError, match=f"{method}.*function, not int"):
        getattr(Flow.of(1), method)(3)
