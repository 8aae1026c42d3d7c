"""Running a flow to its end, while something watches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, Final, Protocol

from attrs import define, field

from .._plan import Snapshot
from .._runtime.iterating import Opened
from .loading import AnyFlow

GLANCE: Final = 0.1
"""Seconds between two looks at a running flow."""


@define
class Run:
    """The state of a run: how far it has come, and the rows that will be shown of it."""

    rows: int
    tail: bool = False
    emitted: int = field(init=False, default=0)
    seconds: float = field(init=False, default=0.0)
    snapshot: Snapshot = field(init=False, default=Snapshot(()))
    _kept: deque[Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._kept = deque(maxlen=self.rows)

    def add(self, item: Any) -> None:
        """Count an element, and keep it if it may be shown."""
        if self.tail or self.emitted < self.rows:
            self._kept.append(item)
        self.emitted += 1

    @property
    def shown(self) -> Iterator[Any]:
        """The elements to be shown."""
        return iter(self._kept)

    @property
    def cut(self) -> int:
        """The number of elements that are not shown."""
        return self.emitted - len(self._kept)


class Watcher(Protocol):
    """The report of a run while it goes on."""

    def watching(self) -> AbstractContextManager[Callable[[Run], None]]:
        """Return a context manager of a function to be called from time to time."""
        ...


async def drive(flow: AnyFlow, run: Run, watcher: Watcher) -> None:
    """Run a flow to its end. ``run`` is kept up to date, also when the flow fails or is cancelled."""
    begun = perf_counter()
    async with Opened(flow) as items:

        def look() -> None:
            run.seconds = perf_counter() - begun
            run.snapshot = items.snapshot()

        with watcher.watching() as tell:
            glances = asyncio.create_task(_glance(look, lambda: tell(run)))
            try:
                async for item in items:
                    run.add(item)
            finally:
                glances.cancel()
                look()
                tell(run)


async def _glance(*actions: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(GLANCE)
        for action in actions:
            action()
