"""Operators that gather elements into groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from ..._fusion import calling_line
from ..._plan import Pushed
from .._fluent import MOST_PARTITIONS, Fluent, check_count, check_function, check_seconds

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from ..._flow.grouped import GroupedFlow
    from ..._flow.keyed import KeyedFlow

T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K", bound=Hashable)


class Windowing(Fluent[T_co]):
    """Operators that gather elements into groups."""

    __slots__ = ()

    def buffer(self, size: int) -> Flow[list[T_co]]:
        """Emit lists of ``size`` elements. The last list may be shorter.

        Demand: ``size`` elements are requested for each requested list. Fewer than ``size`` are held.
        Errors: when the source fails, the elements of an unfinished list go to ``hooks.on_discard``, as they do on
        cancel. ``size`` below 1 is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``buffer``; Pekko: ``grouped``; the builtin ``itertools.batched``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).buffer(2).run_sync()
        [[0, 1], [2, 3], [4]]
        """
        from .buffer import Buffer

        check_count("buffer", "size", size, 1)
        return self.then(Buffer[T_co](size))

    def buffer_timeout(self, size: int, seconds: float) -> Flow[list[T_co]]:
        """Emit a list when it has ``size`` elements, or ``seconds`` after its first element.

        A list waits if there is no demand when its time is up. Meanwhile more elements go into it. So there are never
        more lists than were requested, and nothing overflows.
        Demand: ``size`` elements are requested when lists are requested. At most ``size`` are outstanding and held,
        also for a demand of several lists.
        Errors: when the source fails, a list whose time is not up goes to ``hooks.on_discard``, as it does on cancel. A
        list that waits is emitted first. A ``size`` below 1, and seconds that are not above 0, are refused with
        ValueError when the flow is built.
        (Reactor: ``bufferTimeout`` with ``fairBackpressure``; RxJava: ``buffer``; Pekko: ``groupedWithin``; RxPY:
        ``bufferWithTimeOrCount``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import from_marbles, run_virtual
        >>> run_virtual(from_marbles("abc-d------e|").buffer_timeout(3, 5.0).to_list())
        [['a', 'b', 'c'], ['d'], ['e']]
        """
        from .buffer_timeout import BufferTimeout

        check_count("buffer_timeout", "size", size, 1)
        check_seconds("buffer_timeout", "seconds", seconds, above=True)
        return self._begin(BufferTimeout[T_co](self._as_flow(), size, seconds))

    def sliding(self, size: int, *, step: int = 1) -> Flow[list[T_co]]:
        """Emit lists of ``size`` elements, each beginning ``step`` elements after the one before.

        With a ``step`` below ``size`` the lists overlap. With a ``step`` above it, elements between them are left out.
        A list is emitted when it is full. Elements that fill no list are dropped.
        Demand: enough for the requested lists and the elements between them. The latest ``size`` elements are kept.
        Errors: elements that have been in no list when the flow ends, fails or is cancelled go to
        ``hooks.on_discard``. A ``size`` or ``step`` below 1 is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Pekko: ``sliding``; Reactor, RxJava: ``buffer(maxSize, skip)``, which also emit the last, shorter list.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).sliding(3).run_sync()
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        >>> Flow.range(5).sliding(1, step=2).run_sync()
        [[0], [2], [4]]
        """
        from .sliding import Sliding

        check_count("sliding", "size", size, 1)
        check_count("sliding", "step", step, 1)
        return self.then(Sliding[T_co](size, step))

    def buffer_until_changed(
        self, key: Callable[[T_co], Any] | None = None, *, max_size: int = 65_536
    ) -> Flow[list[T_co]]:
        """Emit lists of consecutive equal elements, compared by themselves or by their ``key``.

        Demand: elements are requested one at a time until one differs. That element is kept for the next list. One list
        of at most ``max_size`` elements is held.
        Errors: LimitExceededError when a list would have more elements; an exception of ``key``. A failure of the flow
        comes after the lists that were full before it, without further demand. Elements that are held then, or at a
        cancel, go to ``hooks.on_discard``. A ``max_size`` below 1 and an ``async def`` are refused when the flow is
        built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor: ``bufferUntilChanged``; the builtin ``itertools.groupby``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 3, 4, 6, 7).buffer_until_changed(lambda n: n % 2).run_sync()
        [[1, 3], [4, 6], [7]]
        """
        from .buffer_until_changed import BufferUntilChanged

        if key is not None:
            check_function("buffer_until_changed", key, "an ordinary function is needed")
        check_count("buffer_until_changed", "max_size", max_size, 1)
        return self.then(BufferUntilChanged[T_co](key, max_size))

    def window(self, size: int) -> Flow[Flow[T_co]]:
        """Emit flows of ``size`` elements each, one after another. The last flow may be shorter.

        A window is emitted with its first element. It keeps its elements until they are read, so the next window can come
        before this one is read. A window can be subscribed to once, from any event loop.
        Demand: ``size`` elements are requested for each requested window. At most ``size`` are kept for each window.
        Errors: a failure of this flow ends the flow of windows, and the open window after its elements.
        SourceConsumedError for a second subscription to a window. The elements of a window that nobody reads go to
        ``hooks.on_discard`` when the window is garbage. On cancel a window that is being read goes on to its end. An
        unread window that is not full fails with SourceCancelledError. A ``size`` below 1 is refused with ValueError
        when the flow is built.
        (Reactor, RxJava: ``window``; RxPY: ``window_with_count``; Mutiny: ``group().intoMultis()``.)

        >>> from reactive_aio import Flow
        >>> import asyncio
        >>> async def sums():
        ...     return [await window.sum() async for window in Flow.range(5).window(2)]
        >>> asyncio.run(sums())
        [1, 5, 4]
        """
        from .window import Window

        check_count("window", "size", size, 1)
        source: Pushed[Flow[T_co]] = Window(self._as_flow(), size, calling_line())
        return self._begin(source)

    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        max_groups: int = 256,
        prefetch: int = 256,
        stall_after: float = 10.0,
    ) -> Flow[GroupedFlow[K, T_co]]:
        """Emit a flow for each key, with its elements. The attribute ``key`` of the flow is the key.

        A group is emitted when its first element has come. It can be subscribed to once, from any event loop. When its
        reader cancels it, the next element of its key begins another group.
        Demand: ``prefetch`` elements are asked for at once, and more when three quarters of them have been read. All groups
        together keep at most ``prefetch`` elements. So a group that nobody reads can hold up the others, since its
        elements fill the prefetch. When nothing has moved for ``stall_after`` seconds, the flow fails with StalledError
        instead of hanging. Read as many groups at a time as there are keys.
        Errors: LimitExceededError when more than ``max_groups`` groups would be open at a time. SourceConsumedError for
        a second subscription to a group. A failure of this flow, or of ``key``, fails the groups too, after their
        elements. The elements of a group that nobody reads go to ``hooks.on_discard`` when the group is garbage. On
        cancel groups that are being read go on, and the others fail with SourceCancelledError. An ``async def`` and
        numbers below 1 are refused when the flow is built.
        (Reactor, RxJava, Pekko: ``groupBy``; RxPY: ``group_by``; Mutiny: ``group().by()``.)

        >>> from reactive_aio import Flow
        >>> import asyncio
        >>> async def lengths():
        ...     async with asyncio.TaskGroup() as tasks:
        ...         words = Flow.of("ant", "bee", "asp", "bug", "ape").group_by(lambda word: word[0])
        ...         counts = [(group.key, tasks.create_task(group.count())) async for group in words]
        ...     return [(key, count.result()) for key, count in counts]
        >>> asyncio.run(lengths())
        [('a', 3), ('b', 2)]
        """
        from .group_by import GroupBy

        check_function("group_by", key, "an ordinary function is needed")
        check_count("group_by", "max_groups", max_groups, 1)
        check_count("group_by", "prefetch", prefetch, 1)
        check_seconds("group_by", "stall_after", stall_after, above=True)
        source: Pushed[GroupedFlow[K, T_co]] = GroupBy(
            self._as_flow(), key, max_groups, prefetch, stall_after, calling_line()
        )
        return self._begin(source)

    def group_by_key(
        self,
        key: Callable[[T_co], K],
        *,
        order_by: Callable[[T_co], Any] | None = None,
        max_keys: int = 65_536,
        max_size: int = 65_536,
        partitions: int | None = None,
    ) -> KeyedFlow[K, T_co]:
        """Return operators that work on the elements of each ``key`` as on a flow of its own.

        They run where the elements are, and emit pairs ``(key, value)`` as values arrive. Only the state of the
        operators is kept for a key. With ``order_by`` the elements of each key are sorted first, by the value that the
        function returns. This is a number, text, bytes, a date, a time, None or a tuple of these. A key may be anything
        that can be hashed. Any NaN equals any other.
        Demand: one element after another. With ``order_by`` all elements are kept until the flow ends.
        Errors: LimitExceededError for a key beyond ``max_keys``, and with ``order_by`` for an element beyond
        ``max_size`` of one key. TypeError for a value that can't be put in order. When the flow fails or is cancelled,
        the elements that the operators hold go to ``hooks.on_discard``. An ``async def`` and numbers below 1 are
        refused when the flow is built.
        Spark: the elements are shuffled by key and sorted there, and the same operators run in the workers. There is no
        limit of keys and sizes. ``partitions`` is the number of partitions of the shuffle. By default Spark
        chooses it. A join takes the larger number of its two sides. Keys are of the types that
        ``order_by`` may return. Operators that depend on the order of the elements need ``order_by``. Without it the
        error names the refused operator. Elements with equal values of ``order_by`` come in any order.
        (Spark: ``repartitionAndSortWithinPartitions``; Kafka Streams: ``groupByKey``; Flink: ``keyBy``.)

        >>> from reactive_aio import Flow
        >>> words = Flow.of("ant", "bee", "asp", "bug", "ape")
        >>> words.group_by_key(lambda word: word[0]).count().run_sync()
        [('a', 3), ('b', 2)]
        >>> words.group_by_key(len, order_by=str).pairwise().pairs().take(2).run_sync()
        [(3, ('ant', 'ape')), (3, ('ape', 'asp'))]
        """
        from ..._flow.keyed import KeyedFlow
        from .by_key import GroupByKey

        check_function("group_by_key", key, "an ordinary function is needed")
        if order_by is not None:
            check_function("group_by_key", order_by, "an ordinary function is needed")
        check_count("group_by_key", "max_keys", max_keys, 1)
        check_count("group_by_key", "max_size", max_size, 1)
        if partitions is not None:
            check_count("group_by_key", "partitions", partitions, 1, MOST_PARTITIONS)
        stage = GroupByKey(key, order_by, max_keys, max_size, calling_line(), partitions=partitions)
        flow = self._as_flow()
        return KeyedFlow(flow, stage, flow.empty())
