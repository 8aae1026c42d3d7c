"""Publishers that wait by timers: what they set is waited for, on every kind of loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio.tck import PublisherVerification, verify
from reactive_aio.testing import VirtualTimeLoop
from tests.conftest import LOOPS
from tests.tck.mutants.correct import GoodPublisher, GoodSubscription
from tests.tck.where import somewhere


class ByTimer(GoodSubscription):
    """Delivers what was requested a moment later."""

    delay: float = 0.001
    timer: Any = None

    def deliver(self) -> None:
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(self.delay, self.due)

    def due(self) -> None:
        self.timer = None
        if not self.over:
            super().deliver()


class MuchLater(ByTimer):
    delay: float = 3600


@pytest.mark.parametrize("loop", [*LOOPS, "virtual"])
def test_a_publisher_that_delivers_by_timers_can_be_verified(loop: str) -> None:
    class TimerVerification(PublisherVerification):
        environment = somewhere((LOOPS | {"virtual": VirtualTimeLoop})[loop])

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=ByTimer)

    found = {result.about.name: result.text for result in verify(TimerVerification) if result.outcome == "broken"}

    assert {} == found, "\n".join(found.values())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_timer_beyond_patience_is_not_waited_for(loop: str) -> None:
    class Patient(PublisherVerification):
        environment = somewhere(LOOPS[loop])

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=MuchLater)

    (result,) = verify(Patient, ["test_required_createPublisher3MustProduceAStreamOfExactly3Elements"])

    assert "broken" == result.outcome
