"""The methods for sources by a function of the user, or by the clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from inspect import isasyncgenfunction, iscoroutine
from typing import TYPE_CHECKING, TypeVar

from ..._fusion import label
from .._fluent import Fluent, check_count, check_function, check_seconds

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from .poll import Poll

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
S = TypeVar("S")
U = TypeVar("U")


class Computed(Fluent[T_co]):
    """Flows by a function or by the clock."""

    __slots__ = ()

    @classmethod
    def from_awaitable(cls, factory: Callable[[], Awaitable[U]]) -> Flow[U]:
        """Emit the result of ``await factory()``, anew for each subscription.

        Demand: the first request calls ``factory``, and one task awaits the result. The flow completes with the
        element.
        Errors: exceptions of ``factory``. A coroutine, task or future is refused with TypeError when the flow is built,
        because its result serves one subscription, or is the same for all.
        Cancel: the task is cancelled. A terminal returns when it has ended.
        (Reactor: ``fromFuture``; RxJava: ``fromCompletionStage``; RxPY: ``from_future``; Pekko: ``lazyFuture``.)

        >>> from reactive_aio import Flow
        >>> async def load(name: str) -> str:
        ...     return f"contents of {name}"
        >>> Flow.from_awaitable(lambda: load("a")).run_sync()
        ['contents of a']
        """
        from .awaitable import FromAwaitable

        if not callable(factory):
            if iscoroutine(factory):
                factory.close()  # else Python warns of it besides
            raise TypeError(
                f"from_awaitable() takes a function that returns an awaitable, not a {type(factory).__name__}. "
                "Write from_awaitable(lambda: ...) to make an awaitable for each subscription"
            )
        return cls._begin(FromAwaitable(factory))

    @classmethod
    def from_callable(cls, fn: Callable[[], U]) -> Flow[U]:
        """Emit the result of ``fn()``, anew for each subscription.

        Demand: the first request calls ``fn``. The flow completes with the element.
        Errors: what ``fn`` raises. An ``async def`` is refused with TypeError when the flow is built.
        Scheduling: in the region of the source, so that ``subscribe_on`` moves a blocking function to a thread.
        (Reactor, RxJava, RxPY: ``fromCallable``; Pekko: ``lazySingle``.)

        >>> import random
        >>> from reactive_aio import Flow
        >>> dice = Flow.from_callable(lambda: random.randint(1, 6)).repeat(3)
        >>> all(1 <= n <= 6 for n in dice.run_sync())
        True
        """
        from .awaitable import FromCallable

        check_function("from_callable", fn, "use Flow.from_awaitable")
        return cls._begin(FromCallable(fn))

    @classmethod
    def generate(cls, step: Callable[[S], tuple[U, S] | None], initial: S) -> Flow[U]:
        """Emit an element for each state from ``initial`` on: ``step(state)`` returns ``(item, next_state)``, or None.

        Each subscription begins with the same ``initial``. So ``step`` must not change it: use a number or a tuple.

        Demand: one step is taken for each requested element. The end is known when one more is requested.
        Errors: exceptions of ``step``, and TypeError if it returns neither a pair nor None. An ``async def`` is refused
        with TypeError when the flow is built.
        (Reactor, RxJava, RxPY: ``generate``; Pekko: ``unfold``.)

        >>> from reactive_aio import Flow
        >>> Flow.generate(lambda pair: (pair[0], (pair[1], sum(pair))), (0, 1)).take(9).run_sync()
        [0, 1, 1, 2, 3, 5, 8, 13, 21]
        >>> Flow.generate(lambda n: (n, 3 * n) if n < 99 else None, 1).run_sync()
        [1, 3, 9, 27, 81]
        """
        from .generate import Generate

        check_function("generate", step, "use Flow.from_async_iterable with an async generator")
        return cls._begin(Generate[U](step, initial))

    @classmethod
    def using(
        cls,
        resource: Callable[[], AbstractContextManager[R] | AbstractAsyncContextManager[R]],
        fn: Callable[[R], Flow[U]],
    ) -> Flow[U]:
        """Emit the elements of the flow that ``fn`` makes of a resource. The resource is open until the flow has ended.

        ``resource()`` returns a context manager, async or ordinary. It is entered for each subscription, and left when
        the flow has ended and has been cleaned up. It sees a failure of the flow, and a cancel as CancelledError, so it
        can roll a transaction back. One task enters and leaves it. The operators that follow may then still process the
        last elements. So put an operator that needs the resource into the flow that ``fn`` makes.

        Demand: passed on one for one. The resource is entered with the subscription, before any demand.
        Errors: those of the flow, when the resource has been left, or the exception of the context manager instead. If
        it suppresses a failure, the flow completes. An ``async def`` is refused with TypeError when the flow is built.
        Cancel: cancels the flow, then leaves the resource. A terminal returns after that.
        (Reactor: ``usingWhen``; RxJava, RxPY: ``using``; Pekko: ``unfoldResourceAsync``.)

        >>> from contextlib import contextmanager
        >>> from reactive_aio import Flow
        >>> @contextmanager
        ... def library():
        ...     print("open")
        ...     yield ["a", "b"]
        ...     print("close")
        >>> Flow.using(library, Flow.from_iterable).run_sync()
        open
        close
        ['a', 'b']
        """
        from .using import Using

        if not isinstance(resource, type) and (hasattr(resource, "__enter__") or hasattr(resource, "__aenter__")):
            raise TypeError(
                "using() takes a function that returns a context manager, not a context manager. "
                "Write using(lambda: ..., fn) to make one for each subscription"
            )
        check_function("using", resource, "return an async context manager, and await in its __aenter__()")
        check_function("using", fn, "return the flow from an ordinary function")
        return cls._begin(Using[U](resource, fn))

    @classmethod
    def from_poll(
        cls, open: Callable[[], AbstractAsyncContextManager[Poll[U]]], *, max_batch: int = 256, heartbeat: float = 1.0
    ) -> Flow[U]:
        """Emit the elements of a client that is polled for a number of them: a queue, a cursor, a broker.

        ``open()`` returns an async context manager, which is entered for each subscription. Its value is a ``Poll``.
        ``await poll.fetch(n)`` returns a sequence of up to ``n`` elements. An empty one means that there is nothing
        yet. It is called again after a turn of the event loop, so let it wait for a while, as in long polling.
        StopAsyncIteration is the end, as of an iterator. ``await poll.idle()`` is called after ``heartbeat`` seconds
        without a request, to keep a connection alive. ``await poll.close()`` is called once, before the context manager
        is left.
        All calls are made in one task and one context, one after another.

        Demand: the first request calls ``open``. ``fetch`` is called for the requested number, and at most
        ``max_batch``. Nothing is buffered. The end is known when one more element is requested.
        Errors: exceptions of these calls. An error of ``close`` after another error becomes a note on it. If the
        context manager suppresses a failure, the flow completes. ValueError for more elements than were requested,
        TypeError for a result that is not a sequence, such as a str. A ``max_batch`` below 1 and a ``heartbeat`` that
        is not above 0 are refused with ValueError, an ``async def`` with TypeError, when the flow is built.
        Cancel: the current call is cancelled, then ``close`` is called and the context manager left. A terminal returns
        after that. Elements that ``fetch`` still returns go to ``hooks.on_discard``.
        (Pekko: ``unfoldResourceAsync``; Reactor: ``generate``; Rust: ``Stream::poll_next``.)

        >>> from contextlib import asynccontextmanager
        >>> from reactive_aio import Flow
        >>> class Counting:
        ...     at = 0
        ...     async def fetch(self, n):
        ...         if self.at == 5:
        ...             raise StopAsyncIteration
        ...         start, self.at = self.at, min(self.at + n, 5)
        ...         return range(start, self.at)
        ...     async def idle(self): pass
        ...     async def close(self): print("closed")
        >>> @asynccontextmanager
        ... async def connect():
        ...     yield Counting()
        >>> Flow.from_poll(connect, max_batch=2).run_sync()
        closed
        [0, 1, 2, 3, 4]
        """
        from .poll import FromPoll

        if not isinstance(open, type) and hasattr(open, "__aenter__"):
            raise TypeError(
                "from_poll() takes a function that returns an async context manager, not an async context manager. "
                "Write from_poll(lambda: ...) to make one for each subscription"
            )
        check_function("from_poll", open, "return an async context manager, and await in its __aenter__()")
        check_count("from_poll", "max_batch", max_batch, 1)
        check_seconds("from_poll", "heartbeat", heartbeat, above=True)
        return cls._begin(FromPoll(open, max_batch, heartbeat))

    @classmethod
    def from_blocking(cls, poll: Callable[[], Iterable[U | None]]) -> Flow[U]:
        """Emit the elements of a blocking iterator, such as one around a client without async, on a thread of its own.

        ``poll()`` makes the iterator, anew for each subscription and on its thread. Most often it is a generator
        function that cleans up by ``with`` and ``finally``. None means that there is nothing yet, and is not emitted.
        Let the iterator yield None every second or so while there is nothing. Only then can a cancel stop it. The steps
        that are fused with it run on the thread too. ``publish_on`` moves the next ones elsewhere.

        Demand: one element is read for each that is requested. The end reads up to 256 ahead, as from any thread.
        ``publish_on(schedulers.current(), prefetch=n)`` after this sets another number.
        Errors: exceptions of ``poll`` or the iterator; TypeError for a function that does not return an iterable. An
        iterator, which can be read only once, and an ``async def`` are refused with TypeError when the flow is built.
        Cancel: stops the iterator between two elements or Nones, but not while it blocks. The iterator is closed, and a
        terminal returns when the thread has ended.
        Scheduling: its elements arrive within about two milliseconds, even while it blocks. The context variables of
        the subscriber are current on the thread.
        (Reactor: ``fromIterable`` with ``subscribeOn(Schedulers.boundedElastic())``; Pekko: ``unfoldResource``.)

        >>> import queue
        >>> from reactive_aio import Flow
        >>> tasks = queue.SimpleQueue()
        >>> tasks.put("wash")
        >>> def poll():
        ...     while True:
        ...         try:
        ...             yield tasks.get(timeout=0.01)
        ...         except queue.Empty:
        ...             yield None
        >>> Flow.from_blocking(poll).take(1).run_sync()
        ['wash']
        """
        from .blocking import FromBlocking, OwnThread, WithoutNone

        given: object = poll
        if isinstance(given, Iterable):
            raise TypeError(
                f"from_blocking() takes a function that returns an iterator, not {label(type(poll))}. Write "
                "from_blocking(lambda: ...) to make an iterator for each subscription"
            )
        if isasyncgenfunction(poll):
            raise TypeError(
                f"from_blocking() takes a function, but {label(poll)} is async: use Flow.from_async_iterable"
            )
        check_function("from_blocking", poll, "use Flow.from_async_iterable with an async generator")
        made: Flow[U | None] = cls._begin(FromBlocking[U | None](poll))
        return made.then(WithoutNone[U]()).subscribe_on(OwnThread(label(poll)))

    @classmethod
    def timer(cls, delay: float) -> Flow[int]:
        """Emit 0, ``delay`` seconds after the first demand.

        Demand: the first request starts the clock, so there is demand when the time has come. The flow completes with
        the element.
        Errors: a ``delay`` below 0 is refused with ValueError when the flow is built.
        Cancel: stops the clock.
        Scheduling: by the clock of the event loop of its region. No thread is started.
        (Reactor: ``delay``; RxJava, RxPY: ``timer``.)

        >>> from reactive_aio import Flow
        >>> Flow.timer(0.001).run_sync()
        [0]
        """
        from .timer import Timer

        check_seconds("timer", "delay", delay)
        return cls._begin(Timer(delay))
