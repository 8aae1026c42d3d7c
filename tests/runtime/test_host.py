"""A host: who hears of what a cleanup raises, and when the end may be told that all has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.lifetime import Lifetime


@define(eq=False)
class Reading:
    """Stands for the region that reads a flow: hears of events when the test lets it."""

    posted: list[tuple[Callable[[Any], None], Any]] = field(factory=list)
    heard: list[BaseException] = field(factory=list)

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        self.posted.append((handle, value))

    def inner_cleanup_failed(self, error: BaseException) -> None:
        self.heard.append(error)


def test_nothing_has_ended_before_the_region_that_reads_has_heard_of_a_cleanup() -> None:
    reader: Any = Reading()
    lifetime, ended, failure = Lifetime(), list[str](), OSError("in the cleanup")
    release = lifetime.hold()
    lifetime.then(lambda: ended.append("ended"))
    inner = FlowHost(lifetime, FlowHost(lifetime, reader=reader))

    inner.cleanup_failed(failure)
    release()
    assert ([], []) == (reader.heard, ended)

    ((handle, value),) = reader.posted
    handle(value)
    assert ([failure], ["ended"]) == (reader.heard, ended)
