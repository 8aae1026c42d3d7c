"""Operators that subscribe again, or elsewhere, when a flow ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .._fluent import Fluent, check_count, check_errors, check_flow, check_function, check_seconds, is_flow
from ..sourcing.iterable import Empty, Of
from .on_error_map import OnErrorMap
from .repeat import Repeat
from .resume import Always, Errors, OnErrorComplete, OnErrorResumeNext, OnErrorReturn
from .retry import Retry
from .retry_if import RetryIf
from .timeout import Timeout

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
E = TypeVar("E", bound=BaseException)


class Recovering(Fluent[T_co]):
    """Operators that subscribe again, or elsewhere, when a flow ends."""

    __slots__ = ()

    def repeat(self, times: int | None = None) -> Flow[T_co]:
        """Emit the elements of ``times`` subscriptions to this flow, one after another; without a number, for ever.

        Demand: what one run leaves unmet is asked of the next, once; nothing is buffered.
        Errors: a failure ends the whole. ``repeat(0)`` is empty; a negative number is refused with ValueError
        when the flow is built.
        (RxJava: ``repeat``, also in the count; Reactor's ``repeat(n)`` counts the runs after the first.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a", "b").repeat(2).run_sync()
        ['a', 'b', 'a', 'b']
        """
        if times is not None:
            check_count("repeat", "times", times, 0)
        return self.begin(Repeat(self.as_flow(), times))

    def retry(self, max_retries: int | None = None) -> Flow[T_co]:
        """Subscribe again when this flow fails, ``max_retries`` times at most; without a number, for ever.

        What a failed attempt has emitted stays emitted; the next one starts from the beginning. The number
        holds for each subscription.
        Demand: what one attempt leaves unmet is asked of the next, once; nothing is buffered.
        Errors: the failure of the last attempt. A negative number is refused with ValueError when the flow is
        built.
        (Reactor, RxJava: ``retry``, also in the count; RxPY counts the first attempt too.)

        >>> from reactive_aio import Flow
        >>> attempts = iter([OSError("down"), OSError("down"), "up"])
        >>> def fetch():
        ...     answer = next(attempts)
        ...     if isinstance(answer, OSError):
        ...         raise answer
        ...     return Flow.of(answer)
        >>> Flow.defer(fetch).retry(2).run_sync()
        ['up']
        """
        if max_retries is not None:
            check_count("retry", "max_retries", max_retries, 0)
        return self.begin(Retry(self.as_flow(), max_retries))

    def retry_if(self, predicate: Callable[[BaseException, int], object]) -> Flow[T_co]:
        """Subscribe again when this flow fails and ``predicate(error, attempt)`` is true.

        Attempts are counted from 1, anew for each subscription. What a failed one has emitted stays emitted; the
        next one starts from the beginning.
        Demand: what one attempt leaves unmet is asked of the next, once; nothing is buffered.
        Errors: the failure for which ``predicate`` was not true; what it raises itself, with the failure as its
        context. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor: ``retryWhen(Retry.filter)``; RxJava: ``retry(predicate)``.)

        >>> from reactive_aio import Flow
        >>> attempts = iter([OSError("down"), OSError("down"), "up"])
        >>> def fetch():
        ...     answer = next(attempts)
        ...     return Flow.error(answer) if isinstance(answer, OSError) else Flow.of(answer)
        >>> Flow.defer(fetch).retry_if(lambda error, attempt: isinstance(error, OSError) and attempt < 5).run_sync()
        ['up']
        """
        check_function("retry_if", predicate, "an ordinary predicate is needed")
        return self.begin(RetryIf[T_co](self.as_flow(), predicate))

    def on_error_resume_next(
        self, fallback: Flow[U] | Callable[[BaseException], Flow[U]], *, errors: Errors = BaseException
    ) -> Flow[T_co | U]:
        """Go on with another flow when this one fails: with ``fallback``, or with what it returns for the error.

        With ``errors`` only failures of these types; others end the flow.
        Demand: what this flow leaves unmet is asked of the other, once; nothing is buffered.
        Errors: a failure of the other flow, or of the function, ends the whole, with the first failure as its
        context. What is neither a flow nor a function is refused with TypeError when the flow is built.
        (RxJava: ``onErrorResumeNext``; Reactor: ``onErrorResume``.)

        >>> from reactive_aio import Flow
        >>> broken = Flow.of(1).concat(Flow.error(OSError("down")))
        >>> broken.on_error_resume_next(Flow.of(2)).run_sync()
        [1, 2]
        >>> broken.on_error_resume_next(lambda error: Flow.of(str(error))).run_sync()
        [1, 'down']
        """
        check_errors("on_error_resume_next", errors)
        if is_flow(fallback):
            return self.begin(OnErrorResumeNext[T_co | U](self.as_flow(), Always(fallback), errors))
        check_function("on_error_resume_next", fallback, "return the flow from an ordinary function")
        choose = cast("Callable[[BaseException], Flow[U]]", fallback)
        return self.begin(OnErrorResumeNext[T_co | U](self.as_flow(), choose, errors))

    def on_error_return(self, value: U, *, errors: Errors = BaseException) -> Flow[T_co | U]:
        """Emit ``value`` and complete when this flow fails; with ``errors`` only by failures of these types.

        Demand: passed on one for one; ``value`` takes one too. Nothing is buffered.
        Errors: those of other types. What is no type of exceptions is refused with TypeError when the flow is
        built.
        (Reactor: ``onErrorReturn``; RxJava: ``onErrorReturnItem``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("5", "x", "7").map(int).on_error_return(0, errors=ValueError).run_sync()
        [5, 0]
        """
        check_errors("on_error_return", errors)
        return self.begin(OnErrorReturn[T_co | U](self.as_flow(), Always(self.begin(Of((value,)))), errors))

    def on_error_complete(self, *, errors: Errors = BaseException) -> Flow[T_co]:
        """Complete when this flow fails; with ``errors`` only by failures of these types.

        Demand: passed on one for one; nothing is buffered.
        Errors: those of other types. What is no type of exceptions is refused with TypeError when the flow is
        built.
        (Reactor, RxJava: ``onErrorComplete``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("5", "x", "7").map(int).on_error_complete(errors=ValueError).run_sync()
        [5]
        """
        check_errors("on_error_complete", errors)
        return self.begin(OnErrorComplete[T_co](self.as_flow(), Always(self.begin(Empty())), errors))

    @overload
    def on_error_map(self, fn: Callable[[BaseException], BaseException]) -> Flow[T_co]: ...
    @overload
    def on_error_map(self, fn: Callable[[E], BaseException], *, errors: type[E]) -> Flow[T_co]: ...
    @overload
    def on_error_map(
        self, fn: Callable[[BaseException], BaseException], *, errors: tuple[type[BaseException], ...]
    ) -> Flow[T_co]: ...
    def on_error_map(self, fn: Callable[[Any], BaseException], *, errors: Errors = BaseException) -> Flow[T_co]:
        """Fail with ``fn(error)``, whose cause is the error, when this flow fails; with ``errors`` only by these types.

        Demand: passed on one for one; nothing is buffered.
        Errors: what ``fn`` returns; what it raises, with the failure as its context; TypeError where it returns
        no exception. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor: ``onErrorMap``; Pekko: ``mapError``.)

        >>> from reactive_aio import Flow
        >>> flow = Flow.of("x").map(int).on_error_map(lambda error: LookupError("no number"))
        >>> flow.materialize().run_sync()
        [Failed(error=LookupError('no number'))]
        """
        check_function("on_error_map", fn, "return the exception from an ordinary function")
        check_errors("on_error_map", errors)
        return self.begin(OnErrorMap[T_co](self.as_flow(), fn, errors))

    def timeout(self, seconds: float, fallback: Flow[U] | None = None) -> Flow[T_co | U]:
        """Fail when an element is wanted and does not come within ``seconds``, or go over to ``fallback`` then.

        Time counts, by the clock of the loop, while there is demand: from the first that is not met, and anew behind
        each element. Where nobody asks, nobody waits. ``fallback`` has all the time.
        Demand: passed on one for one; what this flow leaves unmet is asked of ``fallback``, once. Nothing is buffered.
        Errors: TimeoutError, where there is no ``fallback``. The flow is cancelled, and cleaned up before the end is
        heard of; an element of it that was on its way goes to ``hooks.on_discard``. A number of seconds that is not
        above 0, and what is no flow, are refused when the flow is built.
        (Reactor, RxJava, RxPY: ``timeout``; Pekko: ``idleTimeout``, ``backpressureTimeout`` being the other way round.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> slow = Flow.interval(60.0)
        >>> run_virtual(slow.timeout(5.0, Flow.of("late")).to_list())
        ['late']
        """
        check_seconds("timeout", "seconds", seconds, above=True)
        if fallback is not None:
            check_flow("timeout", fallback)
        return self.begin(Timeout[T_co | U](self.as_flow(), seconds, fallback))
