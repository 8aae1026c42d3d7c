"""The operator that parts a flow into windows of so many elements, each a flow of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner
from ..._fusion.origin import Origin
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...errors import SourceCancelledError
from ...hooks import discard
from ...spec import Subscription, bounded
from .part import Part, placed, soon

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
        parting = Windows(inlet, self.size, self.origin)
        parting.subscribe(self.flow, parting.upstream, at_once=True)
        return parting


@define(eq=False)
class Windows(Gathering):
    """Gives the elements of a flow to one window after another; a window is emitted with its first element.

    When the windows are cancelled, one that is being read goes on to its end.
    """

    size: int
    origin: Origin
    upstream: Inner = field(init=False)
    _window: Part | None = field(init=False, default=None)
    """The window that is not full yet."""
    _room: int = field(init=False, default=0)
    """How many elements it still takes."""
    _opened: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.upstream = self.enter(None)

    def request(self, n: int) -> None:
        """Ask for the elements of so many windows."""
        self.want(n)
        self.upstream.request(bounded(n * self.size))

    def cancel(self) -> None:
        """Cancel the flow, unless the window at hand is being read, or was emitted just now and will be."""
        self.over = True
        window = self._window
        if window is None:
            super().cancel()
        elif window.reading is None:
            soon(self, partial(self._give_up, window))

    def _give_up(self, window: Part) -> None:
        if window is self._window and window.reading is None:
            self._window = None
            super().cancel()
            window.end(
                SourceCancelledError(
                    f"{self.inlet.where} was cancelled before the {window.title} was full, and nobody was reading it"
                )
            )

    def step(self) -> bool:
        """Nothing is kept but by the windows."""
        return False

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Give elements to the window at hand and to as many new ones as they fill, then emit those."""
        at, new = 0, list[Part]()
        while at < len(items) and not (self.over and self._window is None):
            if self._window is None:
                new.append(self._open())
            chunk = items[at : at + self._room]
            at += len(chunk)
            self._fill(chunk)
        discard(items[at:])
        if new:
            self.emit([self._flow(each) for each in new])
        if self.over and self._window is None:
            super().cancel()

    def _open(self) -> Part:
        window = self._window = Part(f"window {self._opened}", self.inlet.context, self)
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

    def _flow(self, window: Part) -> Flow[Any]:
        from ..._flow.flow import Flow

        return Flow(placed(window, self.inlet.loop, self.origin))

    def on_end(self, inner: Inner) -> None:
        """End the window at hand with the flow, and then the whole."""
        error = inner.take_error()
        self.remove(inner)
        window, self._window = self._window, None
        if window is not None:
            window.end(error)
        if error is None:
            self.complete()
        elif window is not None:
            soon(self, partial(self._fail_too, error))
        else:
            self.fail(error)

    def _fail_too(self, error: BaseException) -> None:
        """Fail, unless whoever has heard of the failure has left in the meantime."""
        if not self.over:
            self.fail(error)

    # -- what gives the windows their elements

    def on_taken(self, part: Part, n: int) -> None:
        """Nothing: as much was asked for as the windows take."""

    def on_demand(self, part: Part) -> None:
        """Nothing: likewise."""

    def on_left(self, part: Part, kept: int) -> None:
        """Cancel the flow where this was the last window; else what is still to come for it goes to the hook."""
        if self.over and part is self._window:
            self._window = None
            super().cancel()
