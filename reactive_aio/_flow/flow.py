"""The flow: an immutable description of a stream. Its bases are the table of contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import frozen

from .._fusion import Placed, Stage, calling_line
from .._fusion.origin import Origin
from .._plan import LOOP, Nodes, PublishOn, Source, SubscribeOn, check_source, reads_nothing, scheduler_of
from ..operators import (
    Awaiting,
    Combining,
    Filtering,
    Flattening,
    Observing,
    Overflowing,
    Recovering,
    Scheduling,
    Sharing,
    Sourcing,
    Timing,
    Transforming,
    Windowing,
)
from ..operators.sourcing.iterable import Of
from .ends import Ends

if TYPE_CHECKING:
    from .._plan.describe import Style

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


@frozen(repr=False, eq=False, init=False)
class Flow(
    Sourcing[T_co],
    Transforming[T_co],
    Flattening[T_co],
    Awaiting[T_co],
    Filtering[T_co],
    Combining[T_co],
    Windowing[T_co],
    Recovering[T_co],
    Observing[T_co],
    Timing[T_co],
    Scheduling[T_co],
    Sharing[T_co],
    Overflowing[T_co],
    Ends[T_co],
):
    """An immutable, lazy description of a stream of elements of type ``T_co``.

    Chaining an operator returns a new flow and runs nothing. A flow can be subscribed to any number of times. It is a
    Publisher in the sense of Reactive Streams.

    >>> from reactive_aio import Flow
    >>> Flow.range(10).filter(lambda n: n % 3 == 0).map(str).take(2).run_sync()
    ['0', '3']
    """

    __nodes__: Nodes
    if TYPE_CHECKING:

        @property
        def __given__(self) -> tuple[Any, ...] | None:
            """The elements of a flow of given ones that no operator follows; None for all others."""
    else:
        __given__ = None  # in the place of a call, since each inner flow is asked

    def __init__(self, nodes: Nodes) -> None:
        if not isinstance(nodes, Nodes):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(
                f"Flow(...) can't be made of {type(nodes).__name__}. Write Flow.of(1, 2), "
                "Flow.from_iterable([1, 2]) or another source"
            )
        _set_nodes(self, nodes)

    @classmethod
    def _begin(cls, source: Source[U]) -> Flow[U]:
        """Return the flow of a source."""
        placed, capabilities = Placed(source, calling_line(3)), source.capabilities
        if capabilities is not LOOP:
            check_source(placed)
        scheduler = None if reads_nothing(type(source)) else scheduler_of(source, ())
        flow: Flow[U] = _new(Flow)
        _set_nodes(flow, Nodes(placed, (), capabilities, scheduler))
        return flow

    @classmethod
    def _given(cls, items: tuple[U, ...]) -> Flow[U]:
        """Return the flow of given elements."""
        flow: Flow[U] = _new(GivenFlow)
        _set_given(flow, items)
        _set_origin(flow, calling_line(3))
        return flow

    def then(self, stage: Stage[T_co, U]) -> Flow[U]:
        """Return this flow followed by a synchronous operator, of the library or your own.

        Demand: the ``demand`` of the stage, by default one for one. The end comes with the last element if ``pending``
        of the stage is False. Else it comes when one more element is requested.
        Errors: exceptions of the stage. An argument that is not a stage is refused with TypeError when the flow is
        built.
        (RxJava: ``lift``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.extend import Stage
        >>> class Doubled(Stage[int, int]):
        ...     def apply(self, items):
        ...         for item in items:
        ...             yield 2 * item
        >>> Flow.range(3).then(Doubled()).run_sync()
        [0, 2, 4]
        """
        if not isinstance(stage, Stage):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"then() takes a stage, not {type(stage).__name__}. For a function use map() or through()")
        return Flow(self.__nodes__.then(Placed(stage, calling_line(2))))

    def _place(self, mark: PublishOn | SubscribeOn) -> Flow[T_co]:
        """Return this flow with a boundary or a placement."""
        return Flow(self.__nodes__.then(Placed(mark, calling_line(2))))

    def _as_flow(self) -> Flow[T_co]:
        """Return this object, typed as a Flow."""
        return self

    def describe(self, style: Style = "table", *, end: str = "", rewrites: bool = False) -> str:
        """Return the plan as text: the regions, where each runs, its fused operators, and the buffers of boundaries.

        ``style="line"`` draws it as the specification does: ``|`` for a boundary, ``R#`` for a resource. ``end`` names
        what consumes the flow. It is not part of the flow, and is shown only if you name it. The same goes for the
        boundary by which an awaited end reads elements from another loop, 256 ahead. With ``rewrites=True`` the flow
        comes first as it was built, and then as it has been rewritten for the engine that runs it. A stage may be run
        on Spark, or in parts.

        >>> from reactive_aio import Flow, schedulers
        >>> flow = Flow.range(9).map(str).publish_on(schedulers.thread("writer"), prefetch=16).take(3)
        >>> print(flow.describe())
        R1  the subscriber's loop   range(0, 9) -> map(str)
         |  boundary, prefetch 16
        R2  thread('writer')        take(3)
        >>> print(flow.describe("line", end="for_each(print)"))
        range(0, 9) map(str) | take(3)  | for_each(print)
        -------- R1 -------- | -- R2 -- | ----- R3 ------
        R1 the subscriber's loop
        R2 thread('writer'), boundary, prefetch 16
        R3 the subscriber's loop, boundary, prefetch 256
        """
        from .._plan.describe import describe

        return describe(self, style, end, rewrites=rewrites)

    def diagram(self, *, end: str = "") -> str:
        """Return the plan as the text of an SVG picture. A notebook shows the picture of a flow itself.

        ``end`` names what consumes the flow, so that it is shown too, with the boundary in front of it.

        >>> from reactive_aio import Flow
        >>> Flow.range(9).map(str).diagram()[:5]
        '<svg '
        """
        from .._plan.layout import layout
        from .._plan.svg import draw

        return draw(layout(self, end))

    def _repr_svg_(self) -> str:
        """Show the diagram in a notebook."""
        return self.diagram()

    def __repr__(self) -> str:
        return f"Flow.{self.__nodes__}"


class GivenFlow(Flow[T_co]):
    """A flow of given elements, made by ``Flow.of``.

    It makes its nodes when they are asked for. A service makes many such flows for a combinator, which takes the elements and asks for no nodes.
    """

    __slots__ = ("__given__", "_origin")  # pyright: ignore[reportIncompatibleMethodOverride] - it is only read

    if TYPE_CHECKING:
        _origin: Origin

    @property
    def __nodes__(self) -> Nodes:  # pyright: ignore[reportIncompatibleVariableOverride] - nobody sets it
        try:
            return _get_nodes(self)
        except AttributeError:  # for the first time
            _set_nodes(self, Nodes(Placed(Of(_get_given(self)), self._origin), (), LOOP, None))
            return _get_nodes(self)

    def __reduce__(self) -> tuple[type[Flow[T_co]], tuple[Nodes]]:
        """Copy and pickle it as a flow of its nodes."""
        return Flow, (self.__nodes__,)


def flow_of(source: Source[U]) -> Flow[U]:
    """Return a flow that begins with your own source. An argument that is not a source is refused with TypeError.

    >>> from attrs import frozen
    >>> from reactive_aio.extend import Pulled, flow_of
    >>> @frozen
    ... class Letters(Pulled[str]):
    ...     word: str
    ...     def iterate(self):
    ...         return iter(self.word)
    >>> flow_of(Letters("abc")).take(2).run_sync()
    ['a', 'b']
    """
    if not isinstance(source, Source):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
        raise TypeError(f"flow_of() takes a source, not {type(source).__name__}. For elements use Flow.from_iterable()")
    begin = Flow[Any]._begin  # pyright: ignore[reportPrivateUsage] - of the same module
    return begin(source)


GivenFlow.__name__ = GivenFlow.__qualname__ = Flow.__name__  # for errors that name a type
_new: Final[Callable[[type[Any]], Any]] = object.__new__
_get_nodes: Final[Callable[[Flow[Any]], Nodes]] = vars(Flow)["__nodes__"].__get__
_set_nodes: Final[Callable[[Flow[Any], Nodes], None]] = vars(Flow)["__nodes__"].__set__
_get_given: Final[Callable[[Flow[Any]], tuple[Any, ...]]] = vars(GivenFlow)["__given__"].__get__
_set_given: Final[Callable[[Flow[Any], tuple[Any, ...]], None]] = vars(GivenFlow)["__given__"].__set__
_set_origin: Final[Callable[[Flow[Any], Origin], None]] = vars(GivenFlow)["_origin"].__set__
