"""The processors of the library keep the rules of both their sides, on each loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import reactive_aio
from reactive_aio import Flow, Processor, processor, schedulers
from reactive_aio.tck import IdentityProcessorVerification, verify
from tests.tck.test_ours import FACTORIES, PREFETCHES
from tests.tck.where import somewhere

PROCESSORS: dict[str, Callable[[int], Processor[Any, Any]]] = {
    "processor": lambda _: processor(lambda flow: flow),
    "processor-fused": lambda _: processor(lambda flow: flow.map(lambda n: n + 1).filter(bool).map(lambda n: n - 1)),
    "processor-apart": lambda _: processor(lambda flow: Flow.from_publisher(flow.map(lambda n: n))),
    "processor-boundary": lambda size: processor(
        lambda flow: flow.publish_on(schedulers.current(), prefetch=size).map(int)
    ),
}
"""By their name in the package, each a processor whose output is its input, for a prefetch."""

# A processor serves one subscriber.
UNICAST = "spec111"


@pytest.mark.parametrize("loop", FACTORIES)
@pytest.mark.parametrize("prefetch", PREFETCHES)
@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_keeps_all_rules(name: str, prefetch: int, loop: str) -> None:
    class Verification(IdentityProcessorVerification):
        environment = somewhere(FACTORIES[loop])
        buffer_size = prefetch

        def create_identity_processor(self, buffer_size: int) -> Any:
            return PROCESSORS[name](buffer_size)

    found = {
        result.about.name: f"{result.outcome}: {result.text}"
        for result in verify(Verification)
        if result.outcome != "held" and "spec211" not in result.about.name and UNICAST not in result.about.name
    }

    assert {} == found, "\n\n".join(found.values())


def test_every_processor_of_the_library_is_verified() -> None:
    makers = {
        name
        for name, value in ((name, getattr(reactive_aio, name)) for name in dir(reactive_aio))
        if inspect.isfunction(value) and "Processor[" in str(inspect.signature(value).return_annotation)
    }

    assert {name.partition("-")[0] for name in PROCESSORS} == makers
