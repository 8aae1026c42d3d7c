"""Verifications in pytest: the tests that it collects, and how it shows their findings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
