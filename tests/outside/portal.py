"""A scheduler of somebody else's; docs/writing-a-scheduler.md begins with it."""

import asyncio
from collections.abc import Callable

from anyio.from_thread import BlockingPortal
from attrs import frozen

from reactive_aio.extend import Released


@frozen
class PortalScheduler:
    """Runs regions on the event loop of a blocking portal of anyio's."""

    portal: BlockingPortal
    target: asyncio.AbstractEventLoop

    @property
    def name(self) -> str:
        return "portal"

    def is_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.target
        except RuntimeError:
            return False

    def attach(self, lost: Callable[[BaseException], None]) -> "Lease":
        return Lease(self.target)


@frozen
class Lease:
    """The hold of one region on the loop."""

    loop: asyncio.AbstractEventLoop

    def detach(self, released: Released) -> None:
        released()


def on_portal(portal: BlockingPortal) -> PortalScheduler:
    return PortalScheduler(portal, portal.call(running_loop))


async def running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
