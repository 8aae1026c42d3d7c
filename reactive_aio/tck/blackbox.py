"""The verification of subscribers as they are."""
# ruff: noqa: N802 - the names are those of the JVM's TCK

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ..spec import Subscriber
from ._subscriber import Subject, SubscriberExercises
from .outcome import NotVerifiedError, verifies
from .run import Run


class SubscriberBlackboxVerification(SubscriberExercises):
    """Verifies a subscriber from the outside: subclass it and write ``create_subscriber``.

    A subscriber can't be made to act from outside. Tests that need it to cancel run only if ``elements_needed`` says
    when it will.
    """

    __test__ = False

    elements_needed: int | None = None
    """The number of elements after which the subscriber cancels, or None if it takes all elements."""

    @abstractmethod
    def create_subscriber(self) -> Subscriber[Any]:
        """Return a fresh subscriber; called on the running loop."""

    def trigger_request(self, subscriber: Subscriber[Any]) -> None:
        """Make the subscriber request, if it does not do so without help."""

    def _make(self, run: Run) -> tuple[Subscriber[Any], Any]:
        return self.create_subscriber(), None

    def _want(self, run: Run, subject: Subject, n: int) -> None:
        run.tolerate(lambda: self.trigger_request(subject.subscriber))

    async def _leave(self, run: Run, subject: Subject) -> None:
        if self.elements_needed is None:
            raise NotVerifiedError(
                "not verified: set elements_needed to say after how many elements the subscriber cancels"
            )
        for _ in range(self.elements_needed):
            await self.want(run, subject)
            await self.feed(run, subject, 1)

    @verifies("2.1")
    async def test_required_spec201_blackbox_mustSignalDemandViaSubscriptionRequest(self, run: Run) -> None:
        """The subscriber requests."""
        await self._201(run)

    @verifies("2.2", jvm="untested_spec202_blackbox_shouldAsynchronouslyDispatch", optional=True)
    async def test_optional_spec202_blackbox_shouldAsynchronouslyDispatch(self, run: Run) -> None:
        """on_next returns quickly. Slow work is done elsewhere."""
        await self._202(run)

    @verifies("2.3")
    async def test_required_spec203_blackbox_mustNotCallMethodsOnSubscriptionOrPublisherInOnComplete(
        self, run: Run
    ) -> None:
        """on_complete calls nothing of the subscription."""
        await self._terminal(run, "2.3", error=False)

    @verifies("2.3")
    async def test_required_spec203_blackbox_mustNotCallMethodsOnSubscriptionOrPublisherInOnError(
        self, run: Run
    ) -> None:
        """on_error calls nothing of the subscription."""
        await self._terminal(run, "2.3", error=True)

    @verifies(
        "2.4", jvm="untested_spec204_blackbox_mustConsiderTheSubscriptionAsCancelledInAfterRecievingOnCompleteOrOnError"
    )
    async def test_required_spec204_blackbox_mustConsiderTheSubscriptionAsCancelledInAfterRecievingOnCompleteOrOnError(
        self, run: Run
    ) -> None:
        """After the end neither request nor cancel is called."""
        await self._204(run)

    @verifies("2.5")
    async def test_required_spec205_blackbox_mustCallSubscriptionCancelIfItAlreadyHasAnSubscriptionAndReceivesAnotherOnSubscribeSignal(
        self, run: Run
    ) -> None:
        """A second subscription is cancelled, and the first is left alone."""
        await self._205(run)

    @verifies("2.6", jvm="untested_spec206_blackbox_mustCallSubscriptionCancelIfItIsNoLongerValid")
    async def test_required_spec206_blackbox_mustCallSubscriptionCancelIfItIsNoLongerValid(self, run: Run) -> None:
        """A subscriber that needs no more cancels."""
        await self._206(run)

    @verifies(
        "2.7",
        jvm="untested_spec207_blackbox_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSameThreadOrTakeCareOfSynchronization",
    )
    async def test_required_spec207_blackbox_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSameThreadOrTakeCareOfSynchronization(
        self, run: Run
    ) -> None:
        """Calls of request and cancel don't meet on several threads."""
        await self._207(run)

    @verifies(
        "2.8", jvm="untested_spec208_blackbox_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel"
    )
    async def test_required_spec208_blackbox_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel(
        self, run: Run
    ) -> None:
        """An element after cancel does no harm."""
        await self._208(run)

    @verifies("2.9")
    async def test_required_spec209_blackbox_mustBePreparedToReceiveAnOnCompleteSignalWithPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_complete after a request does no harm."""
        await self._terminal(run, "2.9", error=False)

    @verifies("2.9")
    async def test_required_spec209_blackbox_mustBePreparedToReceiveAnOnCompleteSignalWithoutPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_complete before any request does no harm."""
        await self._terminal(run, "2.9", error=False, demand=False)

    @verifies("2.10")
    async def test_required_spec210_blackbox_mustBePreparedToReceiveAnOnErrorSignalWithPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_error after a request does no harm."""
        await self._terminal(run, "2.10", error=True)

    @verifies("2.10")
    async def test_required_spec210_blackbox_mustBePreparedToReceiveAnOnErrorSignalWithoutPrecedingRequestCall(
        self, run: Run
    ) -> None:
        """on_error before any request does no harm."""
        await self._terminal(run, "2.10", error=True, demand=False)

    @verifies("2.11")
    async def test_untested_spec211_blackbox_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessingOfTheRespectiveEvents(
        self, run: Run
    ) -> None:
        """Not verified: no test could show it."""
        await self._211(run)

    @verifies("2.12", jvm="untested_spec212_blackbox_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality")
    async def test_required_spec212_blackbox_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality(
        self, run: Run
    ) -> None:
        """Two subscribers are not equal to each other."""
        await self._212(run)

    @verifies("2.13")
    async def test_required_spec213_blackbox_onSubscribe_mustThrowNullPointerExceptionWhenParametersAreNull(
        self, run: Run
    ) -> None:
        """on_subscribe(None) raises TypeError."""
        await self._213_none(run, "on_subscribe")

    @verifies("2.13")
    async def test_required_spec213_blackbox_onNext_mustThrowNullPointerExceptionWhenParametersAreNull(
        self, run: Run
    ) -> None:
        """on_next(None) raises TypeError."""
        await self._213_none(run, "on_next")

    @verifies("2.13")
    async def test_required_spec213_blackbox_onError_mustThrowNullPointerExceptionWhenParametersAreNull(
        self, run: Run
    ) -> None:
        """on_error(None) raises TypeError."""
        await self._213_none(run, "on_error")

    @verifies("2.13", jvm="untested_spec213_blackbox_failingOnSignalInvocation")
    async def test_required_spec213_blackbox_failingOnSignalInvocation(self, run: Run) -> None:
        """Signals raise nothing."""
        await self._213_failing(run)

    @verifies("3.1", jvm="untested_spec301_blackbox_mustNotBeCalledOutsideSubscriberContext")
    async def test_required_spec301_blackbox_mustNotBeCalledOutsideSubscriberContext(self, run: Run) -> None:
        """Request and cancel are called on the loop of the subscriber."""
        await self._301(run)

    @verifies("3.8", jvm="untested_spec308_blackbox_requestMustRegisterGivenNumberElementsToBeProduced")
    async def test_required_spec308_blackbox_requestMustRegisterGivenNumberElementsToBeProduced(self, run: Run) -> None:
        """Demands add up."""
        await self._308(run, told=False)

    @verifies("3.10", jvm="untested_spec310_blackbox_requestMaySynchronouslyCallOnNextOnSubscriber")
    async def test_required_spec310_blackbox_requestMaySynchronouslyCallOnNextOnSubscriber(self, run: Run) -> None:
        """Elements from inside its own request do no harm."""
        await self._310(run)

    @verifies("3.11", jvm="untested_spec311_blackbox_requestMaySynchronouslyCallOnCompleteOrOnError")
    async def test_required_spec311_blackbox_requestMaySynchronouslyCallOnCompleteOrOnError(self, run: Run) -> None:
        """An end from inside its own request does no harm."""
        await self._311(run)

    @verifies("3.14", jvm="untested_spec314_blackbox_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists")
    async def test_required_spec314_blackbox_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists(
        self, run: Run
    ) -> None:
        """A publisher that shuts down after cancel does no harm."""
        await self._314(run)

    @verifies("3.15", jvm="untested_spec315_blackbox_cancelMustNotThrowExceptionAndMustSignalOnError")
    async def test_required_spec315_blackbox_cancelMustNotThrowExceptionAndMustSignalOnError(self, run: Run) -> None:
        """An on_error from inside its own cancel does no harm."""
        await self._315(run)

    @verifies("3.16", jvm="untested_spec316_blackbox_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber")
    async def test_required_spec316_blackbox_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber(
        self, run: Run
    ) -> None:
        """An on_error from inside its own request does no harm."""
        await self._316(run)
