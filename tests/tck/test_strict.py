"""Strict mode: who breaks a rule is told so at once, with the last signals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow, ProtocolViolation
from reactive_aio.strict import KEPT, LONGEST, strict
from tests.subscribers import ByHand, Recorder


async def test_a_publisher_that_delivers_too_much_is_stopped() -> None:
    publisher, subscriber = ByHand(), Recorder(request=2)
    strict(publisher).subscribe(subscriber)
    publisher.next("a", "b")

    with pytest.raises(ProtocolViolation, match=r"§1.1 .*\n  seen: 3 elements for a demand of 2"):
        publisher.next("c")
    assert ["a", "b"] == subscriber.items
    assert isinstance(subscriber.error, ProtocolViolation)
    assert 1 == publisher.cancels


async def test_a_publisher_that_goes_on_after_the_end_is_told() -> None:
    publisher = ByHand()
    strict(publisher).subscribe(Recorder(request=2))
    publisher.complete()

    with pytest.raises(ProtocolViolation, match=r"§1.7"):
        publisher.next("late")


async def test_a_subscriber_that_cancels_in_on_complete_is_told() -> None:
    class Hasty(Recorder):
        def on_complete(self) -> None:
            self.cancel()

    publisher = ByHand()
    publisher.subscribe(strict(Hasty()))

    with pytest.raises(ProtocolViolation, match=r"§2.3"):
        publisher.complete()


async def test_what_a_signal_raises_is_the_cause_of_the_violation() -> None:
    class Clumsy(Recorder):
        def on_next(self, item: Any) -> None:
            raise OSError(item)

    publisher = ByHand()
    strict(publisher).subscribe(Clumsy(request=1))

    with pytest.raises(ProtocolViolation, match=r"§2.13") as raised:
        publisher.next("dropped")
    assert isinstance(raised.value.__cause__, OSError)


async def test_a_long_stream_is_still_counted_to_the_element() -> None:
    publisher, subscriber = ByHand(), Recorder(request=1000)
    judged: Any = strict(subscriber)
    publisher.subscribe(judged)
    publisher.next(*range(1000))

    assert len(judged.recorder.signals) <= LONGEST + 1
    with pytest.raises(ProtocolViolation, match="1001 elements for a demand of 1000") as raised:
        publisher.next("one more")
    assert KEPT == str(raised.value).count("\n    #")


async def test_what_keeps_the_rules_passes_unchanged() -> None:
    subscriber = Recorder(request=500)
    strict(Flow.range(300)).subscribe(subscriber)
    await subscriber.over.wait()

    assert list(range(300)) == subscriber.items
    assert "complete" == subscriber.kinds[-1]
    assert [0, 1, 2] == await Flow.from_publisher(strict(Flow.range(3))).to_list()


async def test_what_is_neither_publisher_nor_subscriber_is_refused() -> None:
    nothing: Any = asyncio.Event()

    with pytest.raises(TypeError, match="strict"):
        strict(nothing)
