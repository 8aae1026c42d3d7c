"""A flow with operators that work on each key separately."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeGuard, TypeVar, overload

from attrs import evolve, frozen

from .._core.missing import MISSING
from .._fusion import calling_line
from ..operators._fluent import check_count, check_flag, check_function, check_seconds
from ..operators.folding.fold import Count, Fold, Reduce
from ..operators.folding.ranking import TopK
from ..operators.windowing.by_key import GroupByKey
from ..operators.windowing.join import HOWS, LEFT, RIGHT, Join, JoinByKey, OnSide
from .flow import Flow

if TYPE_CHECKING:
    from typing_extensions import TypeIs

K_co = TypeVar("K_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
U = TypeVar("U")
V = TypeVar("V")


@frozen(repr=False, eq=False)
class KeyedFlow(Generic[K_co, T_co]):
    """The result of ``Flow.group_by_key``: operators that work on the elements of each key as on a flow of its own.

    ``pairs``, ``count``, ``fold``, ``reduce`` and ``join`` return a flow of pairs ``(key, value)``. On the event loop a
    value comes as soon as its key has it. On Spark the keys come one after another, in no order.
    Demand: elements of the flow are requested one at a time, until the operators emit one. Each key keeps the state of
    its operators.
    Errors: those of the functions, with a note that names the operator and the key. The operators refuse the same
    arguments as those of a ``Flow``.
    (Spark: ``KeyValueGroupedDataset``; Flink: ``KeyedStream``.)

    >>> from reactive_aio import Flow
    >>> words = Flow.of("ant", "bee", "asp", "bug", "ape").group_by_key(lambda word: word[0])
    >>> words.filter(lambda word: word > "b").map(len).pairs().run_sync()
    [('b', 3), ('b', 3)]
    """

    _flow: Flow[Any]
    _stage: GroupByKey
    _chain: Flow[T_co]
    """The operators for each key, after a source that stands for its elements."""

    def __repr__(self) -> str:
        return f"{self._flow!r}.{self._grouped}"

    def map(self, fn: Callable[[T_co], U]) -> KeyedFlow[K_co, U]:
        """Apply ``fn`` to each element, as ``Flow.map`` does."""
        return self._with(self._chain.map(fn))

    @overload
    def filter(self, predicate: Callable[[T_co], TypeGuard[U]]) -> KeyedFlow[K_co, U]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], TypeIs[U]]) -> KeyedFlow[K_co, U]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], object]) -> KeyedFlow[K_co, T_co]: ...
    def filter(self, predicate: Callable[[T_co], object]) -> KeyedFlow[K_co, Any]:
        """Keep the elements for which ``predicate`` is true, as ``Flow.filter`` does."""
        return self._with(self._chain.filter(predicate))

    @overload
    def scan(self, fn: Callable[[T_co, T_co], T_co]) -> KeyedFlow[K_co, T_co]: ...
    @overload
    def scan(self, fn: Callable[[A, T_co], A], initial: A) -> KeyedFlow[K_co, A]: ...
    def scan(self, fn: Callable[[Any, T_co], Any], initial: Any = MISSING) -> KeyedFlow[K_co, Any]:
        """Emit every intermediate value of a reduction, ``initial`` first if given, as ``Flow.scan`` does.

        All keys begin with the same ``initial``, so ``fn`` must return a new value and not change it.

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 2, 3, 4).group_by_key(lambda n: n % 2).scan(max).pairs().run_sync()
        [(1, 1), (0, 2), (1, 3), (0, 4)]
        """
        return self._with(self._chain.scan(fn, initial))

    def pairwise(self) -> KeyedFlow[K_co, tuple[T_co, T_co]]:
        """Emit each element with the one before it, as ``Flow.pairwise`` does."""
        return self._with(self._chain.pairwise())

    def buffer(self, size: int) -> KeyedFlow[K_co, list[T_co]]:
        """Emit lists of ``size`` elements, as ``Flow.buffer`` does. The last list of a key may be shorter."""
        return self._with(self._chain.buffer(size))

    def buffer_until_changed(
        self, key: Callable[[T_co], Any] | None = None, *, max_size: int = 65_536
    ) -> KeyedFlow[K_co, list[T_co]]:
        """Emit lists of elements that follow each other and are equal, as ``Flow.buffer_until_changed`` does."""
        return self._with(self._chain.buffer_until_changed(key, max_size=max_size))

    def take(self, n: int) -> KeyedFlow[K_co, T_co]:
        """Keep the first ``n`` elements of each key. The others are still read."""
        return self._with(self._chain.take(n))

    def top_k(self, k: int, *, key: Callable[[T_co], Any] | None = None) -> KeyedFlow[K_co, list[T_co]]:
        """Emit a list of the ``k`` greatest elements of each key, the greatest first, as ``Flow.top_k`` does.

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 2, 3, 4, 5).group_by_key(lambda n: n % 2).top_k(2).pairs().run_sync()
        [(1, [5, 3]), (0, [4, 2])]
        """
        check_count("top_k", "k", k, 0)
        if key is not None:
            check_function("top_k", key, "an ordinary function is needed")
        return self._with(self._chain.then(TopK(k, key)))

    def count(self) -> Flow[tuple[K_co, int]]:
        """Emit the number of elements of each key."""
        return self._with(self._chain.then(Count())).pairs()

    def fold(self, fn: Callable[[A, T_co], A], initial: A, *, any_order: bool = False) -> Flow[tuple[K_co, A]]:
        """Combine the elements of each key into one value, from the left, beginning with ``initial``.

        All keys begin with the same ``initial``, so ``fn`` must return a new value and not change it. Pass
        ``any_order=True`` if the order of the elements makes no difference. Then Spark needs no ``order_by``.

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 2, 3, 4).group_by_key(lambda n: n % 2).fold(lambda total, n: total + n, 10).run_sync()
        [(1, 14), (0, 16)]
        """
        return self._folded(Fold(fn, initial), any_order)

    def reduce(self, fn: Callable[[T_co, T_co], T_co], *, any_order: bool = False) -> Flow[tuple[K_co, T_co]]:
        """Combine the elements of each key into one of them, from the left, beginning with the first.

        See ``fold`` for ``any_order``.
        """
        return self._folded(Reduce(fn), any_order)

    def pairs(self) -> Flow[tuple[K_co, T_co]]:
        """Emit the results of the operators as a flow of pairs ``(key, value)``."""
        return self._flow.then(self._grouped)

    @overload
    def join(
        self,
        other: KeyedFlow[Any, V],
        *,
        how: Literal["inner"] = "inner",
        within: float | None = None,
        max_size: int = 65_536,
    ) -> Flow[tuple[K_co, tuple[T_co, V]]]: ...
    @overload
    def join(
        self, other: KeyedFlow[Any, V], *, how: Literal["left"], within: float | None = None, max_size: int = 65_536
    ) -> Flow[tuple[K_co, tuple[T_co, V | None]]]: ...
    @overload
    def join(
        self, other: KeyedFlow[Any, V], *, how: Literal["outer"], within: float | None = None, max_size: int = 65_536
    ) -> Flow[tuple[K_co, tuple[T_co | None, V | None]]]: ...
    def join(
        self, other: KeyedFlow[Any, V], *, how: str = "inner", within: float | None = None, max_size: int = 65_536
    ) -> Flow[tuple[K_co, Any]]:
        """Emit ``(key, (element, other element))`` for each pair of elements with the same key.

        With ``how="left"`` an element without a partner comes with None. With ``"outer"`` so do elements of ``other``.
        The join reads ``other`` to its end first, and holds its elements: at most ``max_size`` of a key. Then it reads
        this flow, and pairs each element with the held ones of its key. The operators of both sides run before that.

        With ``within`` the join reads both flows at the same time, so both may be endless. Two elements of a key are a
        pair if they arrive at most ``within`` seconds apart, by the clock of the event loop. A pair is emitted as soon
        as both are there. An element without a partner is emitted with None when its time is over, or when the other flow
        has ended. The join holds each element for that time: at most ``max_size`` of both flows together. Operators
        other than ``map`` and ``filter`` keep their state for each key, up to ``max_keys``.
        Demand: elements are requested one at a time, first from ``other`` to its end, then from this flow. With
        ``within``, 32 elements of each flow are requested at once, and more as they are taken. Without demand none is taken.
        However late an element is taken, it has the same partners.
        Errors: LimitExceededError for more than ``max_size`` elements of one key in ``other``, and for too many keys. The join
        counts the keys of both flows together. Its limit is the larger ``max_keys`` of the two calls of ``group_by_key``.
        With ``within``, LimitExceededError for more than ``max_size`` held elements. A failure of either flow then comes
        after the elements that arrived before it. Another object than a KeyedFlow is refused with TypeError, and another ``how`` with ValueError. So is
        ``within`` if it is not above 0, or if a flow has an ``order_by``, which waits for the end of the flow.
        Spark: if both flows are on Spark, both are shuffled by key in one plan. A task holds the elements of ``other``
        for one key at a time. For a small table Spark's own join is faster: ``flow.to_frame(...).join(broadcast(table),
        ...)``. A join with ``within`` is on the event loop, and ``to_frame`` refuses it.
        (Spark: ``RDD.join``; SQL: ``JOIN``; Kafka Streams: a join of a stream and a table, with ``within`` of two
        streams; Flink: an interval join.)

        >>> from reactive_aio import Flow
        >>> names = Flow.of((1, "ann"), (2, "bob")).group_by_key(lambda name: name[0])
        >>> orders = Flow.of((2, "tea"), (3, "ale"), (2, "rum")).group_by_key(lambda order: order[0])
        >>> joined = orders.map(lambda order: order[1]).join(names.map(lambda name: name[1]), how="left")
        >>> joined.run_sync()
        [(2, ('tea', 'bob')), (3, ('ale', None)), (2, ('rum', 'bob'))]
        >>> paid = Flow.of((2, 4.5)).group_by_key(lambda payment: payment[0]).map(lambda payment: payment[1])
        >>> orders.map(lambda order: order[1]).join(paid, within=60.0).run_sync()
        [(2, ('tea', 4.5)), (2, ('rum', 4.5))]
        """
        given: Any = other
        if not isinstance(given, KeyedFlow):
            raise TypeError(
                f"join() takes the result of group_by_key(), not {type(given).__name__}. Write other.group_by_key(...)"
            )
        if how not in HOWS:
            raise ValueError(f"join(how={how!r}): choose one of {', '.join(map(repr, HOWS))}")
        check_count("join", "max_size", max_size, 1)
        if within is not None:
            return self._join_within(other, within, how, max_size)
        stage = JoinByKey.of(self._grouped, other._grouped, how, max_size, calling_line())
        source = Join((other._flow.then(OnSide(RIGHT)), self._flow.then(OnSide(LEFT))))
        both: Flow[Any] = Flow._begin(source)  # pyright: ignore[reportPrivateUsage] - it is of the same package
        return both.then(stage)

    def _join_within(
        self, other: KeyedFlow[Any, Any], within: float, how: str, max_size: int
    ) -> Flow[tuple[K_co, Any]]:
        from ..operators.windowing.join_within import InPassing, JoinWithin

        check_seconds("join", "within", within, above=True)
        if any(keyed._stage.order_by is not None for keyed in (self, other)):
            raise ValueError(
                "join(within=...) pairs elements as they come, but group_by_key(order_by=...) holds them until its flow has "
                "ended. Leave out one of the two"
            )
        right, left = (keyed._flow.then(InPassing.of(keyed._grouped)) for keyed in (other, self))
        return Flow._begin(JoinWithin((right, left), within, how, max_size))  # pyright: ignore[reportPrivateUsage] - it is of the same package

    if not TYPE_CHECKING:  # a checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            hint = f". Call pairs() first: .pairs().{name}" if hasattr(Flow, name) else ""
            raise AttributeError(f"KeyedFlow has no attribute {name!r}{hint}", name=name, obj=self)

    @property
    def _grouped(self) -> GroupByKey:
        steps: Any = self._chain.__nodes__.steps  # stages, since there is no method for a boundary
        return evolve(self._stage, steps=steps)

    def _folded(self, stage: Reduce[T_co], any_order: bool) -> Flow[tuple[K_co, Any]]:
        check_function(stage.name, stage.fn, "combine with an ordinary function")
        check_flag(stage.name, "any_order", any_order)
        made: KeyedFlow[K_co, Any] = self._with(self._chain.then(stage))
        return evolve(made, stage=evolve(self._stage, any_order=any_order)).pairs()

    def _with(self, chain: Flow[U]) -> KeyedFlow[K_co, U]:
        return KeyedFlow(self._flow, self._stage, chain)
