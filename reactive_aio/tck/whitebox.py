"""The verification of subscribers that let the test control their requests and cancels."""
# ruff: noqa: N802 - the names are those of the JVM's TCK

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

from attrs import define, field

from .._core.containers import new_list
from .._core.guard import shown
from ..spec import Subscriber
from ._subscriber import Subject, SubscriberExercises
from .outcome import RuleBrokenError, verifies
from .run import Run


class Puppet(Protocol):
    """The controls that make a subscriber request and cancel."""

    def trigger_request(self, n: int, /) -> None:
        """Make the subscriber call request(n) on its subscription."""

    def trigger_cancel(self) -> None:
        """Make the subscriber call cancel() on its subscription."""


@define(eq=False)
class WhiteboxProbe:
    """The probe by which a subscriber under test informs the verification."""

    puppet: Puppet | None = field(init=False, default=None)
    items: list[Any] = field(init=False, factory=new_list)
    error: BaseException | None = field(init=False, default=None)
    completed: bool = field(init=False, default=False)

    def register_on_subscribe(self, puppet: Puppet) -> None:
        """To be called at the end of on_subscribe, with the controls of the subscriber."""
        self.puppet = puppet

    def register_on_next(self, item: Any) -> None:
        """To be called in on_next."""
        self.items.append(item)

    def register_on_error(self, error: BaseException) -> None:
        """To be called in on_error."""
        self.error = error

    def register_on_complete(self) -> None:
        """To be called in on_complete."""
        self.completed = True


def _ends(heard: Subject | WhiteboxProbe) -> list[object]:
    """Return the ends that were signalled."""
    ends = [] if heard.error is None else [heard.error]
    return [*ends, *["on_complete"] * heard.completed]


