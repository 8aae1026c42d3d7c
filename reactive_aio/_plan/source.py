"""Sources as values: where the elements of a region come from.

A *pulled* source is an iterator, and is fused with the stages that follow it. An *awaited* one is an async iterator. A
*pushed* one (a producer coroutine, a publisher of somebody else's, a combinator, a cluster) speaks to the region
through an inlet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop, Task
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextvars import Context
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from attrs import frozen

from .._fusion.stage import label, snake
from ..spec import Subscription
from .capabilities import LOOP, Capabilities

if TYPE_CHECKING:
    from .._core.guard import Failed
    from .._fusion.origin import Placed
    from .._fusion.stage import Stage
    from ..schedulers.base import Released
    from .nodes import FlowLike
    from .snapshot import TasksSnapshot

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)

Kind: TypeAlias = Literal["pulled", "awaited", "pushed"]


class Receiver(Protocol[T]):
    """A subscriber inside the library: takes elements by the list, all on one event loop."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the subscription. Nothing else comes before it."""

    def on_chunk(self, items: list[T], /) -> None:
        """Take elements, no more of them than were requested."""

    def on_error(self, error: BaseException, /) -> None:
        """Take the failure that ends the stream."""

    def on_complete(self) -> None:
        """Take note that the stream has ended well."""


@runtime_checkable
class Abandonable(Protocol):
    """A subscription that can be left as one that has failed."""

    def abandon(self) -> None:
        """Send errors of its cleanup only to the hook, because another receiver goes on without it."""


class AtHand:
    """The subscription to a flow of given elements. A reader on the same loop may take them without a request and a signal."""

    __slots__ = ()

    spent: bool
    """Whether the last element has been pulled. Its reader is to handle the end."""

    @abstractmethod
    def pull(self) -> Any:
        """Return the next element, or NOTHING where the flow is empty."""


class Gauge(Protocol):
    """The numbers of elements that a source itself keeps and drops; read from any thread."""

    @property
    def size(self) -> int:
        """The most elements that it keeps."""
        ...

    @property
    def buffered(self) -> int:
        """The elements that it keeps now."""
        ...

    @property
    def dropped(self) -> int:
        """The elements for which there was neither demand nor room."""
        ...


class Outlet(Protocol[T]):
    """The receiver of a source's elements, on the event loop of the region that it feeds."""

    def on_chunk(self, items: list[T], /) -> None:
        """Deliver elements. No more of them than were requested."""

    def on_error(self, error: BaseException, /) -> None:
        """Deliver the failure that ends the source."""

    def on_complete(self) -> None:
        """Deliver the end of the source."""


class Host(Protocol):
    """The host of a source: the event loop, context and lifetime of its subscription, and the receiver of late errors."""

    @property
    def loop(self) -> AbstractEventLoop:
        """The event loop of the region."""
        ...

    @property
    def context(self) -> Context:
        """The context of the subscriber, for tasks and callbacks that run user code."""
        ...

    @property
    def where(self) -> str:
        """The source and the line it was chained on, for errors."""
        ...

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Schedule ``handle(value)`` on the region's loop, from any thread."""

    def hold(self) -> Released:
        """Note a pending cleanup. Call the result, from any thread, when it is done."""
        ...

    def start(self, coroutine: Coroutine[Any, Any, U], context: Context | None = None) -> Task[U]:
        """Run a coroutine in a task of the subscription, in ``context`` or in a copy of that of the subscriber.

        The task is held, and the subscription lasts, until the task has ended. It signals a failure of the coroutine itself.
        """
        ...

    def cleanup_failed(self, error: BaseException) -> None:
        """Pass on the error of a cleanup after the end of the region, from any thread.

        The awaited end raises it, unless the flow has failed before. Else it goes to the hook.
        """

    def dropped(self, error: BaseException, *, again: bool = False) -> None:
        """Report to the hook a failure that is not raised. The error that the end raises, if any, gets a note of it.

        The failure of a flow is reported once. ``again`` is for the error of a call, which is reported each time that it is raised.
        """

    def given(self, flow: FlowLike, most: int) -> list[Any] | Failed | None:
        """Return the elements of an inner flow of given ones, at most ``most``, that can be passed on now.

        A single one may go through stateless stages, which may fail. There is nothing to be cleaned up: so nobody has to subscribe.
        None for all other flows.
        """
        ...

    def is_given(self, flow: FlowLike) -> bool:
        """Return whether `given` may return the elements of a flow when there is demand. Until then it does nothing."""
        ...

    def subscribe(
        self,
        flow: FlowLike,
        receiver: Receiver[Any],
        *,
        at_once: bool,
        ahead: bool = False,
        ended: Callable[[], None] | None = None,
        context: Context | None = None,
    ) -> None:
        """Subscribe to an inner flow in the same subscription, with signals on this event loop.

        With ``at_once`` it does what it can before the call returns, else in a scheduled callback. With ``ahead`` the
        receiver keeps what it asks for until it is wanted. ``ended`` is called, on whatever thread, when all that the
        flow has started has been cleaned up. The flow runs in ``context`` if one is given, which is not for ``at_once``,
        else in that of the subscriber.
        """


