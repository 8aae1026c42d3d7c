"""Operators that subscribe again, or elsewhere, when a flow ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from .._fluent import Fluent, check_count, check_function, is_flow
from .repeat import Repeat
from .resume import Always, OnErrorResumeNext
from .retry import Retry

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


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

    def on_error_resume_next(self, fallback: Flow[U] | Callable[[BaseException], Flow[U]]) -> Flow[T_co | U]:
        """Go on with another flow when this one fails: with ``fallback``, or with what it returns for the error.

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
        if is_flow(fallback):
            return self.begin(OnErrorResumeNext[T_co | U](self.as_flow(), Always(fallback)))
        check_function("on_error_resume_next", fallback, "return the flow from an ordinary function")
        choose = cast("Callable[[BaseException], Flow[U]]", fallback)
        return self.begin(OnErrorResumeNext[T_co | U](self.as_flow(), choose))
