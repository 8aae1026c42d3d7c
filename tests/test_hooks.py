"""The hooks: they are set for a block, and what they raise hides nothing."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow, SchedulerClosedError, SourceCancelledError, TaskCancelledError, hooks
from tests.subscribers import idle


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """An exception whose attributes can't be set, not even the traceback."""

    code: int = 7


class Outcome(BaseException):
    """An exception outside of `Exception`."""


def test_whatever_leaves_the_block_is_left_as_it_is() -> None:
    with pytest.raises(FrozenError), hooks.using(on_discard=print, on_error_dropped=print):
        raise FrozenError


def test_behind_the_block_the_hooks_are_those_of_before() -> None:
    outer, inner = list[object](), list[object]()
    with hooks.using(on_discard=outer.append):
        setting = hooks.using(on_discard=inner.append)
        with setting:
            hooks.discard([1])
        with setting:
            hooks.discard([2])
        hooks.discard([3])

    assert ([3], [1, 2]) == (outer, inner)


@pytest.mark.parametrize("error", [OSError(), Outcome(), GeneratorExit(), asyncio.CancelledError()])
async def test_an_exception_of_a_hook_is_reported_and_not_raised(error: BaseException) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(told["exception"]))

    def fails(_: object) -> None:
        raise error

    with hooks.using(on_discard=fails, on_error_dropped=fails):
        hooks.discard(["element"])

    first, second = reported
    assert error is first
    assert error is (second.__cause__ if isinstance(second, SourceCancelledError) else second)


# -- a loop that ends cancels its tasks, those of flows too


async def one_and_no_more() -> AsyncIterator[int]:
    yield 1
    await asyncio.Event().wait()


def source() -> Flow[int]:
    return Flow.from_async_iterable(one_and_no_more)


async def never(item: int) -> bool:
    return await asyncio.Event().wait()


async def emit_no_more(emit: Callable[[int], Awaitable[None]]) -> None:
    await emit(1)
    await asyncio.Event().wait()


AT_WORK: dict[str, Callable[[], Flow[Any]]] = {
    "source": source,
    "create": lambda: Flow.create(emit_no_more),
    "map_async": lambda: source().map_async(never),
    "filter_when": lambda: source().filter_when(never),
    "flat_map": lambda: source().flat_map(lambda _: source()),
    "concat_map": lambda: source().concat_map(lambda _: source()),
    "switch_map": lambda: source().switch_map(lambda _: source()),
    "merge": lambda: source().merge(source()),
    "zip": lambda: source().zip(source()),
    "group_by": lambda: source().group_by(abs).flat_map(lambda group: group.map_async(never)),
    "window": lambda: source().window(2).flat_map(lambda window: window),
    "share": lambda: source().share(),
    "retry": lambda: source().retry_if(lambda error, attempt: True),
    "on_error_resume_next": lambda: source().on_error_resume_next(Flow.of(1)),
}


@pytest.mark.parametrize("flow", AT_WORK.values(), ids=AT_WORK)
def test_a_loop_that_ends_while_a_flow_is_at_work_reports_nothing(flow: Callable[[], Flow[Any]]) -> None:
    reported: list[object] = []

    async def leave() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        tasks = {asyncio.ensure_future(flow().count())}
        await idle()
        assert not any(task.done() for task in tasks)

    asyncio.run(leave())
    assert reported == []


@pytest.mark.parametrize(
    "error", [TaskCancelledError("cancelled by somebody else"), SchedulerClosedError("threads(2) was closed")]
)
async def test_the_end_of_a_loop_or_pool_is_for_a_hook_of_ones_own_only(error: BaseException) -> None:
    reported: list[object] = []
    dropped: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    hooks.drop_error(error)
    with hooks.using(on_error_dropped=dropped.append):
        hooks.drop_error(error)
    assert ([], [error]) == (reported, dropped)
