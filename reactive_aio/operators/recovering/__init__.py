"""Operators that subscribe again, or to another flow, when a flow ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._fluent import Fluent, check_count, check_errors, check_flow, check_function, check_seconds, is_flow

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from .backoff import Backoff
    from .resume import Errors

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
E = TypeVar("E", bound=BaseException)


class Recovering(Fluent[T_co]):
    """Operators that subscribe again, or to another flow, when a flow ends."""

    __slots__ = ()

    def repeat(self, times: int | None = None) -> Flow[T_co]:
        """Emit the elements of ``times`` subscriptions to this flow, one after another, by default for ever.

        Demand: at the end of a run, the next run gets the rest of the demand. Nothing is buffered.
        Errors: a failure ends the whole flow. ``repeat(0)`` is empty. A negative number is refused with ValueError when
        the flow is built.
        Spark: up to 16 runs of a flow that runs entirely in the workers are one job, as by `concat`.
        (RxJava: ``repeat``, also in the count; Reactor's ``repeat(n)`` counts the runs after the first.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a", "b").repeat(2).run_sync()
        ['a', 'b', 'a', 'b']
        """
        from .repeat import Repeat

        if times is not None:
            check_count("repeat", "times", times, 0)
        return self._begin(Repeat(self._as_flow(), times))

    def repeat_when(self, decide: Callable[[int, int], Awaitable[object]]) -> Flow[T_co]:
        """Subscribe again when this flow completes and ``await decide(count, runs)`` is true.

        ``decide`` is an ``async def`` that takes the time it needs, such as a pause between two polls. It gets the
        number of elements of the run, and the number of runs. They are counted anew for each subscription.
        Demand: at the end of a run, the next run gets the rest of the demand. Nothing is buffered.
        Errors: a failure of this flow or of ``decide`` ends the whole flow. An argument that is not a function is
        refused with TypeError when the flow is built.
        Cancel: ``decide`` is cancelled, and waited for.
        (Reactor, RxJava: ``repeatWhen``, with a flow of answers.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> async def every_minute(count, runs):
        ...     await asyncio.sleep(60)
        ...     return runs < 3
        >>> run_virtual(Flow.of("a", "b").repeat_when(every_minute).to_list())
        ['a', 'b', 'a', 'b', 'a', 'b']
        """
        from .repeat_when import RepeatWhen

        check_function("repeat_when", decide)
        return self._begin(RepeatWhen[T_co](self._as_flow(), decide))

    def retry(
        self,
        policy: int | Backoff | None = None,
        *,
        errors: Errors = Exception,
        resume: Callable[[T_co], Flow[T_co]] | None = None,
    ) -> Flow[T_co]:
        """Subscribe again when this flow fails: ``retry()`` for ever, ``retry(4)`` four times, ``retry(Backoff(0.5))`` after waits.

        ``retry(4)`` makes five attempts at most, the first among them. A `Backoff` waits longer each time. By default
        an element resets its count and its waits. ``Backoff(..., reset=False)`` counts all retries. Only failures among
        ``errors`` are retried. The elements of a failed attempt stay emitted. The next attempt starts from the
        beginning. With ``resume``, it reads ``resume(last)`` instead once there was an element. ``last`` is the last
        element.
        Demand: when an attempt fails, the next attempt gets the rest of the demand. Nothing is buffered.
        Errors: the failure of the last attempt, with a note; a failure that is not among ``errors``; an exception of
        ``resume``. SourceConsumedError at once, with the failure before as its context, for a source that can be read
        only once. A number below 0 is refused with ValueError when the flow is built, and an argument of another type
        with TypeError.
        Cancel: a wait ends at once.
        (Reactor, RxJava: ``retry``, also in the count, ``retryWhen(Retry.backoff(...))`` with ``transientErrors`` for
        ``reset``; Mutiny: ``withBackOff``; RxPY counts the first attempt too.)

        >>> from reactive_aio import Backoff, Flow
        >>> from reactive_aio.testing import run_virtual
        >>> attempts = iter([OSError("down"), OSError("down"), "up"])
        >>> def fetch():
        ...     answer = next(attempts)
        ...     if isinstance(answer, OSError):
        ...         raise answer
        ...     return Flow.of(answer)
        >>> Flow.defer(fetch).retry(2).run_sync()
        ['up']
        >>> def lines(start):
        ...     yield from range(start, min(start + 2, 5))
        ...     if start < 4:
        ...         raise ConnectionError("lost")
        >>> def read(start):
        ...     return Flow.from_iterable(lambda: lines(start))
        >>> run_virtual(read(0).retry(Backoff(0.5, max_retries=3), resume=lambda last: read(last + 1)).to_list())
        [0, 1, 2, 3, 4]
        """
        from .backoff import Backoff, at_once, check_retries
        from .retry import Retry

        if policy is not None and not isinstance(policy, Backoff):
            check_retries(policy)
        check_errors("retry", errors)
        if resume is not None:
            check_function("retry", resume, "return the flow from an ordinary function")
        backoff = policy if isinstance(policy, Backoff) else at_once(policy)
        return self._begin(Retry[T_co](self._as_flow(), policy, backoff, errors, resume))

    @overload
    def retry_if(self, predicate: Callable[[Exception, int], object]) -> Flow[T_co]: ...
    @overload
    def retry_if(
        self, predicate: Callable[[E, int], object], *, errors: type[E] | tuple[type[E], ...]
    ) -> Flow[T_co]: ...
    def retry_if(self, predicate: Callable[[Any, int], object], *, errors: Errors = Exception) -> Flow[T_co]:
        """Subscribe again when this flow fails and ``predicate(error, attempt)`` is true.

        It is called for failures among ``errors``. Attempts are counted from 1, anew for each subscription. The
        elements of a failed attempt stay emitted. The next attempt starts from the beginning.
        Demand: when an attempt fails, the next attempt gets the rest of the demand. Nothing is buffered.
        Errors: the failure for which ``predicate`` was not true; one that is not among ``errors``; what ``predicate``
        raises, with the failure as its context. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor: ``retryWhen(Retry.filter)``; RxJava: ``retry(predicate)``.)

        >>> from reactive_aio import Flow
        >>> attempts = iter([OSError("down"), OSError("down"), "up"])
        >>> def fetch():
        ...     answer = next(attempts)
        ...     return Flow.error(answer) if isinstance(answer, OSError) else Flow.of(answer)
        >>> Flow.defer(fetch).retry_if(lambda error, attempt: isinstance(error, OSError) and attempt < 5).run_sync()
        ['up']
        """
        from .retry_if import RetryIf

        check_function("retry_if", predicate, "use retry_when()")
        check_errors("retry_if", errors)
        return self._begin(RetryIf[T_co](self._as_flow(), predicate, errors))

    @overload
    def on_error_resume_next(self, fallback: Flow[U] | Callable[[Exception], Flow[U]]) -> Flow[T_co | U]: ...
    @overload
    def on_error_resume_next(
        self, fallback: Flow[U] | Callable[[E], Flow[U]], *, errors: type[E] | tuple[type[E], ...]
    ) -> Flow[T_co | U]: ...
    def on_error_resume_next(
        self, fallback: Flow[U] | Callable[[Any], Flow[U]], *, errors: Errors = Exception
    ) -> Flow[T_co | U]:
        """Go on with another flow when this one fails: with ``fallback``, or with what it returns for the error.

        Only for failures among ``errors``. Others end the flow.
        Demand: the unmet demand of this flow is requested from the other, once. Nothing is buffered.
        Errors: a failure of the other flow, or of the function, ends the whole flow, with the first failure as its
        context. An argument that is neither a flow nor a function is refused with TypeError when the flow is built.
        (RxJava: ``onErrorResumeNext``; Reactor: ``onErrorResume``.)

        >>> from reactive_aio import Flow
        >>> broken = Flow.of(1).concat(Flow.error(OSError("down")))
        >>> broken.on_error_resume_next(Flow.of(2)).run_sync()
        [1, 2]
        >>> broken.on_error_resume_next(lambda error: Flow.of(str(error))).run_sync()
        [1, 'down']
        """
        from .resume import Always, OnErrorResumeNext

        check_errors("on_error_resume_next", errors)
        if is_flow(fallback):
            return self._begin(OnErrorResumeNext[T_co | U](self._as_flow(), Always(fallback), errors))
        if not callable(fallback):
            raise TypeError(
                f"on_error_resume_next() takes a flow or a function that returns one, not {type(fallback).__name__}"
            )
        check_function("on_error_resume_next", fallback, "return the flow from an ordinary function")
        return self._begin(OnErrorResumeNext[T_co | U](self._as_flow(), fallback, errors))

    def on_error_return(self, value: U, *, errors: Errors = Exception) -> Flow[T_co | U]:
        """Emit ``value`` and complete when this flow fails, by an error of the types ``errors``.

        Demand: passed on one for one. ``value`` takes one too. Nothing is buffered.
        Errors: those of other types. An argument that is not a type of exceptions is refused with TypeError when the flow
        is built.
        (Reactor: ``onErrorReturn``; RxJava: ``onErrorReturnItem``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("5", "x", "7").map(int).on_error_return(0, errors=ValueError).run_sync()
        [5, 0]
        """
        from ..sourcing.iterable import Of
        from .resume import Always, OnErrorReturn

        check_errors("on_error_return", errors)
        return self._begin(OnErrorReturn[T_co | U](self._as_flow(), Always(self._begin(Of((value,)))), errors))

    def on_error_complete(self, *, errors: Errors = Exception) -> Flow[T_co]:
        """Complete when this flow fails, by an error of the types ``errors``.

        Demand: passed on one for one. Nothing is buffered.
        Errors: those of other types. An argument that is not a type of exceptions is refused with TypeError when the flow
        is built.
        (Reactor, RxJava: ``onErrorComplete``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("5", "x", "7").map(int).on_error_complete(errors=ValueError).run_sync()
        [5]
        """
        from ..sourcing.iterable import Empty
        from .resume import Always, OnErrorComplete

        check_errors("on_error_complete", errors)
        return self._begin(OnErrorComplete[T_co](self._as_flow(), Always(self._begin(Empty())), errors))

    @overload
    def on_error_map(self, fn: Callable[[Exception], BaseException]) -> Flow[T_co]: ...
    @overload
    def on_error_map(
        self, fn: Callable[[E], BaseException], *, errors: type[E] | tuple[type[E], ...]
    ) -> Flow[T_co]: ...
    def on_error_map(self, fn: Callable[[Any], BaseException], *, errors: Errors = Exception) -> Flow[T_co]:
        """Fail with ``fn(error)``, whose cause is the error, when this flow fails by an error of the types ``errors``.

        Demand: passed on one for one. Nothing is buffered.
        Errors: the error that ``fn`` returns; an exception of ``fn``, with the failure as its context; TypeError if it
        does not return an exception. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor: ``onErrorMap``; Pekko: ``mapError``.)

        >>> from reactive_aio import Flow
        >>> flow = Flow.of("x").map(int).on_error_map(lambda error: LookupError("no number"))
        >>> flow.materialize().run_sync()
        [Failed(error=LookupError('no number'))]
        """
        from .on_error_map import OnErrorMap

        check_function("on_error_map", fn, "return the exception from an ordinary function")
        check_errors("on_error_map", errors)
        return self._begin(OnErrorMap[T_co](self._as_flow(), fn, errors))

    def timeout(self, seconds: float, *, fallback: Flow[U] | None = None) -> Flow[T_co | U]:
        """Fail when a requested element does not come within ``seconds``, or switch to ``fallback``.

        Time counts while there is demand, by the clock of the loop. It begins anew with each element. ``fallback`` has
        no time limit.
        Demand: passed on one for one. The unmet demand of this flow is requested from ``fallback``, once. Nothing is
        buffered.
        Errors: TimeoutError, if there is no ``fallback``. The flow is cancelled, and cleaned up before the timeout is
        signalled. An element on its way goes to ``hooks.on_discard``. A number of seconds that is not above 0, and a
        ``fallback`` that is not a flow, are refused when the flow is built.
        (Reactor, RxJava, RxPY: ``timeout``; Pekko: ``idleTimeout``, ``backpressureTimeout`` is the other way round.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> slow = Flow.interval(60.0)
        >>> run_virtual(slow.timeout(5.0, fallback=Flow.of("late")).to_list())
        ['late']
        """
        from .timeout import Timeout

        check_seconds("timeout", "seconds", seconds, above=True)
        if fallback is not None:
            check_flow("timeout", fallback)
        return self._begin(Timeout[T_co | U](self._as_flow(), seconds, fallback))

    @overload
    def retry_when(self, decide: Callable[[Exception, int], Awaitable[object]]) -> Flow[T_co]: ...
    @overload
    def retry_when(
        self, decide: Callable[[E, int], Awaitable[object]], *, errors: type[E] | tuple[type[E], ...]
    ) -> Flow[T_co]: ...
    def retry_when(self, decide: Callable[[Any, int], Awaitable[object]], *, errors: Errors = Exception) -> Flow[T_co]:
        """Subscribe again when this flow fails and ``await decide(error, attempt)`` is true.

        ``decide`` is an ``async def`` that takes the time it needs: it waits for a while, for an event, or for another
        flow by ``await other.first()``. It is called for failures among ``errors``. Attempts are counted from 1, anew
        for each subscription.
        Demand: when an attempt fails, the next attempt gets the rest of the demand. Nothing is buffered.
        Errors: the failure for which ``decide`` was not true; one that is not among ``errors``; what ``decide`` raises,
        with the failure as its context. An argument that is not a function is refused with TypeError when the flow is
        built.
        Cancel: ``decide`` is cancelled, and waited for.
        (Reactor, RxJava: ``retryWhen``, with a flow of answers.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> attempts = iter([OSError("down"), OSError("down"), "up"])
        >>> def fetch():
        ...     answer = next(attempts)
        ...     return Flow.error(answer) if isinstance(answer, OSError) else Flow.of(answer)
        >>> async def after_a_while(error, attempt):
        ...     await asyncio.sleep(attempt)
        ...     return isinstance(error, OSError) and attempt < 5
        >>> run_virtual(Flow.defer(fetch).retry_when(after_a_while).to_list())
        ['up']
        """
        from .retry_when import RetryWhen

        check_function("retry_when", decide)
        check_errors("retry_when", errors)
        return self._begin(RetryWhen[T_co](self._as_flow(), decide, errors))
