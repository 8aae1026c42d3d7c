"""The tests of publishers by chapter 1 of the specification."""
# ruff: noqa: N802 - the names are those of the JVM's TCK

from __future__ import annotations

import time

from .._core.guard import FAILURES, shown
from ..spec import quote
from ..spec.trace import Kind
from ._base import PublisherBase
from .outcome import DoesNotHoldError, NotVerifiedError, RuleBrokenError, ours, verifies
from .probe import Probe
from .run import Run


class PublisherTests(PublisherBase):
    """Chapter 1: signals."""

    __test__ = False

    @verifies(None)
    async def test_required_createPublisher1MustProduceAStreamOfExactly1Element(self, run: Run) -> None:
        """The factory gives one element when it is asked for one."""
        await self._exactly(run, 1)

    @verifies(None)
    async def test_required_createPublisher3MustProduceAStreamOfExactly3Elements(self, run: Run) -> None:
        """The factory gives three elements when it is asked for three."""
        await self._exactly(run, 3)

    async def _exactly(self, run: Run, elements: int) -> None:
        probe = await self.subscribed(run, elements)
        await self.ask(run, probe, *[1] * elements)
        if len(probe.items) != elements or probe.error is not None:
            ended = "" if probe.error is None else f" and {shown(probe.error)}"
            raise RuleBrokenError(
                f"create_publisher({elements}) must give {elements} elements\n"
                f"  seen: {shown(probe.items)}{ended} for as many requests of 1\n"
                f"  the last signals:\n{run.trace().excerpt()}"
            )

    @verifies(None)
    async def test_required_validate_maxElementsFromPublisher(self, run: Run) -> None:
        """The bound on elements is one that tests can work with."""
        if self.max_elements_from_publisher < 0:
            raise RuleBrokenError(
                f"max_elements_from_publisher is {self.max_elements_from_publisher}, but it must be at least 0"
            )

    @verifies(None)
    async def test_required_validate_boundedDepthOfOnNextAndRequestRecursion(self, run: Run) -> None:
        """The bound on recursion is at least 1."""
        bound = self.bounded_depth_of_on_next_and_request_recursion
        if bound < 1:
            raise RuleBrokenError(
                f"bounded_depth_of_on_next_and_request_recursion is {bound}, but it must be at least 1"
            )

    @verifies("1.1")
    async def test_required_spec101_subscriptionRequestMustResultInTheCorrectNumberOfProducedElements(
        self, run: Run
    ) -> None:
        """Request by request, no more elements come than were asked for."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, 1, 1, 2)
        run.need(probe.items, "no element came")
        await run.check("1.1")

    @verifies("1.2")
    async def test_required_spec102_maySignalLessThanRequestedAndTerminateSubscription(self, run: Run) -> None:
        """A demand for more than there is still meets the end."""
        probe = await self.subscribed(run, 3)
        await self.ask(run, probe, 10)
        run.need(len(probe.items) == 3, "not all elements came")
        await run.check("1.2")

    @verifies("1.3")
    async def test_stochastic_spec103_mustSignalOnMethodsSequentially(self, run: Run) -> None:
        """No signal begins before the one before it has returned."""
        # Where other threads may signal, a subscriber that takes its time gives them the occasion.
        pause = 0.002 if self.environment.threads else 0.0
        probe = Probe(react=lambda probe: time.sleep(pause if len(probe.items) < 4 else 0))
        await self.subscribed(run, 10, probe)
        await self.ask(run, probe, 1, 2, 3, 4)
        run.need(probe.items, "no element came")
        await run.check("1.3")

    @verifies("1.4")
    async def test_optional_spec104_mustSignalOnErrorWhenFails(self, run: Run) -> None:
        """A publisher that fails says so by on_error."""
        probe = run.subscribe(self.failed(run))
        await run.rest()
        await self.ask(run, probe, 1)
        await run.check("1.4")

    @verifies("1.5")
    async def test_required_spec105_mustSignalOnCompleteWhenFiniteStreamTerminates(self, run: Run) -> None:
        """The end comes with the last element, or when one more is asked for."""
        probe = await self.subscribed(run, 3)
        await self.ask(run, probe, 1, 2)
        run.need(len(probe.items) == 3, "not all elements came")
        if not probe.over:
            await self.ask(run, probe, 1)
        await run.check("1.5")

    @ours("1.5", optional=True)
    async def test_optional_spec105_publisher_theEndNeedsNoFurtherDemand(self, run: Run) -> None:
        """The end comes with the last element, and at once where there is none, without more demand."""
        probe = await self.subscribed(run, 3)
        await self.ask(run, probe, 1, 2)
        run.need(len(probe.items) == 3, "not all elements came")
        if not probe.over:
            raise DoesNotHoldError(
                "§1.5 the end is signalled only when one more element is requested, which the rule allows\n"
                f"{run.trace().excerpt()}"
            )

    @verifies("1.5")
    async def test_optional_spec105_emptyStreamMustTerminateBySignallingOnComplete(self, run: Run) -> None:
        """A stream without elements completes, at the latest when an element is asked for."""
        try:
            publisher = self.publisher(run, 0)
        except NotImplementedError as error:
            raise NotVerifiedError("not verified: create_publisher(0) is not implemented") from error
        probe = run.subscribe(publisher)
        await run.rest()
        if not probe.over:
            await self.ask(run, probe, 1)
        if probe.items:
            raise RuleBrokenError(
                f"{quote('1.5')}\n  seen: {shown(probe.items)} from a stream that has no elements\n"
                f"  what to do: end a stream by on_complete alone, not by an element that stands for the end\n"
                f"  the last signals:\n{run.trace().excerpt()}"
            )
        await run.check("1.5")

    @verifies("1.6", jvm="untested_spec106_mustConsiderSubscriptionCancelledAfterOnErrorOrOnCompleteHasBeenCalled")
    async def test_required_spec106_mustConsiderSubscriptionCancelledAfterOnErrorOrOnCompleteHasBeenCalled(
        self, run: Run
    ) -> None:
        """After the end request and cancel do nothing, and the subscriber is let go of."""
        ended = [await self.completed(run)]
        run.know(released=await run.released())
        failed = self.create_failed_publisher()
        if failed is not None:
            ended.append(run.subscribe(failed))
            await self.ask(run, ended[-1], 1)
        for probe in ended:
            await self.ask(run, probe, 1)
            probe.cancel()
        await run.check("1.6")

    @verifies("1.7")
    async def test_required_spec107_mustNotEmitFurtherSignalsOnceOnCompleteHasBeenSignalled(self, run: Run) -> None:
        """Nothing follows on_complete."""
        await self.completed(run)
        await run.check("1.7")

    @verifies("1.7", jvm="untested_spec107_mustNotEmitFurtherSignalsOnceOnErrorHasBeenSignalled")
    async def test_required_spec107_mustNotEmitFurtherSignalsOnceOnErrorHasBeenSignalled(self, run: Run) -> None:
        """Nothing follows on_error."""
        probe = run.subscribe(self.failed(run))
        await run.rest()
        await self.ask(run, probe, 1)
        run.need(probe.error is not None, "no on_error came; see rule 1.4")
        await run.check("1.7")

    @verifies(
        "1.8",
        jvm="untested_spec108_possiblyCanceledSubscriptionShouldNotReceiveOnErrorOrOnCompleteSignals",
        optional=True,
    )
    async def test_optional_spec108_possiblyCanceledSubscriptionShouldNotReceiveOnErrorOrOnCompleteSignals(
        self, run: Run
    ) -> None:
        """After cancel no end is signalled. A late one is tolerated by the specification."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, 2)
        run.need(not probe.over, "the stream ended before it could be cancelled")
        probe.cancel()
        await run.check("1.8")

    @verifies("1.9")
    async def test_required_spec109_mustIssueOnSubscribeForNonNullSubscriber(self, run: Run) -> None:
        """on_subscribe comes first."""
        probe = run.subscribe(self.publisher(run, 3))
        await run.rest()
        await self.ask(run, probe, 3)
        await run.check("1.9")

    @verifies("1.9")
    async def test_required_spec109_subscribeThrowNPEOnNullSubscriber(self, run: Run) -> None:
        """subscribe(None) raises TypeError."""
        publisher = self.publisher(run, 3)
        try:
            run.recorder.connect(publisher, None)
        except FAILURES:
            run.know(provoked=True)
        await run.check("1.9")

    @verifies("1.9")
    async def test_required_spec109_mayRejectCallsToSubscribeIfPublisherIsUnableOrUnwillingToServeThemRejectionMustTriggerOnErrorAfterOnSubscribe(
        self, run: Run
    ) -> None:
        """A publisher that can't serve calls on_subscribe, then on_error."""
        run.subscribe(self.failed(run))
        await run.check("1.9")

    @verifies("1.9", jvm="untested_spec109_subscribeShouldNotThrowNonFatalThrowable")
    async def test_required_spec109_subscribeShouldNotThrowNonFatalThrowable(self, run: Run) -> None:
        """Subscribing raises nothing, also when the publisher fails."""
        run.subscribe(self.publisher(run, 1))
        failed = self.create_failed_publisher()
        if failed is not None:
            run.subscribe(failed)
        await run.check("1.9")

    @verifies("1.10", jvm="untested_spec110_rejectASubscriptionRequestIfTheSameSubscriberSubscribesTwice")
    async def test_required_spec110_rejectASubscriptionRequestIfTheSameSubscriberSubscribesTwice(
        self, run: Run
    ) -> None:
        """Every subscriber is answered, and one that comes twice does not disturb its own stream."""
        publisher = self.publisher(run, 3)
        first, *others = [run.subscribe(publisher) for _ in range(3)]
        await run.rest()
        # All ask for as much: a publisher may wait for its slowest subscriber (1.11).
        for probe in (first, *others):
            await self.ask(run, probe, 1)
        run.know(provoked=True)
        run.subscribe(publisher, first)  # refused, or given a second subscription, which it cancels
        await run.rest()
        seen = len(first.items)
        for probe in (first, *others):
            await self.ask(run, probe, 2)
        trace = run.trace()
        if not first.over and len(first.items) == seen and trace.streams[0].cancelled is None:
            raise RuleBrokenError(f"§1.10 a second subscribe of a subscriber stopped its stream\n{trace.excerpt()}")
        await run.check("1.10")

    @ours("2.12")
    async def test_required_spec212_publisher_mustCallOnSubscribeOnce(self, run: Run) -> None:
        """A subscriber is given one subscription."""
        await self.completed(run)
        await run.check("2.12")

    @ours("2.13")
    async def test_required_spec213_publisher_mustNotSignalNone(self, run: Run) -> None:
        """No element, error or subscription is None."""
        await self.completed(run)
        failed = self.create_failed_publisher()
        if failed is not None:
            run.know(fails=True)
            run.subscribe(failed).request(1)
        await run.check("2.13")

    # -- several subscribers

    async def _several(self, run: Run, elements: int = 5) -> list[Probe]:
        publisher = self.publisher(run, elements)
        probes = [run.subscribe(publisher) for _ in range(self.subscribers_of_multicast)]
        await run.rest()
        run.know(multicast=True)
        return probes

    @verifies("1.11", optional=True)
    async def test_optional_spec111_maySupportMultiSubscribe(self, run: Run) -> None:
        """A second subscriber is served. A publisher may reject it."""
        probes = await self._several(run)
        if any(probe.error is not None or probe.subscription is None for probe in probes):
            raise DoesNotHoldError(f"§1.11 it serves one subscriber only\n{run.trace().excerpt()}")

    @verifies("1.11", optional=True)
    async def test_optional_spec111_registeredSubscribersMustReceiveOnNextOrOnCompleteSignals(self, run: Run) -> None:
        """Each of two subscribers hears elements or the end."""
        probes = await self._several(run)
        for probe in probes:
            await self.ask(run, probe, 5)
        if not all(probe.items or probe.completed for probe in probes):
            raise DoesNotHoldError(f"§1.11 a subscriber heard neither elements nor the end\n{run.trace().excerpt()}")

    @verifies("1.11", optional=True)
    async def test_optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribersWhenRequestingOneByOne(
        self, run: Run
    ) -> None:
        """Two subscribers that ask for one element in turn see the same."""
        probes = await self._several(run)
        for _ in range(5):
            for probe in probes:
                await self.ask(run, probe, 1)
        await run.check("1.11")

    @verifies("1.11", optional=True)
    async def test_optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribersWhenRequestingManyUpfront(
        self, run: Run
    ) -> None:
        """Two subscribers that ask for many see the same."""
        probes = await self._several(run)
        for probe in probes:
            probe.request(4)
        await run.check("1.11")

    @verifies("1.11", optional=True)
    async def test_optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribersWhenRequestingManyUpfrontAndCompleteAsExpected(
        self, run: Run
    ) -> None:
        """Two subscribers that ask for all see the same, and the end."""
        probes = await self._several(run)
        for probe in probes:
            probe.request(6)
        await run.check("1.11")
        ended = [call.kind for stream in run.trace().streams for call in stream.of(Kind.ON_COMPLETE)]
        run.need(ended, "no on_complete came; see rule 1.2")
        if len(ended) < len(probes):
            raise DoesNotHoldError(f"§1.11 not every subscriber heard the end\n{run.trace().excerpt()}")
