"""The operator that divides a flow into windows of ``size`` elements, each a flow of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._fusion.origin import Origin
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import Subscription, bounded
from .parting import Parting
from .substream import Home, Substream

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T = TypeVar("T")


@frozen
class Window(Pushed[T]):
    """Source of ``Flow.window``."""

    flow: FlowLike
    size: int
    origin: Origin = field(repr=False)

    @property
    def arguments(self) -> str:
        """The size."""
        return str(self.size)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow."""
        windows = Windows(inlet, self.size, self.origin)
        windows.subscribe(self.flow, windows.upstream, at_once=True)
        return windows


@define(eq=False)
class OneWindow(Substream):
    """The elements of one window."""

    number: int

    @property
    def title(self) -> str:
        """The number."""
        return f"window {self.number}"


@define(eq=False)
class Windows(Parting):
    """Passes the elements of a flow to one window after another. A window is emitted with its first element."""

    size: int
    origin: Origin
    _window: Substream | None = field(init=False, default=None)
    """The window that is not full yet."""
    _room: int = field(init=False, default=0)
    """The number of elements that it still takes."""
    _opened: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        """Request the elements of ``n`` windows."""
        self.want(n)
        self.upstream.request(bounded(n * self.size))

    def cut(self) -> None:
        """Forget the current window."""
        self._window = None
        super().cut()

    def step(self) -> bool:
        """Nothing is kept but by the windows."""
        return False

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass elements to the current window and to the new windows that they fill. Then emit the new ones."""
        at = 0
        new: list[Substream] = []
        while at < len(items) and not self.audience.over:
            if self._window is None:
                new.append(self._open())
            chunk = items[at : at + self._room]
            at += len(chunk)
            self._fill(chunk)
        discard(items[at:])
        if new:
            self.emit([self._flow(each) for each in new])

    def _open(self) -> Substream:
        window = self._window = OneWindow(self.inlet.context, self, self._opened)
        self.audience.join(window)
        self._opened += 1
        self._room = self.size
        return window

    def _fill(self, chunk: list[Any]) -> None:
        window = self._window
        assert window is not None
        self._room -= len(chunk)
        if self._room:
            window.add(chunk)
        else:
            self._window = None
            window.add(chunk)
            window.end(None)
            self.audience.leave(window)

    def _flow(self, window: Substream) -> Flow[Any]:
        from ..._flow.flow import Flow

        home = Home(self.inlet.loop, window)  # a full window has ended before the flow has
        return Flow(home.nodes(window, home.steps(self.origin), self.origin))

    def on_end(self, inner: Inner) -> None:
        """End the current window with the flow, and then the whole flow."""
        self.close(inner.take_error())
