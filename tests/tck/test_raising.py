"""Whatever class of exception the subject of a verification raises, it is a finding, and the other tests go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio.tck import PublisherVerification, Result, SubscriberBlackboxVerification, Verification, verify
from tests.tck.mutants.correct import GoodPublisher, GoodSubscriber, GoodSubscription
from tests.tck.where import patient


class OwnBaseError(BaseException):
    """Of a class that `except Exception` does not catch."""


class FalseError(Exception):
    """Is false."""

    def __bool__(self) -> bool:
        return False


class MuteError(Exception):
    """Can't be shown."""

    def __repr__(self) -> str:
        raise KeyError("repr")

    __str__ = __repr__


ERRORS = [OwnBaseError, FalseError, MuteError, GeneratorExit, asyncio.CancelledError, SystemExit, KeyboardInterrupt]


def broken(verification: type[Verification]) -> dict[str, Result]:
    verification.environment = patient()
    return {
        result.about.name.partition("spec")[2].partition("_")[0]: result
        for result in verify(verification)
        if result.outcome == "broken"
    }


def subscriber(make: Callable[[], Any]) -> type[Verification]:
    class Verified(SubscriberBlackboxVerification):
        def create_subscriber(self) -> Any:
            return make()

    return Verified


def publisher(subscription: type[GoodSubscription]) -> type[Verification]:
    class Verified(PublisherVerification):
        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=subscription)

    return Verified


@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_of_a_subscriber_breaks_rule_2_13(error: type[BaseException]) -> None:
    class Raising(GoodSubscriber):
        def on_next(self, item: Any) -> None:
            super().on_next(item)
            raise error

    found = broken(subscriber(Raising))

    assert {"213", "310", "308"} >= found.keys() >= {"213"}
    assert f"on_next raised {'<' * (error is MuteError)}{error.__name__}" in found["213"].text


@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_of_request_breaks_rule_3_16(error: type[BaseException]) -> None:
    class Raising(GoodSubscription):
        def request(self, n: int) -> None:
            super().request(n)
            raise error

    assert "316" in broken(publisher(Raising))


@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_of_subscribe_breaks_rule_1_9(error: type[BaseException]) -> None:
    class Raising(GoodPublisher):
        def start(self, subscriber: Any) -> None:
            raise error

    class Verified(PublisherVerification):
        def create_publisher(self, elements: int) -> Any:
            return Raising(elements)

    assert "109" in broken(Verified)


# A KeyboardInterrupt that no signal raises is the one of who runs the tests.
@pytest.mark.parametrize("error", [error for error in ERRORS if error is not KeyboardInterrupt])
def test_an_exception_of_a_callback_of_a_publisher_leaves_the_other_tests_alone(error: type[BaseException]) -> None:
    class Raising(GoodSubscription):
        def deliver(self) -> None:
            asyncio.get_running_loop().call_soon(self.stumble)

        def stumble(self) -> None:
            raise error

    found = broken(publisher(Raising))

    assert "308" in found
