"""A publisher of somebody else's whose request or cancel raises breaks a rule, and hangs nobody."""

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow, hooks


class RaisesFrom:
    def __init__(self, *methods: str) -> None:
        self.methods = methods
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        if "request" in self.methods:
            raise OSError("request raised")
        self.subscriber.on_next("first")

    def cancel(self) -> None:
        if "cancel" in self.methods:
            raise OSError("cancel raised")


async def test_3_16_what_request_raises_ends_the_flow() -> None:
    with pytest.raises(OSError, match="request raised"):
        await asyncio.wait_for(Flow.from_publisher(RaisesFrom("request")).to_list(), 60)


async def test_3_15_what_cancel_raises_goes_to_the_hook() -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        assert "first" == await asyncio.wait_for(Flow.from_publisher(RaisesFrom("cancel")).first(), 60)

    assert ["cancel raised"] == [str(error) for error in dropped]


async def test_3_15_and_3_16_both_may_raise() -> None:
    with (
        hooks.using(on_error_dropped=lambda _: None),
        pytest.raises(OSError, match="request raised"),
    ):
        await asyncio.wait_for(Flow.from_publisher(RaisesFrom("request", "cancel")).to_list(), 60)
