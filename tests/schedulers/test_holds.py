"""The hold of a region on a loop: nothing of it is left, not even for the garbage collector, once it has been let go."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest
from attrs import define, field

from reactive_aio import schedulers
from reactive_aio.schedulers import Attachment, Scheduler


@define(eq=False)
class Region:
    """Holds its attachment, which is to tell it of the end of the loop."""

    attachment: Attachment = field(init=False)

    def lost(self, error: BaseException) -> None:
        pass


@pytest.fixture
def far() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("place", [schedulers.loop, lambda far: schedulers.thread("held")], ids=["loop", "thread"])
async def test_what_has_let_a_loop_go_is_freed_at_once(
    place: Callable[[asyncio.AbstractEventLoop], Scheduler], far: asyncio.AbstractEventLoop, no_collection: None
) -> None:
    scheduler = place(far)
    region, released = Region(), threading.Event()
    region.attachment = scheduler.attach(region.lost)
    left = weakref.ref(region)

    region.attachment.detach(lambda join=None: released.set())
    assert await asyncio.to_thread(released.wait, 60)
    await asyncio.sleep(0)  # for the timer that is cancelled
    del region

    assert left() is None
