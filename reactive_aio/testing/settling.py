"""Waiting until an event loop is idle."""

from __future__ import annotations

import asyncio
import threading

from .._clocks.bystanders import Bystanders, is_worker
from .._clocks.virtual import VirtualTimeLoop
from .._clocks.windows import settle_here


async def settle(*, within: float = 30.0) -> None:
    """Wait until nothing can run now except the caller: all other tasks wait for time, or for each other.

    It does not wait for timers that are not due: on virtual time ``asyncio.sleep`` lets them pass. It waits for working
    threads. It works on any event loop. On a VirtualTimeLoop it knows everything except what comes by sockets. After
    ``within`` real seconds it raises TimeoutError, which says what still runs. (trio: ``wait_all_tasks_blocked``.)

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
