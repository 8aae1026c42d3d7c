"""Verifications in pytest: the tests that it collects, and how it shows their findings."""

from __future__ import annotations

import subprocess
import sys
from abc import ABC
from pathlib import Path

import pytest

from reactive_aio.spec import Subscriber
from reactive_aio.tck import IdentityProcessorVerification, SubscriberBlackboxVerification, verify

MODULE = """
from reactive_aio.tck import (
    IdentityProcessorVerification, PublisherVerification, SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
)


class Subscription:
    def __init__(self, subscriber, n):
        self.subscriber, self.items = subscriber, list(range(n))

    def request(self, n):
        for _ in range(n + {extra}):
            if self.items and self.subscriber:
                self.subscriber.on_next(self.items.pop(0))
        if not self.items and self.subscriber:
            subscriber, self.subscriber = self.subscriber, None
            subscriber.on_complete()

    def cancel(self):
        self.subscriber = None


class Plain:
    def __init__(self, n):
        self.n = n

    def subscribe(self, subscriber):
        subscriber.on_subscribe(Subscription(subscriber, self.n))


class TestPlain(PublisherVerification):
    def create_publisher(self, elements):
        return Plain(elements)
"""


def outcome(folder: Path, text: str, *options: str) -> str:
    module = folder / "test_plain.py"
    module.write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), "-o", "addopts="]
    done = subprocess.run([*command, "-q", "-rxs", *options, str(module)], capture_output=True, text=True, check=False)
    return done.stdout


@pytest.mark.costly
def test_a_subclass_is_collected_and_the_base_classes_are_not(tmp_path: Path) -> None:
    every_class = ["-o", "python_classes=*"]
    shown = outcome(tmp_path, MODULE.format(extra=0), "--collect-only", *every_class)

    assert "TestPlain::test_required_spec101" in shown
    assert "Verification::" not in shown


def test_a_failure_names_the_rule_tells_what_was_seen_and_what_to_do(tmp_path: Path) -> None:
    shown = outcome(tmp_path, MODULE.format(extra=1), "-k", "spec101")

    assert "§1.1 a publisher signals no more elements than its subscriber has requested" in shown
    assert "seen: 2 elements for a demand of 1" in shown
    assert "what to do: count what was requested" in shown


@pytest.mark.costly
def test_what_is_optional_or_not_verified_is_shown_with_its_reason(tmp_path: Path) -> None:
    shown = outcome(tmp_path, MODULE.format(extra=0), "-k", "spec104 or spec309", "--no-header")

    assert "override create_failed_publisher" in shown
    assert "no on_error came; see the required tests of rule 3.9" in shown


@pytest.mark.costly
def test_it_needs_no_plugin_for_coroutines(tmp_path: Path) -> None:
    shown = outcome(tmp_path, MODULE.format(extra=0), "-p", "no:asyncio", "-k", "spec101 or spec102")

    assert "2 passed" in shown


HALF_WRITTEN = """
from abc import ABC, abstractmethod

from reactive_aio.tck import PublisherVerification, SubscriberBlackboxVerification


class TestTypo(PublisherVerification):
    def create_publiser(self, elements):
        return None


class TestShared(PublisherVerification, ABC):
    subscribers_of_multicast = 3


class TestSmaller(PublisherVerification):
    @abstractmethod
    def create(self):
        ...

    def create_publisher(self, elements):
        return self.create()


class TestLeftOut(SubscriberBlackboxVerification):
    __test__ = False


def test_another():
    pass
"""


def test_a_class_that_lacks_a_factory_is_named_and_one_that_is_meant_as_a_base_is_not(tmp_path: Path) -> None:
    shown = outcome(tmp_path, HALF_WRITTEN)

    assert "1 passed, 1 warning" in shown
    assert "test_plain.py:7: " in shown
    assert "TestTypo is not collected, since it lacks the method create_publisher" in shown
    assert "abc.ABC" in shown


def test_a_class_with_all_factories_is_not_collected_if_it_says_so() -> None:
    class Whole(SubscriberBlackboxVerification):
        __test__ = False

        def create_subscriber(self) -> Subscriber[object]:
            raise NotImplementedError

    class Inherited(Whole):
        pass

    assert not Whole.__test__
    assert Inherited.__test__


def test_a_program_learns_the_methods_that_are_still_to_be_written() -> None:
    class Half(IdentityProcessorVerification, ABC):
        pass

    with pytest.raises(TypeError, match=r"^Half lacks the method create_identity_processor$"):
        verify(Half)
