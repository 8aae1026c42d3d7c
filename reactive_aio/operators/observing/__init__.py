"""Operators that observe signals and change nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..._core.guard import shown
from ..._core.notes import add_note
from ..._fusion import Origin, calling_line
from ...spec import UNBOUNDED
from .._fluent import Fluent, check_function, check_whole

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from .peek import Listener

T_co = TypeVar("T_co", covariant=True)


class Observing(Fluent[T_co]):
    """Operators that observe signals and change nothing.

    All but ``do_on_next`` are combinators, because signals can't be seen inside a region. They run in the last region of
    the flow that they are called on.
    """

    __slots__ = ()

    def do_on_next(self, fn: Callable[[T_co], object]) -> Flow[T_co]:
        """Call ``fn(item)`` for each element, then emit the element.

        Demand: passed on one for one. Nothing is buffered.
        Errors: an exception of ``fn`` ends the flow, after the elements before it. An ``async def`` is refused with
        TypeError when the flow is built. A coroutine that ``fn`` returns fails the flow with TypeError.
        Spark: runs in the workers, and so do the effects of ``fn``.
        (Reactor, RxJava: ``doOnNext``; RxPY: ``do_action``; Pekko: ``wireTap``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a").do_on_next(print).map(str.upper).run_sync()
        a
        ['A']
        """
        from .do_on_next import DoOnNext

        check_function("do_on_next", fn, "use map_async(), or await in flow.for_each(fn)")
        return self.then(DoOnNext(fn))

    def do_on_error(self, fn: Callable[[BaseException], object]) -> Flow[T_co]:
        """Call ``fn(error)`` when this flow fails, before the failure goes on.

        Demand: passed on one for one. Nothing is buffered.
        Errors: that of the flow; if ``fn`` raises, that error, with the flow's as its context. An ``async def`` is
        refused with TypeError when the flow is built.
        (Reactor, RxJava: ``doOnError``.)

        >>> from reactive_aio import Flow
        >>> Flow.error(OSError("down")).do_on_error(print).on_error_complete().run_sync()
        down
        []
        """
        from .peek import Listener

        return self._peek("do_on_error", fn, Listener(on_error=fn))

    def do_on_complete(self, fn: Callable[[], object]) -> Flow[T_co]:
        """Call ``fn()`` when this flow has completed, before the completion goes on.

        Demand: passed on one for one. Nothing is buffered.
        Errors: if ``fn`` raises, the flow fails with that. An ``async def`` is refused with TypeError when the flow
        is built.
        (Reactor, RxJava: ``doOnComplete``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1).do_on_complete(lambda: print("done")).run_sync()
        done
        [1]
        """
        from .peek import Listener

        return self._peek("do_on_complete", fn, Listener(on_complete=fn))

    def do_on_subscribe(self, fn: Callable[[], object]) -> Flow[T_co]:
        """Call ``fn()`` for each subscription, before this flow is subscribed to.

        Demand: passed on one for one. Nothing is buffered.
        Errors: if ``fn`` raises, the flow fails with that and is not subscribed to. An ``async def`` is refused
        with TypeError when the flow is built.
        (Reactor: ``doFirst``; RxJava: ``doOnSubscribe``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1).do_on_subscribe(lambda: print("begins")).run_sync()
        begins
        [1]
        """
        from .peek import Listener

        return self._peek("do_on_subscribe", fn, Listener(on_subscribe=fn))

    def do_on_request(self, fn: Callable[[int], object]) -> Flow[T_co]:
        """Call ``fn(n)`` for each request of ``n`` elements, before it reaches this flow.

        Demand: passed on one for one. ``UNBOUNDED`` is a request for all elements. Nothing is buffered.
        Errors: if ``fn`` raises, the flow is cancelled and fails with that. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``doOnRequest``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(9).do_on_request(print).take(2).run_sync()
        2
        [0, 1]
        """
        from .peek import Listener

        return self._peek("do_on_request", fn, Listener(on_request=fn))

    def do_on_cancel(self, fn: Callable[[], object]) -> Flow[T_co]:
        """Call ``fn()`` when this flow is cancelled, for example by ``take``, before the cancel goes on.

        Demand: passed on one for one. Nothing is buffered.
        Errors: the awaited end raises the exception of ``fn``. If the flow has failed, that exception becomes a note,
        and goes to ``hooks.on_error_dropped``. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``doOnCancel``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(9).do_on_cancel(lambda: print("cancelled")).take(2).run_sync()
        cancelled
        [0, 1]
        """
        from .peek import Listener

        return self._peek("do_on_cancel", fn, Listener(on_cancel=fn))

    def do_finally(self, fn: Callable[[], object]) -> Flow[T_co]:
        """Call ``fn()`` once for each subscription when this flow has completed, failed or been cancelled.

        It is called after the signal has been passed on: a cancel upstream, any other end downstream. By then the last
        elements have been processed. The awaited terminal returns after it. Where this flow is never opened, ``fn`` is not
        called: behind ``take(0)``, or if the cancel comes before the thread of a ``publish_on`` or ``subscribe_on`` has begun.
        Demand: passed on one for one. Nothing is buffered.
        Errors: the awaited end raises the exception of ``fn``. If the flow has failed, that exception becomes a note,
        and goes to ``hooks.on_error_dropped``. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``doFinally``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1).do_finally(lambda: print("over")).run_sync()
        over
        [1]
        """
        from .peek import Listener

        return self._peek("do_finally", fn, Listener(on_end=fn))

    def do_on_discard(self, fn: Callable[[Any], object]) -> Flow[T_co]:
        """Call ``fn(item)`` for each element that this flow took from a source and will not emit.

        Use it for elements that have to be closed or returned to a pool. It gets the elements that sources and
        operators before it hold, have read ahead or drop when the flow ends or is cancelled. It does not get elements
        that a filter leaves out. The subscriber's hook, ``hooks.on_discard``, is called after ``fn``.
        Demand: passed on one for one. Nothing is buffered.
        Errors: what ``fn`` raises goes to ``hooks.on_error_dropped``. An ``async def`` is refused with TypeError when the
        flow is built.
        (Reactor: ``doOnDiscard``; Kotlin: ``onUndeliveredElement`` of a channel.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 2, 3).concat(Flow.error(OSError("down"))).buffer(2).do_on_discard(print).on_error_complete().run_sync()
        3
        [[1, 2]]
        """
        from .do_on_discard import DoOnDiscard

        check_function("do_on_discard", fn, "an ordinary function is needed")
        return self._begin(DoOnDiscard[T_co](self._as_flow(), fn))

    def log(self, name: str = "reactive_aio._flow.flow", *, level: int = logging.INFO) -> Flow[T_co]:
        """Log every signal of this flow, in both directions, to the logger ``name`` of ``logging``.

        Demand: passed on one for one. Nothing is buffered. An element is logged when it is made.
        Errors: a failure is logged with the level ERROR, if ``level`` is not above it. A ``name`` that is not a str and
        a ``level`` that is not an int are refused with TypeError when the flow is built.
        Spark: logs after the boundary, in this process.
        (Reactor, Pekko: ``log``.)

        >>> import logging, sys
        >>> from reactive_aio import Flow
        >>> logger = logging.getLogger("numbers")
        >>> logger.addHandler(logging.StreamHandler(sys.stdout))
        >>> Flow.range(2).log("numbers", level=logging.WARNING).run_sync()
        subscribe
        request(unbounded)
        next(0)
        next(1)
        complete
        [0, 1]
        """
        from .do_on_next import LogNext
        from .peek import Listener, Peek

        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"log() takes the name of a logger, not {type(name).__name__}")
        check_whole("log", "level", level)
        write = partial(logging.getLogger(name).log, level)
        failed = partial(logging.getLogger(name).log, max(level, logging.ERROR))
        listener = Listener(
            on_subscribe=partial(write, "subscribe"),
            on_request=lambda n: write("request(%s)", "unbounded" if n == UNBOUNDED else n),
            on_cancel=partial(write, "cancel"),
            # As text: a record that is kept would keep, by the traceback, all that the error has passed through.
            on_error=lambda error: failed("error(%s)", shown(error)),
            on_complete=partial(write, "complete"),
        )
        return self._begin(Peek[T_co]("log", self.then(LogNext(partial(write, "next(%r)"))), listener, name))

    def checkpoint(self, description: str) -> Flow[T_co]:
        """Add a note with ``description`` and this line to each failure that passes here.

        The place where an operator failed is noted in any case. A checkpoint shows the way that the failure took.
        Demand: passed on one for one. Nothing is buffered.
        Errors: those of the flow. A description that is not a str is refused with TypeError when the flow is built.
        (Reactor: ``checkpoint``.)

        >>> from reactive_aio import Flow
        >>> [signal] = Flow.error(OSError("down")).checkpoint("orders").materialize().run_sync()
        >>> "checkpoint 'orders'" in signal.error.__notes__[-1]
        True
        """
        from .peek import Listener, Peek

        if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"checkpoint() takes a description, not {type(description).__name__}")
        listener = Listener(on_error=partial(_note, description, calling_line()))
        return self._begin(Peek[T_co]("checkpoint", self._as_flow(), listener, description))

    def _peek(self, method: str, fn: object, listener: Listener) -> Flow[T_co]:
        from .peek import Peek

        check_function(method, fn, "an ordinary function is needed")
        return self._begin(Peek[T_co](method, self._as_flow(), listener, fn))

    def strict(self) -> Flow[T_co]:
        """Check everything so far against the rules of Reactive Streams while it runs. It is for finding faults.

        The operators after it run in a region of their own. They talk to the operators before it by the contract, one
        element a signal. This costs some tens of microseconds for each element.
        Demand: passed on one for one.
        Errors: ProtocolViolation, with the rule, the observation, the advice and the last twenty signals. As at any
        edge of the contract, a None element fails the flow with TypeError.
        (Ours; RxJava: ``strict``, of the same intent.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).strict().map(str).run_sync()
        ['0', '1', '2']
        """
        from .judging import Strict

        return self._begin(Strict[T_co](self._as_flow()))


def _note(description: str, origin: Origin, error: BaseException) -> None:
    add_note(error, f"passed checkpoint {description!r}, chained at {origin}")
