"""The combinator that subscribes again when its flow fails, at once or after longer and longer waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._core.containers import new_list
from ..._core.guard import Failed, guarded
from ..._core.notes import add_note, set_context
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...errors import SourceConsumedError
from ...spec import Subscription
from .._fluent import check_flow
from ..timing.waiting import Waiting
from .backoff import Backoff
from .resume import Errors, catches

T = TypeVar("T")


@frozen
class Retry(Pushed[T]):
    """Source of ``Flow.retry``."""

    flow: FlowLike
    given: int | Backoff | None
    """The policy, or the number that stands for one."""
    policy: Backoff = field(repr=False)
    errors: Errors = field(repr=False)
    resume: Callable[[Any], FlowLike] | None = field(repr=False)

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first attempt."""
        attempts = Attempts(inlet, self)
        attempts.advance(self.flow)
        return attempts


@define(eq=False)
class Attempts(Waiting):
    """Waits after a failure, and subscribes anew; in one subscription."""

    given: Retry[Any]
    _retries: int = field(init=False, default=0)
    """The number of retries, since the last element if that resets them."""
    _delay: float = field(init=False)
    """The next one, without its share of chance."""
    _last: list[Any] = field(init=False, factory=new_list)
    """The last element of all attempts, where it is needed to go on from it."""
    _failure: Failed | None = field(init=False, default=None)
    """The failure of the attempt before, until the next one gives a signal."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._delay = self.given.policy.first

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass elements on: a success."""
        self._drop_failure()
        if self._retries and self.given.policy.reset:
            self._retries, self._delay = 0, self.given.policy.first
        if self.given.resume is not None:
            self._last = items[-1:]
        super().on_chunk(inner, items)

    def on_source_complete(self) -> None:
        """Complete with the attempt that did."""
        self._drop_failure()
        self.complete()

    def cancel(self) -> None:
        """Leave, and let go of the failure, whose traceback leads back to here."""
        self._drop_failure()
        super().cancel()

    def _drop_failure(self) -> None:
        failed, self._failure = self._failure, None
        if failed is not None:
            failed.drop()

    def on_source_error(self, error: BaseException) -> None:
        """Wait for the next attempt, or give up with this failure."""
        self._source_failed(Failed(error))

    def _source_failed(self, failed: Failed) -> None:
        """Wait for the next attempt, or give up with this failure. Only then it is taken."""
        error, policy = failed.error, self.given.policy
        before, self._failure = self._failure, None
        if isinstance(error, SourceConsumedError):  # it would be the same each time
            if before is not None:
                set_context(error, before.take())
            self.fail(failed.take())
            return
        if before is not None:
            before.drop()
        if not catches(self.given.errors, error):
            self.fail(failed.take())
        elif self._retries == policy.max_retries:
            failed.take()
            if self._retries:
                add_note(error, f"given up after {self._retries} retries: {self.inlet.where}")
            self.fail(error)
        else:
            self._retries += 1
            self._failure = failed
            if self._delay:
                self._wait()
            else:
                self.on_time()

    def _wait(self) -> None:
        policy, delay = self.given.policy, self._delay
        self._delay = policy.after(delay)
        # Guarded, because a generator of random numbers may be of a class of the user's.
        spread = guarded(self.inlet.context, policy.spread, delay)
        if isinstance(spread, Failed):
            self.fail(spread.error)
        else:
            self.timer.start(spread)

    def on_time(self) -> None:
        """Try once more."""
        resume = self.given.resume
        if resume is None or not self._last:
            self.advance(self.given.flow)
            return
        flow = guarded(self.inlet.context, _resumed, resume, self._last[0])
        if isinstance(flow, Failed):
            add_note(flow.error, f"raised by the resume of {self.inlet.where}")
            self.fail(flow.take())
        else:
            self.advance(flow)


def _resumed(resume: Callable[[Any], FlowLike], last: Any) -> FlowLike:
    flow = resume(last)
    check_flow("retry(resume=...)", flow)
    return flow
