"""The flow that is run once for all of its subscribers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TypeVar

from attrs import field, frozen

from .._plan import SharedSnapshot
from ..operators.sharing.shared import Sharing
from .ends import FlowIterator
from .flow import Flow

T_co = TypeVar("T_co", covariant=True)


@frozen(repr=False, eq=False)
class Read(Flow[T_co]):
    """A shared flow without further operators. A task that iterates over it takes the elements itself."""

    def __aiter__(self) -> FlowIterator[T_co]:
        """Subscribe and iterate over the elements, requesting one at a time, or ``prefetch`` ahead."""
        from ..operators.sharing.iterating import Iterating

        return Iterating.begin(self)

    def open(self) -> AbstractAsyncContextManager[FlowIterator[T_co]]:
        """Subscribe for the length of an ``async with`` block. When the block has ended, all cleanup is done."""
        from ..operators.sharing.iterating import Opened

        return Opened(self)


@frozen(repr=False, eq=False)
class Shared(Read[T_co]):
    """A flow that is run once for all its subscribers, made by `Flow.share`.

    `async with` holds its run open, also while there is no subscriber. The run begins at once, on the running loop and
    in the current context. It requests nothing before a subscriber does. After a time without subscribers, the next one
    begins with the first element that no subscriber has had. At the end of the block the run is cancelled and cleaned
    up. Subscribers that still read get the elements that are kept for them, and then fail with SharedClosedError.

    >>> import asyncio
    >>> from reactive_aio import Flow
    >>> async def main():
    ...     async with Flow.range(9).share() as numbers:
    ...         return await numbers.take(3).to_list(), await numbers.take(2).to_list()
    >>> asyncio.run(main())
    ([0, 1, 2], [3, 4])
    """

    _sharing: Sharing = field(kw_only=True, alias="sharing")

    @property
    def subscribers(self) -> int:
        """The number of subscribers of the current run."""
        run = self._sharing.current
        return 0 if run is None else run.log.readers

    def snapshot(self) -> SharedSnapshot:
        """Return how much has been emitted and is kept, and how far behind each subscriber is; from any thread."""
        run = self._sharing.current
        return SharedSnapshot(0, 0, ()) if run is None else run.look()

    async def __aenter__(self) -> Shared[T_co]:
        """Hold a run open."""
        self._sharing.hold()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Cancel the run, and wait for its cleanup."""
        await self._sharing.release(error)
