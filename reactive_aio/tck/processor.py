"""The verification of processors."""
# ruff: noqa: N802 - the names are those of the JVM's TCK

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from attrs import frozen

from ..spec import Processor, Publisher, Subscriber, Subscription
from ._subscriber import BoomError, Subject
from .outcome import verifies
from .probe import HandPublisher, Probe
from .publisher import PublisherVerification
from .run import Run
from .whitebox import SubscriberWhiteboxVerification, WhiteboxProbe


@frozen(eq=False)
class _Strings:
    """Drives a processor through the subscription of its downstream."""

    subscription: Subscription

    def trigger_request(self, n: int) -> None:
        """Request from the processor."""
        self.subscription.request(n)

    def trigger_cancel(self) -> None:
        """Cancel the processor."""
        self.subscription.cancel()


@frozen(eq=False)
class _Downstream:
    """The subscriber behind a processor, as the whitebox probe needs it."""

    probe: WhiteboxProbe

    def on_subscribe(self, subscription: Subscription) -> None:
        """Pass the controls to the probe."""
        self.probe.register_on_subscribe(_Strings(subscription))

    def on_next(self, item: Any) -> None:
        """Pass the signal to the probe."""
        self.probe.register_on_next(item)

    def on_error(self, error: BaseException) -> None:
        """Pass the signal to the probe."""
        self.probe.register_on_error(error)

    def on_complete(self) -> None:
        """Pass the signal to the probe."""
        self.probe.register_on_complete()


@frozen(eq=False)
class _Failing:
    """A publisher that only fails, and its subscription."""

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Fail."""
        subscriber.on_subscribe(self)
        subscriber.on_error(BoomError())

    def request(self, n: int) -> None:
        """Do nothing: the stream has failed."""

    def cancel(self) -> None:
        """Do nothing: the stream has failed."""


class IdentityProcessorVerification(PublisherVerification, SubscriberWhiteboxVerification):
    """Verifies a processor whose output is its input, in both of its roles.

    Subclass it and write ``create_identity_processor``. The tests of the publisher put a publisher of the verification
    in front of the processor. The tests of the subscriber put a subscriber after it.
    """

    __test__ = False

    buffer_size: int = 16
    """The argument of ``create_identity_processor``."""
    max_supported_subscribers: int = 1
    """How many subscribers the processor serves at a time."""

    @abstractmethod
    def create_identity_processor(self, buffer_size: int) -> Processor[Any, Any]:
        """Return a fresh processor, subscribed to nothing; called on the running loop."""

    def create_publisher(self, elements: int) -> Publisher[Any]:
        """Return a processor that is fed ``elements`` elements."""
        processor = self.create_identity_processor(self.buffer_size)
        HandPublisher([self.create_element(n) for n in range(elements)], ends=True).subscribe(processor)
        return processor

    def create_failed_publisher(self) -> Publisher[Any] | None:
        """Return a processor whose publisher has failed."""
        processor = self.create_identity_processor(self.buffer_size)
        _Failing().subscribe(processor)
        return processor

    def create_subscriber(self, probe: WhiteboxProbe) -> Subscriber[Any]:
        """Return a processor whose output goes to the probe."""
        processor = self.create_identity_processor(self.buffer_size)
        processor.subscribe(_Downstream(probe))
        return processor

    async def _between(self, run: Run, subscribers: int = 1) -> tuple[Subject, list[Probe]]:
        """Put a processor between a publisher and subscribers, all of them recorded."""
        processor = self.create_identity_processor(self.buffer_size)
        subject = Subject(HandPublisher(), processor, None)
        run.recorder.connect(subject.publisher, processor)
        probes = [run.subscribe(processor) for _ in range(subscribers)]
        run.know(upstream=1, downstream=2)
        await run.rest()
        run.need(all(probe.subscription for probe in probes), "no on_subscribe came; see rule 1.9")
        return subject, probes

    @verifies("1.4")
    async def test_required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError(
        self, run: Run
    ) -> None:
        """A failure of upstream reaches every subscriber."""
        subject, probes = await self._between(run, min(2, self.max_supported_subscribers))
        for probe in probes:
            await self.ask(run, probe, 1)
        await self.feed(run, subject, 1)
        run.know(fails=True)
        subject.fail()
        await run.rest()
        # The stream into the processor is not its own: it has its on_error in any case.
        await run.check("1.4")

    @verifies("4.1")
    async def test_required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo(self, run: Run) -> None:
        """Demand that is not yet met is still requested from upstream, however old it is."""
        subject, probes = await self._between(run)
        await self.ask(run, probes[0], 20)
        for _ in range(20):
            await run.check("4.1")
            await self.feed(run, subject, 1)
        await run.check("4.1")
        run.agree("4.1", subject.sent, probes[0].items)

    @verifies("4.2")
    async def test_mustImmediatelyPassOnOnErrorEventsReceivedFromItsUpstreamToItsDownstream(self, run: Run) -> None:
        """A failure of upstream is passed on, without waiting for demand."""
        subject, _ = await self._between(run)
        subject.fail()
        await run.check("4.2")
