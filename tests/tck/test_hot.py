"""Shared flows and hubs keep all rules with one subscriber, with two and with many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reactive_aio import Flow, Hub, Publisher, processor
from reactive_aio.tck import PublisherVerification, verify
from tests.tck.test_ours import FACTORIES
from tests.tck.where import somewhere

MANY = 50


def a_hub(elements: int) -> Hub[int]:
    """Return a hub that has ended, and keeps what was emitted for later subscribers."""
    hub: Hub[int] = Hub(idle="drop", replay=max(elements, 1))
    for n in range(elements):
        hub.offer(n)
    hub.complete()
    return hub


def a_processor(elements: int) -> Publisher[int]:
    served = processor(lambda flow: flow.map(int), lag=elements + 1)
    Flow.range(elements).subscribe(served)
    return served


HOT: dict[str, Callable[[int], Publisher[int]]] = {
    "share": lambda n: Flow.range(n).share(),
    "share in lockstep": lambda n: Flow.range(n).share(lag=1),
    "share with a replay": lambda n: Flow.range(n).share(replay=3),
    "share of a share": lambda n: Flow.range(n).share(lag=8).map(int).share(lag=9),
    "cache": lambda n: Flow.range(n).share(replay=100, restart="never"),
    "hub": a_hub,
    "processor": a_processor,
}


def failed() -> Publisher[int]:
    hub: Hub[int] = Hub(idle="drop")
    hub.error(OSError("down"))
    return hub


@pytest.mark.parametrize("loop", FACTORIES)
@pytest.mark.parametrize("number", [1, 2, MANY])
@pytest.mark.parametrize("name", HOT)
def test_what_is_hot_keeps_all_rules(name: str, number: int, loop: str) -> None:
    class Verification(PublisherVerification):
        environment = somewhere(FACTORIES[loop])
        max_elements_from_publisher = 1000
        subscribers_of_multicast = number

        def create_publisher(self, elements: int) -> Publisher[int]:
            return HOT[name](elements)

        def create_failed_publisher(self) -> Publisher[int]:
            return failed() if name == "hub" else Flow.error(OSError("down")).share()

    found = {
        result.about.name: f"{result.outcome}: {result.text}"
        for result in verify(Verification)
        if result.outcome != "held" and "max_elements_from_publisher" not in result.text
    }

    assert {} == found, "\n\n".join(found.values())
