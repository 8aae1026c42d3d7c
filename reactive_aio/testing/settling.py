"""Asking a loop whether it is quiescent."""

from __future__ import annotations

import asyncio
import threading

from .._clocks.bystanders import Bystanders, is_worker
from .._clocks.virtual import VirtualTimeLoop
from .._clocks.windows import settle_here


async def settle(*, within: float = 30.0) -> None:
    """Return when nothing is scheduled for now except the caller: all others wait for time, or for each other.

    Timers that are not due are left alone: on virtual time ``asyncio.sleep`` lets them pass. Threads at work are waited
    for. It works on any event loop. On a VirtualTimeLoop sockets are the only thing it can't see through.

    After ``within`` real seconds TimeoutError says what is still at work. (trio: ``wait_all_tasks_blocked``.)

    >>> import asyncio
    >>> from reactive_aio.testing import VirtualTimeLoop
    >>> async def main():
    ...     event, seen = asyncio.Event(), []
    ...     async def waiter():
    ...         await event.wait()
    ...         seen.append("woken")
    ...     async with asyncio.TaskGroup() as tasks:
    ...         tasks.create_task(waiter())
    ...         event.set()
    ...         await settle()
    ...         return seen
    >>> with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    ...     runner.run(main())
    ['woken']
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        await loop.settle(within)
        return
    bystanders = Bystanders(thread for thread in threading.enumerate() if not is_worker(thread))
    await settle_here(lambda: bystanders.busy(settling=True), within)
