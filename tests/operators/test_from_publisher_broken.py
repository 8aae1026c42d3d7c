"""A publisher of somebody else's whose request or cancel raises breaks a rule, and hangs nobody."""

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow, SourceCancelledError, hooks


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


async def test_3_16_an_exception_of_request_ends_the_flow() -> None:
    with pytest.raises(OSError, match="request raised"):
        await asyncio.wait_for(Flow.from_publisher(RaisesFrom("request")).to_list(), 60)


async def test_3_15_an_exception_of_cancel_goes_to_the_hook() -> None:
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


class Outcome(BaseException):
    """An exception outside of `Exception`."""


class Silent:
    def request(self, n: int) -> None:
        """Nothing comes."""

    def cancel(self) -> None:
        """Nothing is left to do."""


class Twice:
    """Subscribes twice, and has its second subscription raise when it is cancelled."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_subscribe(Silent())
        subscriber.on_subscribe(self)
        subscriber.on_complete()

    def cancel(self) -> None:
        raise self.error

    def request(self, n: int) -> None:
        """Nothing comes."""


ANY = [
    OSError("raised"),
    Outcome("raised"),
    asyncio.CancelledError("raised"),
    GeneratorExit("raised"),
    SystemExit("raised"),
]


@pytest.mark.parametrize("error", ANY, ids=lambda error: type(error).__name__)
async def test_2_05_an_exception_of_the_cancel_of_a_second_subscription_goes_to_the_hook(error: BaseException) -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        async with asyncio.timeout(60):
            assert [] == await Flow.from_publisher(Twice(error)).to_list()

    (told,) = dropped
    assert error is (told.__cause__ if isinstance(told, SourceCancelledError) else told)


class Raises:
    """Raises from one of its methods."""

    def __init__(self, method: str, error: BaseException) -> None:
        self.method = method
        self.error = error

    def subscribe(self, subscriber: Any) -> None:
        self._called("subscribe")
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self._called("request")

    def cancel(self) -> None:
        """Nothing is left to do."""

    def _called(self, method: str) -> None:
        if method == self.method:
            raise self.error


@pytest.mark.parametrize("error", ANY, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("method", ["subscribe", "request"])
async def test_3_16_whatever_a_method_raises_ends_the_flow(method: str, error: BaseException) -> None:
    with pytest.raises(BaseException, match="raised") as failed:
        async with asyncio.timeout(60):
            await Flow.from_publisher(Raises(method, error)).to_list()

    assert error in (failed.value, failed.value.__cause__)
