"""The source that holds a resource for as long as the flow lives that is made of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._core.guard import FAILURES, as_failure, cancelled_from_outside, cancels, is_closed_with
from ..._core.notes import add_note
from ..._fusion import label
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .._fluent import check_flow

T = TypeVar("T")

Resource = AbstractContextManager[T] | AbstractAsyncContextManager[T]


@frozen
class Using(Pushed[T]):
    """Source of ``Flow.using``."""

    resource: Callable[[], Resource[Any]]
    fn: Callable[[Any], FlowLike]

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Start the task that enters the resource, makes the flow, and leaves the resource."""
        holding = Holding(inlet, self.resource, self.fn)
        holding.begin()
        return holding


@define(eq=False)
class Holding:
    """One task, and one context, that enters and leaves the resource; between the two it waits.

    The Subscription of the region, and the Owner of the flow that is made of the resource. The flow has ended for the
    task when all that it started has been cleaned up, which may well use the resource still.
    """

    inlet: Inlet[Any]
    resource: Callable[[], Resource[Any]]
    fn: Callable[[Any], FlowLike]
    _inner: Inner = field(init=False)
    _failure: BaseException | None = field(init=False, default=None)
    """The failure of the flow."""
    _cleaned: asyncio.Event = field(init=False, factory=asyncio.Event)
    """Whether nothing of the flow is left."""
    _task: asyncio.Task[None] | None = field(init=False, default=None)
    """The task, until it leaves the resource: there it is not disturbed."""
    _cancelled: bool = field(init=False, default=False)
    _cancel: asyncio.CancelledError | None = field(init=False, default=None)
    """The exception that the cancel has become, on its way through the resource."""
    _cancels: int = field(init=False, default=0)
    """The cancels of the task before it leaves the resource."""

    def begin(self) -> None:
        """Start the task; without demand, since the flow may turn out to be empty."""
        self._inner = Inner(self)
        self._task = self.inlet.start(self._hold())

    # -- the Subscription of the region

    def request(self, n: int) -> None:
        """Pass demand on, now or when there is a flow."""
        self._inner.request(n)

    def cancel(self) -> None:
        """Cancel the flow. The task goes on when that has been cleaned up."""
        self._cancelled = True
        self._inner.cancel()
        if self._task is not None:
            self._task.cancel()

    # -- the Owner of the flow

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass elements on."""
        self.inlet.on_chunk(items)

    def on_end(self, inner: Inner) -> None:
        """Note how it has ended: the end is signalled when the resource has been released."""
        self._failure = inner.take_error()

    # -- the task

    async def _hold(self) -> None:
        try:
            await self._inside(self.resource())
        except asyncio.CancelledError as error:
            if not self._cancelled:
                self._fail(cancelled_from_outside(error, "the task that holds a resource"))
            elif self._cancel is not None and self._cancel is not error and cancels() == self._cancels:
                # The resource's own: the flow does not cancel what leaves, but `asyncio.run` may.
                self._fail(as_failure(error))
            raise
        except FAILURES as error:
            if is_closed_with(error, self.inlet.loop):
                raise
            self._fail(error)
        else:
            if not self._cancelled:
                self.inlet.on_complete()
        finally:
            self._task = self._failure = self._cancel = None
            self._inner.cancel()

    async def _inside(self, resource: Resource[Any]) -> None:
        """Read the flow inside a context manager of either kind."""
        if isinstance(resource, AbstractAsyncContextManager):
            async with resource as value:
                await self._read(self._flow(value))
        elif isinstance(resource, AbstractContextManager):  # pyright: ignore[reportUnnecessaryIsInstance] - users may err
            with resource as value:
                await self._read(self._flow(value))
        else:
            made = f"{label(self.resource)} must return a context manager, but returned {type(resource).__name__}"
            raise TypeError(f"{made}: see contextlib.asynccontextmanager")

    def _flow(self, value: Any) -> FlowLike:
        flow = self.fn(value)
        check_flow("using", flow)
        return flow

    async def _read(self, flow: FlowLike) -> None:
        """Read the flow, and wait until nothing of it is left. Its failure is for the resource to see."""
        self.inlet.subscribe(flow, self._inner, at_once=False, ended=self._left)
        try:
            await self._cleaned.wait()
        except asyncio.CancelledError as cancel:
            self._cancel = cancel
            self._inner.cancel()
            self._task = None
            await _uninterrupted(self._cleaned)
            self._cancels = cancels()
            if self._failure is not None:
                self.inlet.dropped(self._failure)
            raise
        self._task = None
        if self._failure is not None:
            raise self._failure

    def _left(self) -> None:
        """Hear, on whatever thread, that nothing of the flow is left."""
        self.inlet.post(lambda _: self._cleaned.set(), None)

    def _fail(self, error: BaseException) -> None:
        if error is not self._failure:
            add_note(error, f"in {self.inlet.where}")
        if self._cancelled:
            self.inlet.cleanup_failed(error)
        else:
            self.inlet.on_error(error)


async def _uninterrupted(event: asyncio.Event) -> None:
    while not event.is_set():
        try:
            await event.wait()
        except asyncio.CancelledError:
            continue
