"""Which failures the recovering operators are for: those of the types ``errors``, by default ``Exception``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Backoff, Flow, SharedClosedError, TaskCancelledError


class OwnError(BaseException):
    """As ``pytest.fail()`` raises it."""


async def always(*_: object) -> bool:
    return True


RECOVERING: dict[str, Callable[..., Flow[Any]]] = {
    "retry": lambda flow, **errors: flow.retry(**errors),
    "retry by a Backoff": lambda flow, **errors: flow.retry(Backoff(0.0), **errors),
    "retry_if": lambda flow, **errors: flow.retry_if(lambda *_: True, **errors),
    "retry_when": lambda flow, **errors: flow.retry_when(always, **errors),
    "on_error_resume_next": lambda flow, **errors: flow.on_error_resume_next(Flow.of("up"), **errors),
    "on_error_return": lambda flow, **errors: flow.on_error_return("up", **errors),
    "on_error_complete": lambda flow, **errors: flow.on_error_complete(**errors).concat(Flow.of("up")),
    "on_error_map": lambda flow, **errors: flow.on_error_map(LookupError, **errors).on_error_return(
        "up", errors=LookupError
    ),
}


def once(error: BaseException) -> Flow[str]:
    """Fail the first time, and go well then."""
    left = [error]

    def attempt() -> str:
        if left:
            raise left.pop()
        return "up"

    return Flow.from_callable(attempt)


@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, GeneratorExit, OwnError, lambda: BaseExceptionGroup("group", [OwnError()])]
)
@pytest.mark.parametrize("method", RECOVERING)
async def test_what_is_no_exception_ends_the_flow_unless_it_is_asked_for(
    method: str, error: Callable[[], BaseException]
) -> None:
    made = error()
    with pytest.raises(type(made)) as failed:
        await RECOVERING[method](once(made)).to_list()

    assert made is failed.value
    assert ["up"] == await RECOVERING[method](once(error()), errors=BaseException).to_list()


@pytest.mark.parametrize("method", RECOVERING)
async def test_a_cancelled_error_that_a_function_raises_is_an_exception(method: str) -> None:
    assert ["up"] == await RECOVERING[method](once(asyncio.CancelledError())).to_list()


@pytest.mark.parametrize("method", RECOVERING)
async def test_the_cancel_of_a_sources_task_ends_the_flow_unless_it_is_named(method: str) -> None:
    begun: list[asyncio.Task[Any]] = []

    async def attempt(_: int) -> str:
        task = asyncio.current_task()
        assert task is not None
        begun.append(task)
        if len(begun) == 1:
            task.cancel()
            await asyncio.sleep(0)
        return "up"

    flow = Flow.of(1).map_async(attempt)
    with pytest.raises(TaskCancelledError):
        await RECOVERING[method](flow).to_list()

    assert len(begun) == 1
    begun.clear()
    assert ["up"] == await RECOVERING[method](flow, errors=(Exception, TaskCancelledError)).to_list()


@pytest.mark.parametrize("method", RECOVERING)
async def test_the_end_of_the_block_of_a_shared_flow_ends_the_flow_unless_it_is_named(method: str) -> None:
    begun: list[int] = []
    waiting = asyncio.Event()
    down = asyncio.Event()

    async def source() -> str:
        begun.append(1)
        if len(begun) == 1:
            waiting.set()
            await down.wait()
        return "up"

    async def read(**errors: Any) -> list[Any]:
        begun.clear()
        waiting.clear()
        shared = Flow.from_awaitable(source).share()
        async with shared:
            reading = asyncio.create_task(RECOVERING[method](shared, **errors).to_list())
            await waiting.wait()
        return await reading

    with pytest.raises(SharedClosedError):
        await read()
    assert len(begun) == 1
    assert ["up"] == await read(errors=(Exception, SharedClosedError))


@pytest.mark.parametrize("errors", [KeyError, (KeyError, ValueError), ()])
@pytest.mark.parametrize("method", RECOVERING)
async def test_an_error_of_another_type_ends_the_flow(method: str, errors: Any) -> None:
    with pytest.raises(OSError, match="down") as failed:
        await RECOVERING[method](once(OSError("down")), errors=errors).to_list()

    assert failed.value.__context__ is None


@pytest.mark.parametrize("errors", [OSError, (KeyError, OSError), Exception])
@pytest.mark.parametrize("method", RECOVERING)
async def test_an_error_of_the_types_named_is_recovered_from(method: str, errors: Any) -> None:
    assert ["up"] == await RECOVERING[method](once(OSError("down")), errors=errors).to_list()


@pytest.mark.parametrize("errors", [int, OSError(), "OSError", (OSError, int), [OSError], None])
@pytest.mark.parametrize("method", RECOVERING)
def test_an_argument_that_is_no_type_of_exceptions_is_refused_when_the_flow_is_built(method: str, errors: Any) -> None:
    with pytest.raises(TypeError, match=rf"{method.split(maxsplit=1)[0]}\(errors"):
        RECOVERING[method](Flow.of(1), errors=errors)
