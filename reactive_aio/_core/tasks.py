"""Tasks that take their first step in a turn of the event loop, also where the loop has an eager task factory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

from .guard import FAILURES

T = TypeVar("T")


def begin_task(
    coroutine: Coroutine[Any, Any, T],
    context: Context | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> asyncio.Task[T]:
    """Run a coroutine in a task. It never begins inside this call.

    An eager task factory takes the first step at once. Then the coroutine would run before its caller knows of the task.
    """
    loop = loop or asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        return loop.create_task(coroutine, context=context)
    outer = _in_a_turn(coroutine)
    try:
        task = loop.create_task(outer, context=context)
    except FAILURES:  # of the factory. Python warns of a coroutine that never runs
        outer.close()
        coroutine.close()
        raise
    task.add_done_callback(lambda _: coroutine.close())  # if it has not begun: else Python warns of that
    return task


def begin_apart(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Run a coroutine in a task that `asyncio.run` does not cancel when it ends, and that its caller waits for all the same.

    It is for a call that leaves something behind when it is cut short, such as the file that a thread uses.
    """
    task = begin_task(coroutine)
    asyncio._unregister_task(task)
    return task


async def _in_a_turn(coroutine: Coroutine[Any, Any, T]) -> T:
    await asyncio.sleep(0)
    return await coroutine
