"""The verification of publishers."""
# ruff: noqa: N802 - the names are those of the JVM's TCK

from __future__ import annotations

import threading

from .._core.guard import shown
from ..spec import UNBOUNDED
from ._publisher_1 import PublisherTests
from .outcome import ours, verifies
from .probe import Probe
from .run import Run


class PublisherVerification(PublisherTests):
    """Verifies a publisher: subclass it and write ``create_publisher``, best ``create_failed_publisher`` too.

    ::

        class TestMyPublisher(PublisherVerification):
            def create_publisher(self, elements):
                return MyPublisher(range(elements))
    """

    __test__ = False

    @verifies("3.2")
    async def test_required_spec302_mustAllowSynchronousRequestCallsFromOnNextAndOnSubscribe(self, run: Run) -> None:
        """Request works from inside on_subscribe and on_next."""
        await self.subscribed(run, 5, Probe(start=lambda probe: probe.request(1), react=lambda probe: probe.request(1)))
        await run.check("3.2")

    @verifies("3.3")
    async def test_required_spec303_mustNotAllowUnboundedRecursion(self, run: Run) -> None:
        """Request from inside on_next does not deliver from inside it, beyond the bound."""
        elements = min(self.bounded_depth_of_on_next_and_request_recursion + 20, self.max_elements_from_publisher)
        probe = Probe(react=lambda probe: probe.request(1))
        await self.subscribed(run, elements, probe)
        await self.ask(run, probe, 1)
        run.need(len(probe.items) > 1, "too few elements came; see rule 3.2")
        await run.check("3.3")

    @verifies("3.4", jvm="untested_spec304_requestShouldNotPerformHeavyComputations", optional=True)
    async def test_optional_spec304_requestShouldNotPerformHeavyComputations(self, run: Run) -> None:
        """Request returns quickly."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, 1, 1, 1)
        await run.check("3.4")

    @verifies("3.5", jvm="untested_spec305_cancelMustNotSynchronouslyPerformHeavyComputation")
    async def test_required_spec305_cancelMustNotSynchronouslyPerformHeavyComputation(self, run: Run) -> None:
        """Cancel returns quickly, on the loop and on another thread."""
        for _ in range(2):
            probe = await self.subscribed(run, 5)
            await self.ask(run, probe, 1)
            probe.cancel()
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, 1)
        other = threading.Thread(target=probe.cancel)
        other.start()
        other.join()
        await run.check("3.5")

    @verifies("3.6")
    async def test_required_spec306_afterSubscriptionIsCancelledRequestMustBeNops(self, run: Run) -> None:
        """Request after cancel has no effect, however often and with whatever number."""
        probe = await self._cancelled(run)
        await self.ask(run, probe, 1, 10, -1)
        await run.check("3.6")

    @verifies("3.7")
    async def test_required_spec307_afterSubscriptionIsCancelledAdditionalCancelationsMustBeNops(
        self, run: Run
    ) -> None:
        """Cancel after cancel has no effect."""
        probe = await self._cancelled(run)
        for _ in range(3):
            probe.cancel()
            await run.rest()
        await run.check("3.7")

    async def _cancelled(self, run: Run, elements: int = 5) -> Probe:
        probe = await self.subscribed(run, elements)
        await self.ask(run, probe, 1)
        run.need(not probe.over, "the stream ended before it could be cancelled")
        probe.cancel()
        await run.rest()
        return probe

    @ours("3.8")
    async def test_required_spec308_publisher_requestMustAddToTheDemand(self, run: Run) -> None:
        """Requests one after another, with nothing in between, add up."""
        probe = await self.subscribed(run, 5)
        probe.request(2)
        probe.request(3)
        await run.check("3.8")

    @verifies("3.9")
    async def test_required_spec309_requestZeroMustSignalIllegalArgumentException(self, run: Run) -> None:
        """request(0) is answered by on_error with a ValueError."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, 0)
        await run.check("3.9")

    @verifies("3.9")
    async def test_required_spec309_requestNegativeNumberMustSignalIllegalArgumentException(self, run: Run) -> None:
        """request(-1) is answered by on_error with a ValueError."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, -1)
        await run.check("3.9")

    @verifies("3.9", optional=True)
    async def test_optional_spec309_requestNegativeNumberMaySignalIllegalArgumentExceptionWithSpecificMessage(
        self, run: Run
    ) -> None:
        """The error of request(-1) cites the rule."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, -1)
        run.need(probe.error is not None, "no on_error came; see the required tests of rule 3.9")
        message = shown(probe.error)
        assert "3.9" in message, f"§3.9 the message does not cite the rule: {message}"

    @verifies("3.12")
    async def test_required_spec312_cancelMustMakeThePublisherToEventuallyStopSignaling(self, run: Run) -> None:
        """Cancel stops the signals before all that was requested has come."""
        elements = min(100, self.max_elements_from_publisher)
        run.need(elements > 2, "too few elements to cancel in between")
        probe = Probe(react=lambda probe: probe.cancel() if len(probe.items) == 1 else None)
        await self.subscribed(run, elements, probe)
        await self.ask(run, probe, elements)
        run.need(probe.items, "no element came")
        await self._cancelled(run, elements)
        await run.check("3.12")

    @verifies("3.13")
    async def test_required_spec313_cancelMustMakeThePublisherEventuallyDropAllReferencesToTheSubscriber(
        self, run: Run
    ) -> None:
        """After cancel the publisher does not refer to the subscriber."""
        probe = await self.subscribed(run, 5)
        await self.ask(run, probe, 1)
        probe.cancel()
        await run.rest()
        run.know(released=await run.released())
        await run.check("3.13")

    @ours("3.14")
    async def test_required_spec314_publisher_mustAnswerSubscribersAfterTheLastHasCancelled(self, run: Run) -> None:
        """A subscriber that comes after the last one has cancelled gets elements or an end."""
        publisher = self.publisher(run, 5)
        probe = run.subscribe(publisher)
        await run.rest()
        await self.ask(run, probe, 1)
        probe.cancel()
        await run.rest()
        await self.ask(run, run.subscribe(publisher, Probe(start=lambda probe: probe.request(1))))
        await run.check("3.14")

    @ours("3.15")
    async def test_required_spec315_publisher_cancelMustReturnNormally(self, run: Run) -> None:
        """Cancel raises nothing, also when nothing has been requested."""
        for requests in ((), (1,)):
            probe = await self.subscribed(run, 5)
            await self.ask(run, probe, *requests)
            probe.cancel()
        await run.check("3.15")

    @ours("3.16")
    async def test_required_spec316_publisher_requestMustReturnNormally(self, run: Run) -> None:
        """Request raises nothing."""
        probe = await self.subscribed(run, 3)
        await self.ask(run, probe, 1, 5)
        await run.check("3.16")

    @verifies("3.17")
    async def test_required_spec317_mustSupportAPendingElementCountUpToLongMaxValue(self, run: Run) -> None:
        """A demand of 2**63-1 is served."""
        probe = await self.subscribed(run, 3)
        await self.ask(run, probe, UNBOUNDED)
        await run.check("3.17")

    @verifies("3.17")
    async def test_required_spec317_mustSupportACumulativePendingElementCountUpToLongMaxValue(self, run: Run) -> None:
        """Demands that add up to 2**63-1 are served."""
        probe = await self.subscribed(run, 3)
        for amount in (UNBOUNDED // 2, UNBOUNDED // 2, 1):
            probe.request(amount)
        await run.check("3.17")

    @verifies("3.17")
    async def test_required_spec317_mustNotSignalOnErrorWhenPendingAboveLongMaxValue(self, run: Run) -> None:
        """Demands that add up to more than 2**63-1 are served, and are not a failure."""
        elements = min(10, self.max_elements_from_publisher)
        probe = Probe(react=lambda probe: probe.request(UNBOUNDED))
        await self.subscribed(run, elements, probe)
        await self.ask(run, probe, UNBOUNDED - 1)
        await run.check("3.17")
