"""A mutant: something deliberately broken, and the tests that must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from reactive_aio.tck import (
    Environment,
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
    WhiteboxProbe,
    contents_of,
)
from tests.tck.where import patient

from .correct import GoodProcessor, GoodPublisher, GoodSubscriber, GoodSubscription


@frozen
class Mutant:
    name: str
    rule: str
    text: str
    verification: type[Verification]
    fails: frozenset[str]
    """Exactly the tests that must notice."""

    def __str__(self) -> str:
        return self.name


MUTANTS: list[Mutant] = []


def publisher_verification(make: Callable[..., Any], environment: Environment) -> type[Verification]:
    class Verified(PublisherVerification):
        def create_publisher(self, elements: int) -> Any:
            return make(elements)

        def create_failed_publisher(self) -> Any:
            return make(0, OSError("failed"))

    Verified.environment = environment
    return Verified


def whitebox_verification(subscriber: type[GoodSubscriber], environment: Environment) -> type[Verification]:
    class Verified(SubscriberWhiteboxVerification):
        def create_subscriber(self, probe: WhiteboxProbe) -> Any:
            return subscriber(probe)

    Verified.environment = environment
    return Verified


def blackbox_verification(subscriber: type[GoodSubscriber], environment: Environment) -> type[Verification]:
    class Verified(SubscriberBlackboxVerification):
        elements_needed = 3

        def create_subscriber(self) -> Any:
            return subscriber(None, 3)

    Verified.environment = environment
    return Verified


def processor_verification(processor: type[GoodProcessor], environment: Environment) -> type[Verification]:
    class Verified(IdentityProcessorVerification):
        def create_identity_processor(self, buffer_size: int) -> Any:
            return processor()

    Verified.environment = environment
    return Verified


def enter(
    made: type[Any],
    rule: str,
    role: str,
    verification: type[Verification],
    fails: tuple[str, ...],
    also: tuple[str, ...],
) -> None:
    tests = contents_of(verification)
    expected = {name for name, about in tests.items() if about.rule == rule and not name.startswith("test_untested")}
    if fails:
        expected = {name for part in fails for name in _matching(part, tests)}
    expected |= {name for part in also for name in _matching(part, tests)}
    text = " ".join((made.__doc__ or "").split())
    MUTANTS.append(Mutant(f"{made.__name__} ({role})", rule, text, verification, frozenset(expected)))


def _matching(part: str, tests: Any) -> list[str]:
    found = [name for name in tests if part in name]
    assert found, f"no test has {part!r} in its name"
    return found


Decorator = Callable[[type[Any]], type[Any]]


def publisher(
    rule: str, *, fails: tuple[str, ...] = (), also: tuple[str, ...] = (), environment: Environment | None = None
) -> Decorator:
    """Enter a broken publisher, or the broken subscription of one."""

    def decorate(made: type[Any]) -> type[Any]:
        if issubclass(made, GoodSubscription):

            def make(*arguments: Any) -> Any:
                return GoodPublisher(*arguments, subscription=made)
        else:
            make = made
        enter(made, rule, "publisher", publisher_verification(make, environment or patient()), fails, also)
        return made

    return decorate


def subscriber(
    rule: str,
    *,
    fails: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    also_whitebox: tuple[str, ...] = (),
    roles: tuple[str, ...] = ("whitebox", "blackbox"),
    environment: Environment | None = None,
) -> Decorator:
    """Enter a broken subscriber, for both verifications of subscribers."""
    where = environment or patient()

    def decorate(made: type[Any]) -> type[Any]:
        if "whitebox" in roles:
            enter(made, rule, "whitebox", whitebox_verification(made, where), fails, also + also_whitebox)
        if "blackbox" in roles:
            enter(made, rule, "blackbox", blackbox_verification(made, where), fails, also)
        return made

    return decorate


def processor(rule: str, *, fails: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> Decorator:
    """Enter a broken processor."""

    def decorate(made: type[Any]) -> type[Any]:
        enter(made, rule, "processor", processor_verification(made, patient()), fails, also)
        return made

    return decorate
