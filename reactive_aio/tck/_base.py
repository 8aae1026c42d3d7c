"""The common part of the tests of publishers: the factories that a subclass gives, and small scenarios over them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import attrs

from ..spec import UNBOUNDED, Publisher
from ..spec.trace import Facts
from .outcome import NotVerifiedError
from .probe import Probe
from .run import Run
from .verification import Verification


class PublisherBase(Verification):
    """The hooks of `PublisherVerification`."""

    __test__ = False

    max_elements_from_publisher: int = UNBOUNDED - 1
    """The most elements that ``create_publisher`` can be asked for. Tests that need more are not verified."""
    bounded_depth_of_on_next_and_request_recursion: int = 1
    """How deep on_next may be inside itself when request is called from it (rule 3.3); 1 means not at all."""

    subscribers_of_multicast: int = 2
    """How many subscribers the tests have in which several share a publisher (rule 1.11)."""

    @abstractmethod
    def create_publisher(self, elements: int) -> Publisher[Any]:
        """Return a publisher of exactly this many elements, none of them None; called on the running loop."""

    def create_failed_publisher(self) -> Publisher[Any] | None:
        """Return a publisher that signals on_error to each subscriber and nothing else, or None if there is none."""
        return None

    def facts(self) -> Facts:
        """Return what is known before a test."""
        return attrs.evolve(super().facts(), depth=self.bounded_depth_of_on_next_and_request_recursion)

    # -- scenarios

    def publisher(self, run: Run, elements: int) -> Publisher[Any]:
        """Make a publisher of so many elements, or say that it can't be had."""
        if elements > self.max_elements_from_publisher:
            raise NotVerifiedError(
                f"not verified: needs {elements} elements, "
                f"but max_elements_from_publisher is {self.max_elements_from_publisher}"
            )
        run.know(elements=elements)
        return self.create_publisher(elements)

    def failed(self, run: Run) -> Publisher[Any]:
        """Make a failed publisher, or say that there is none."""
        publisher = self.create_failed_publisher()
        if publisher is None:
            raise NotVerifiedError("not verified: override create_failed_publisher to give one")
        run.know(fails=True)
        return publisher

    async def subscribed(self, run: Run, elements: int, probe: Probe | None = None) -> Probe:
        """Subscribe to a publisher of so many elements and wait for rest."""
        probe = run.subscribe(self.publisher(run, elements), probe)
        await run.rest()
        run.need(probe.subscription is not None, "no on_subscribe came; see rule 1.9")
        return probe

    async def ask(self, run: Run, probe: Probe, *amounts: int) -> None:
        """Request and wait for rest, once for each amount."""
        for amount in amounts:
            probe.request(amount)
            await run.rest()

    async def completed(self, run: Run, elements: int = 3) -> Probe:
        """Bring a stream to its end; fewer elements will do."""
        elements = min(elements, self.max_elements_from_publisher)
        probe = await self.subscribed(run, elements)
        await self.ask(run, probe, elements + 1)
        run.need(probe.completed, "no on_complete came; see rules 1.2 and 1.5")
        return probe