class View(Protocol):
    """The figures that a source shows in snapshots."""

    def show(self, gauge: Gauge) -> None:
        """Add to snapshots the elements that the source itself keeps and drops."""

    def show_tasks(self, tasks: Callable[[], TasksSnapshot]) -> None:
        """Add to snapshots how far the tasks are that make the elements; to be called from any thread."""


class Feed(Outlet[T], Host, Protocol[T]):
    """An outlet and a host, for machines that read flows and deliver the results."""


class Inlet(Feed[T], View, Protocol[T]):
    """The object by which a pushed source feeds its region; to be used on the region's event loop."""

    def discard_by(self, discard: Callable[[Iterable[Any]], None]) -> None:
        """Set the function that discards elements which the region gets and does not begin."""

    def after_end(self, call: Callable[[], None]) -> None:
        """Call something after the end of the region, and of each region around it that `is_transparent`."""


@frozen
class Elsewhere:
    """A region that no event loop runs, as plans show it."""

    place: str
    work: str
    boundary: str
    """The boundary after the region."""
    front: str = ""
    """The boundary in front of it, where it reads a flow."""


class Source(ABC, Generic[T_co]):
    """The source of the elements of a flow; a frozen attrs class."""

    __slots__ = ()

    passes_on: bool = False
    """Whether it reads one flow at a time, or is a part of one, and emits no more than was requested. A combinator then reads it without a region."""
    kind: ClassVar[Kind]
    """The one of the three kinds. To ask an abstract class by ``isinstance`` is slow, and each subscription asks."""
    capabilities: Capabilities = LOOP
    """The capabilities of the engine that makes the elements, after the source. An event loop runs every stage."""

    @property
    def name(self) -> str:
        """The name of the method that made the source, as plans and error notes show it."""
        return snake(type(self).__name__)

    @property
    def arguments(self) -> str:
        """The arguments of that method, as plans and error notes show them."""
        fields: tuple[Any, ...] = getattr(type(self), "__attrs_attrs__", ())
        return ", ".join(label(getattr(self, each.name)) for each in fields if each.repr)

    @property
    def at_hand(self) -> bool:
        """Whether it is pulled from a builtin collection, which runs no code of the user and knows its length."""
        return False

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows that a combinator reads, for plans."""
        return ()

    @property
    def followed(self) -> FlowLike | None:
        """The flow that a combinator was called on, and whose `publish_on` moves it; None where it stays apart."""
        inner = self.inner
        return inner[0] if inner else None

    @property
    def elsewhere(self) -> Elsewhere | None:
        """The place where the elements are made, if not in the region that they feed; for plans."""
        return None

    @property
    def crossing(self) -> str:
        """The boundary over which the region reads its one flow, where that is run apart from the region; for plans."""
        return ""

    @property
    def details(self) -> tuple[str, ...]:
        """Describe how they are made there. It is called only when a plan is shown, so it may take time."""
        return ()

    def lower(self, stage: Placed[Stage[Any, Any]]) -> Source[Any]:
        """Return this source with a stage run where the elements are made. Called only for stages in `capabilities`."""
        raise NotImplementedError(f"{self} has capabilities, and no lower()")

    def join(self, others: tuple[Source[Any], ...], method: str) -> Source[Any] | None:
        """Return one source for this and ``others``, read one after another by ``method``, or None."""
        return None

    @property
    def sequence(self) -> tuple[FlowLike, ...]:
        """The flows whose elements are those of this source, one flow after another, if they are few and fixed."""
        return ()

    def as_stage(self) -> Stage[Any, Any] | None:
        """Return the stage that does the same as this combinator, on an engine that can run it."""
        return None

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


class Pulled(Source[T_co]):
    """A source that is an iterator."""

    __slots__ = ()

    kind: ClassVar[Kind] = "pulled"

    @property
    def plain(self) -> bool:
        """Whether ``iterate`` runs only code of this library. If so, it may be called before any demand."""
        return self.at_hand

    @abstractmethod
    def iterate(self) -> Iterator[T_co]:
        """Return a fresh iterator; what this raises is signalled to the subscriber."""


class Awaited(Source[T_co]):
    """A source that is an async iterator: one task starts, advances and closes it, and the stages that follow are fused with it."""

    __slots__ = ()

    kind: ClassVar[Kind] = "awaited"
    single: bool = False
    """Whether it has one element, so that the end is known with the element. The iterator is closed after that end."""

    @abstractmethod
    def iterator(self, where: object) -> AsyncIterator[T_co]:
        """Return the iterator of a subscription.

        The ``str`` of ``where`` names the source and its line, for errors. Its errors are signalled to the subscriber.
        """


class Pushed(Source[T_co]):
    """A source that delivers on its own account, under demand."""

    __slots__ = ()

    kind: ClassVar[Kind] = "pushed"
    prefetch: int | None = None
    """Elements the source may have outstanding ahead of the region, or None where demand passes one for one."""
    is_told: bool = False
    """Whether a source with a prefetch gets a request for each element that is consumed; else for three quarters at a time."""
    is_transparent: bool = False
    """Whether it reads one flow, and passes on whatever comes, so that the end of the flow is the end of the region."""

    @abstractmethod
    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Start delivering to ``inlet`` on its event loop. ``request`` and ``cancel`` are called there too."""