class SubscriberWhiteboxVerification(SubscriberExercises):
    """Verifies a subscriber that reports its signals to a probe, and requests and cancels on command.

    Subclass it and write ``create_subscriber``: a subscriber that calls the probe in each of its four methods.
    """

    __test__ = False

    @abstractmethod
    def create_subscriber(self, probe: WhiteboxProbe) -> Subscriber[Any]:
        """Return a fresh subscriber that reports its signals to ``probe``; called on the running loop."""

    def _make(self, run: Run) -> tuple[Subscriber[Any], Any]:
        probe = WhiteboxProbe()
        return self.create_subscriber(probe), probe

    def _want(self, run: Run, subject: Subject, n: int) -> None:
        puppet = self._puppet(run, subject)
        run.tolerate(lambda: puppet.trigger_request(n))

    async def _leave(self, run: Run, subject: Subject) -> None:
        await self.want(run, subject)
        run.tolerate(self._puppet(run, subject).trigger_cancel)

    def _puppet(self, run: Run, subject: Subject) -> Puppet:
        puppet: Puppet | None = subject.handle.puppet
        run.need(puppet is not None, "the subscriber did not call probe.register_on_subscribe(puppet)")
        assert puppet is not None
        return puppet

    def _heard(self, run: Run, subject: Subject, rule: str | None) -> None:
        """Fail if the probe got other signals than the subscriber."""
        probe: WhiteboxProbe = subject.handle
        run.agree(rule, [*subject.sent, *_ends(subject)], [*probe.items, *_ends(probe)])

    @verifies(None)
    async def test_required_exerciseWhiteboxHappyPath(self, run: Run) -> None:
        """The subscriber under test and its probe work together."""
        subject = await self.begin(run)
        self._want(run, subject, 2)
        await run.rest()
        await self.feed(run, subject, 2)
        subject.complete()
        await run.rest()
        probe: WhiteboxProbe = subject.handle
        if len(probe.items) != 2 or not probe.completed:
            raise RuleBrokenError(
                "the probe was to hear of two elements and the end\n"
                f"  seen: {shown(probe.items)}, completed: {probe.completed}\n"
                "  what to do: call probe.register_on_next(item) and probe.register_on_complete() in the subscriber\n"
                f"  the last signals:\n{run.trace().excerpt()}"
            )
        self._heard(run, subject, None)

    @verifies("2.1")
    async def test_required_spec201_mustSignalDemandViaSubscriptionRequest(self, run: Run) -> None:
        """The subscriber requests."""
        self._heard(run, await self._201(run), "2.1")

    @verifies("2.2", jvm="untested_spec202_shouldAsynchronouslyDispatch", optional=True)
    async def test_optional_spec202_shouldAsynchronouslyDispatch(self, run: Run) -> None:
        """on_next returns quickly. Slow work is done elsewhere."""
        await self._202(run)

    @verifies("2.3")
    async def test_required_spec203_mustNotCallMethodsOnSubscriptionOrPublisherInOnComplete(self, run: Run) -> None:
        """on_complete calls nothing of the subscription."""
        await self._terminal(run, "2.3", error=False)

    @verifies("2.3")
    async def test_required_spec203_mustNotCallMethodsOnSubscriptionOrPublisherInOnError(self, run: Run) -> None:
        """on_error calls nothing of the subscription."""
        await self._terminal(run, "2.3", error=True)

    @verifies("2.4", jvm="untested_spec204_mustConsiderTheSubscriptionAsCancelledInAfterRecievingOnCompleteOrOnError")
    async def test_required_spec204_mustConsiderTheSubscriptionAsCancelledInAfterRecievingOnCompleteOrOnError(
        self, run: Run
    ) -> None:
        """After the end neither request nor cancel is called."""
        await self._204(run)

    @verifies("2.5")
    async def test_required_spec205_mustCallSubscriptionCancelIfItAlreadyHasAnSubscriptionAndReceivesAnotherOnSubscribeSignal(
        self, run: Run
    ) -> None:
        """A second subscription is cancelled, and the first is left alone."""
        await self._205(run)

    @verifies("2.6", jvm="untested_spec206_mustCallSubscriptionCancelIfItIsNoLongerValid")
    async def test_required_spec206_mustCallSubscriptionCancelIfItIsNoLongerValid(self, run: Run) -> None:
        """A subscriber that needs no more cancels."""
        await self._206(run)

    @verifies(
        "2.7",
        jvm="untested_spec207_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSameThreadOrTakeCareOfSynchronization",
    )
    async def test_required_spec207_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSameThreadOrTakeCareOfSynchronization(
        self, run: Run
    ) -> None:
        """Calls of request and cancel don't meet on several threads."""
        await self._207(run)

    @verifies("2.8")
    async def test_required_spec208_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel(
        self, run: Run
    ) -> None:
        """An element after cancel does no harm."""
        await self._208(run)

    @verifies("2.9")
    async def test_required_spec209_mustBePreparedToReceiveAnOnCompleteSignalWithPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_complete after a request does no harm."""
        self._heard(run, await self._terminal(run, "2.9", error=False), "2.9")

    @verifies("2.9")
    async def test_required_spec209_mustBePreparedToReceiveAnOnCompleteSignalWithoutPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_complete before any request does no harm."""
        self._heard(run, await self._terminal(run, "2.9", error=False, demand=False), "2.9")

    @verifies("2.10")
    async def test_required_spec210_mustBePreparedToReceiveAnOnErrorSignalWithPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_error after a request does no harm."""
        self._heard(run, await self._terminal(run, "2.10", error=True), "2.10")

    @verifies("2.10")
    async def test_required_spec210_mustBePreparedToReceiveAnOnErrorSignalWithoutPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_error before any request does no harm."""
        self._heard(run, await self._terminal(run, "2.10", error=True, demand=False), "2.10")

    @verifies("2.11")
    async def test_untested_spec211_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessingOfTheRespectiveEvents(
        self, run: Run
    ) -> None:
        """Not verified: no test could show it."""
        await self._211(run)

    @verifies("2.12", jvm="untested_spec212_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality_specViolation")
    async def test_required_spec212_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality_specViolation(
        self, run: Run
    ) -> None:
        """Two subscribers are not equal to each other."""
        await self._212(run)

    @verifies("2.13")
    async def test_required_spec213_onSubscribe_mustThrowNullPointerExceptionWhenParametersAreNull(
        self, run: Run
    ) -> None:
        """on_subscribe(None) raises TypeError."""
        await self._213_none(run, "on_subscribe")

    @verifies("2.13")
    async def test_required_spec213_onNext_mustThrowNullPointerExceptionWhenParametersAreNull(self, run: Run) -> None:
        """on_next(None) raises TypeError."""
        await self._213_none(run, "on_next")

    @verifies("2.13")
    async def test_required_spec213_onError_mustThrowNullPointerExceptionWhenParametersAreNull(self, run: Run) -> None:
        """on_error(None) raises TypeError."""
        await self._213_none(run, "on_error")

    @verifies("2.13", jvm="untested_spec213_failingOnSignalInvocation")
    async def test_required_spec213_failingOnSignalInvocation(self, run: Run) -> None:
        """Signals raise nothing."""
        await self._213_failing(run)

    @verifies("3.1", jvm="untested_spec301_mustNotBeCalledOutsideSubscriberContext")
    async def test_required_spec301_mustNotBeCalledOutsideSubscriberContext(self, run: Run) -> None:
        """Request and cancel are called on the loop of the subscriber."""
        await self._301(run)

    @verifies("3.8")
    async def test_required_spec308_requestMustRegisterGivenNumberElementsToBeProduced(self, run: Run) -> None:
        """Demands add up."""
        self._heard(run, await self._308(run, told=True), "3.8")

    @verifies("3.10", jvm="untested_spec310_requestMaySynchronouslyCallOnNextOnSubscriber")
    async def test_required_spec310_requestMaySynchronouslyCallOnNextOnSubscriber(self, run: Run) -> None:
        """Elements from inside its own request do no harm."""
        await self._310(run)

    @verifies("3.11", jvm="untested_spec311_requestMaySynchronouslyCallOnCompleteOrOnError")
    async def test_required_spec311_requestMaySynchronouslyCallOnCompleteOrOnError(self, run: Run) -> None:
        """An end from inside its own request does no harm."""
        await self._311(run)

    @verifies("3.14", jvm="untested_spec314_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists")
    async def test_required_spec314_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists(
        self, run: Run
    ) -> None:
        """A publisher that shuts down after cancel does no harm."""
        await self._314(run)

    @verifies("3.15", jvm="untested_spec315_cancelMustNotThrowExceptionAndMustSignalOnError")
    async def test_required_spec315_cancelMustNotThrowExceptionAndMustSignalOnError(self, run: Run) -> None:
        """An on_error from inside its own cancel does no harm."""
        await self._315(run)

    @verifies("3.16", jvm="untested_spec316_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber")
    async def test_required_spec316_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber(self, run: Run) -> None:
        """An on_error from inside its own request does no harm."""
        await self._316(run)
