"""Operators that go by the clock of their event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_count, check_seconds

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T_co = TypeVar("T_co", covariant=True)


class Timing(Fluent[T_co]):
    """Operators that go by the clock of their event loop, which in tests may be a virtual one."""

    __slots__ = ()

    def delay(self, seconds: float, *, max_size: int = 256) -> Flow[T_co]:
        """Emit each element ``seconds`` after it has come, so the distances between elements stay the same.

        Demand: passed on while there is room. At most ``max_size`` elements have been requested and are not emitted yet.
        So at most ``max_size`` elements pass in any ``seconds``, and at most that many are buffered.
        Errors: a failure or the end comes right after the waiting elements. Seconds below 0 and a ``max_size`` below 1
        are refused with ValueError when the flow is built.
        Cancel: the waiting elements go to ``hooks.on_discard``.
        (RxJava, RxPY: ``delay``; Reactor: ``delaySequence``; its ``delayElements`` spaces elements, as ``rate_limit(1,
        seconds)`` does here.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import from_marbles, record, run_virtual
        >>> run_virtual(record(from_marbles("-a-b--c|").delay(3)))
        '----a-b--(c|)'
        """
        from .delay import Delay

        check_seconds("delay", "seconds", seconds)
        check_count("delay", "max_size", max_size, 1)
        return self._begin(Delay[T_co](self._as_flow(), seconds, max_size))

    def delay_subscription(self, seconds: float) -> Flow[T_co]:
        """Subscribe to this flow ``seconds`` after it was subscribed to.

        Demand: requests made before are then passed on as one. Nothing is buffered.
        Errors: those of this flow. Seconds below 0 are refused with ValueError when the flow is built.
        Cancel: the wait ends at once.
        (Reactor, RxJava: ``delaySubscription``; Pekko: ``initialDelay``; aiostream: ``delay``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import record, run_virtual
        >>> run_virtual(record(Flow.of("a", "b").delay_subscription(3)))
        '---(ab|)'
        """
        from .delay_subscription import DelaySubscription

        check_seconds("delay_subscription", "seconds", seconds)
        return self._begin(DelaySubscription[T_co](self._as_flow(), seconds))

    def debounce(self, seconds: float) -> Flow[T_co]:
        """Emit an element if no other one comes in the ``seconds`` after it, and the last element at the end.

        Demand: unbounded upstream, from the first request on, since a quiet period shows only if all elements come. At most two
        elements are buffered: the latest, and the last one whose quiet period has passed before it was requested. The others
        go to ``hooks.on_discard``.
        Errors: a failure ends the flow after the element that is kept. The latest one, whose time has not come, is
        discarded.
        Seconds that are not above 0 are refused with ValueError when the flow is built.
        (RxJava, RxPY, Kotlin: ``debounce``; Reactor: ``sampleTimeout``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import from_marbles, record, run_virtual
        >>> run_virtual(record(from_marbles("-abc----d-e|").debounce(3)))
        '------c----(e|)'
        """
        from .debounce import Debounce

        check_seconds("debounce", "seconds", seconds, above=True)
        return self._begin(Debounce[T_co](self._as_flow(), seconds))

    def throttle_first(self, seconds: float) -> Flow[T_co]:
        """Emit an element, and drop the elements that come in the ``seconds`` after it.

        Demand: unbounded upstream, from the first request on, since the times of all elements count. An element that is
        not requested when it comes is dropped, and does not start a period. Nothing is buffered. Dropped elements go to
        ``hooks.on_discard``.
        Errors: those of this flow. Seconds that are not above 0 are refused with ValueError when the flow is built.
        (RxJava, RxPY: ``throttleFirst``; Reactor: ``sampleFirst``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import from_marbles, record, run_virtual
        >>> run_virtual(record(from_marbles("-abcdefg|").throttle_first(3)))
        '-a--d--g|'
        """
        from .throttle_first import ThrottleFirst

        check_seconds("throttle_first", "seconds", seconds, above=True)
        return self._begin(ThrottleFirst[T_co](self._as_flow(), seconds))

    def sample(self, seconds: float) -> Flow[T_co]:
        """Emit the latest element every ``seconds``, if one has come since, and with the end.

        Demand: unbounded upstream, from the first request on, which also starts the first period. An element whose time
        has come is kept until it is requested, or until the time of a later one comes. That element and the latest are
        buffered. The others go to ``hooks.on_discard``.
        Errors: a failure ends the flow after the element that is kept. The latest one, whose time has not come, is
        discarded.
        Seconds that are not above 0 are refused with ValueError when the flow is built.
        (Reactor, RxJava, RxPY, Kotlin: ``sample``; RxJava: ``throttleLast``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import from_marbles, record, run_virtual
        >>> run_virtual(record(from_marbles("-ab-cd----e|").sample(3)))
        '---b--d----(e|)'
        """
        from .sample import Sample

        check_seconds("sample", "seconds", seconds, above=True)
        return self._begin(Sample[T_co](self._as_flow(), seconds))

    def rate_limit(self, max_elements: int, per: float) -> Flow[T_co]:
        """Emit all elements, each as soon as possible, but at most ``max_elements`` in any ``per`` seconds.

        The limit is exact, by the clock of the loop. It holds for every window of ``per`` seconds, wherever the window
        begins. The clock of uvloop counts milliseconds, and stands still while a callback runs.
        Elements are counted, and not the work behind this operator. If a later operator retries the work of an element, the
        limit does not see it.
        Demand: passed on as far as elements may be emitted, so no more than ``max_elements`` at a time. Nothing is
        buffered.
        Errors: those of this flow. A ``max_elements`` below 1 and seconds that are not above 0 are refused with
        ValueError when the flow is built.
        Cancel: a wait ends at once.
        (Pekko: ``throttle``, by tokens; aiostream: ``spaceout``; Mutiny: ``paceDemand``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import record, run_virtual
        >>> run_virtual(record(Flow.of(*"abcde").rate_limit(2, 5)))
        '(ab)-(cd)-(e|)'
        """
        from .rate_limit import RateLimit

        check_count("rate_limit", "max_elements", max_elements, 1)
        check_seconds("rate_limit", "per", per, above=True)
        return self._begin(RateLimit[T_co](self._as_flow(), max_elements, per))

    def timestamp(self) -> Flow[tuple[float, T_co]]:
        """Emit pairs ``(time, element)``: when each element came, in seconds, by the clock of the loop.

        Demand: passed on one for one. Nothing is buffered.
        Errors: those of this flow.
        Spark: runs after the boundary, by the clock of the loop there.
        (Reactor, RxJava, RxPY: ``timestamp``, by the time of day.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> run_virtual(Flow.interval(5.0).timestamp().take(2).to_list())
        [(5.0, 0), (10.0, 1)]
        """
        from .stamping import Timestamp

        return self.then(Timestamp[T_co]())

    def elapsed(self) -> Flow[tuple[float, T_co]]:
        """Emit pairs ``(seconds, element)``: the time since the element before, by the clock of the loop.

        For the first element time counts from the first demand.
        Demand: passed on one for one. Nothing is buffered.
        Errors: those of this flow.
        Spark: runs after the boundary, by the clock of the loop there.
        (Reactor: ``elapsed``; RxJava, RxPY: ``timeInterval``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import from_marbles, run_virtual
        >>> run_virtual(from_marbles("--a---b").elapsed().take(2).to_list())
        [(2.0, 'a'), (4.0, 'b')]
        """
        from .stamping import Elapsed

        return self.then(Elapsed[T_co]())