class BufferReader(Protocol):
    """The one reader of a source that keeps its elements."""

    def on_ready(self) -> None:
        """Take elements, or the end: some may have come since the source was last asked."""
        ...


class Buffered(Pushed[T_co]):
    """A source that keeps its elements until its one reader takes them, such as a window or a group.

    It has no task, and no cleanup to wait for. So an awaited end of it needs no inlet and no driver: it is the reader itself.
    All calls are made on the event loop.
    """

    __slots__ = ()

    demand: int
    """The elements that its reader has requested and not got."""
    kept: list[Any] | deque[Any] | tuple[()]
    """The elements that are there."""
    ended: bool
    """Whether no elements follow the kept ones."""

    @abstractmethod
    def read_by(self, reader: BufferReader) -> None:
        """Begin to read, for the first time and the last."""

    @abstractmethod
    def request(self, n: int) -> bool:
        """Add to the demand. Return whether there is something to take, elements or the end."""

    @abstractmethod
    def take(self) -> list[T_co] | None:
        """Return kept elements, as far as there is demand. Return None if there are none."""

    @abstractmethod
    def finish(self) -> BaseException | None:
        """Take the end, when it has come and nothing is kept. Return the failure if it is one: `got` or `missed` follows then."""

    @abstractmethod
    def got(self) -> None:
        """Note that the failure that was taken is raised or signalled."""

    @abstractmethod
    def missed(self, error: BaseException, dropped: Callable[[BaseException], None]) -> None:
        """Note that nobody gets the failure that was taken. It goes to ``dropped`` if nobody else gets it."""

    @abstractmethod
    def leave(self, dropped: Callable[[BaseException], None]) -> None:
        """Read no more. Kept elements, and later ones, go to the hook. A failure that nobody else gets goes to ``dropped``."""
