"""The machine behind the overflow operators. It takes all elements, and emits the requested ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._fusion import label
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...errors import BackpressureOverflowError
from ...hooks import discard, drop_error
from ...spec import UNBOUNDED, Subscription, add_demand, subtract_demand
from .backlog import Backlog

T = TypeVar("T")


class Relieved(Pushed[T]):
    """A flow whose source is asked for everything, whatever the demand."""

    __slots__ = ()

    flow: FlowLike

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    @property
    def arguments(self) -> str:
        """The arguments, without the flow."""
        fields: tuple[Any, ...] = getattr(type(self), "__attrs_attrs__", ())
        values = [getattr(self, each.name) for each in fields]
        return ", ".join(label(value) for value in values if value is not None and value is not self.flow)

    @abstractmethod
    def intake(self, inlet: Inlet[Any]) -> Intake:
        """Make the machine for one subscription."""

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Subscribe to the flow."""
        intake = self.intake(inlet)
        inlet.show(intake.backlog)
        # In a callback, so that what is wanted by then has been asked of the intake before the first element comes.
        inlet.subscribe(self.flow, intake, at_once=False)
        return intake


@define(eq=False)
class Intake:
    """Requests everything upstream. It passes on the requested elements, and keeps or drops the others.

    A Receiver on one side, on the other the Subscription of the region; all on one event loop. Where nothing can
    wait it begins to ask with the first demand, before which every element would be lost. The end of upstream, and
    an overflow that fails the flow, stay behind the elements that wait.

    Invariant, whenever no method is on the stack: there is no demand, or nothing waits, or `_drain` is due.
    """

    inlet: Inlet[Any]
    backlog: Backlog[Any]
    on_drop: Callable[[Any], object] | None = None
    _upstream: Subscription | None = field(init=False, default=None)
    _asked: bool = field(init=False, default=False)
    _demand: int = field(init=False, default=0)
    _due: bool = field(init=False, default=False)
    _ended: bool = field(init=False, default=False)
    """Whether nothing more is taken from upstream."""
    _error: BaseException | None = field(init=False, default=None)
    _over: bool = field(init=False, default=False)
    """Whether nothing more is emitted downstream."""

    # -- the Subscription of the region

    def request(self, n: int) -> None:
        """Note the demand. A region that requests is in the middle of its turn, so kept elements come in an event."""
        self._demand = add_demand(self._demand, n)
        self._ask()
        if self.backlog.buffered and not self._due:
            self._due = True
            self.inlet.post(self._drain, None)

    def cancel(self) -> None:
        """Cancel upstream and let go of what waits."""
        self._over = True
        self._leave()
        discard(self.backlog.take(UNBOUNDED))
        error, self._error = self._error, None
        if error is not None and not isinstance(error, BackpressureOverflowError):
            self.inlet.dropped(error)

    # -- the Receiver of upstream

    def on_subscribe(self, subscription: Subscription) -> None:
        """Begin to ask, at once where elements can wait."""
        if self._ended or self._over:
            subscription.cancel()
            return
        self._upstream = subscription
        if self.backlog.size:
            self._ask(early=True)
        elif self._demand:
            self._ask()

    def on_chunk(self, items: list[Any]) -> None:
        """Pass on the requested elements now, then treat the others by the policy."""
        if self._ended or self._over:
            discard(items)
            return
        at = 0
        while self._demand and at < len(items) and not self.backlog.buffered and not self._over:
            chunk = items[at : at + self._demand]
            at += len(chunk)
            self._give(chunk)
        if at < len(items):
            self._keep(items[at:] if at else items)

    def on_error(self, error: BaseException) -> None:
        """Fail after the waiting elements."""
        if self._ended or self._over:
            drop_error(error)
        else:
            self._end(error)

    def on_complete(self) -> None:
        """Complete after the waiting elements."""
        if not self._ended and not self._over:
            self._end(None)

    # -- between them

    def _ask(self, *, early: bool = False) -> None:
        if not self._asked and self._upstream is not None and (early or self._demand):
            self._asked = True
            self._upstream.request(UNBOUNDED)

    def _give(self, chunk: list[Any]) -> None:
        self._demand = subtract_demand(self._demand, len(chunk))
        self.inlet.on_chunk(chunk)

    def _keep(self, items: list[Any]) -> None:
        if self._over:
            discard(items)
            return
        lost = self.backlog.add(items)
        if not lost:
            return
        discard(lost)
        if self.backlog.overflow == "error":
            self._leave()
            self._end(self._overflow())
        elif self.on_drop is not None:
            self._tell(self.on_drop, lost)

    def _tell(self, on_drop: Callable[[Any], object], lost: list[Any]) -> None:
        try:
            for item in lost:
                on_drop(item)
        except FAILURES as error:
            add_note(error, f"raised by the on_drop of {self.inlet.where}")
            self._leave()
            self._end(error)

    def _overflow(self) -> BackpressureOverflowError:
        size = self.backlog.size
        if size:
            why = f"when {size} were waiting"
            instead = "Raise max_size, or choose overflow='drop_oldest' or 'drop_latest'"
        else:
            why = "without demand"
            instead = "Use on_backpressure_buffer(size), on_backpressure_drop() or on_backpressure_latest() to keep or drop it"
        return BackpressureOverflowError(f"an element came {why}: {self.inlet.where}. {instead}")

    def _end(self, error: BaseException | None) -> None:
        self._ended, self._error = True, error
        self._upstream = None
        if not self.backlog.buffered:
            self._finish()

    def _leave(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()

    def _drain(self, _: None) -> None:
        """Emit the waiting elements, as far as there is demand."""
        self._due = False
        while self._demand and self.backlog.buffered and not self._over:
            self._give(self.backlog.take(self._demand))
        if self._ended and not self.backlog.buffered:
            self._finish()

    def _finish(self) -> None:
        if self._over:
            return
        self._over = True
        error, self._error = self._error, None
        if error is None:
            self.inlet.on_complete()
        else:
            self.inlet.on_error(error)
