"""The verification suite is itself verified: every mutant is noticed, by exactly the tests that are there for it."""

import pytest

from reactive_aio.spec import RULES, recorder
from reactive_aio.spec.predicates import NEVER_SEEN
from reactive_aio.tck import Verification, verify
from tests.tck.mutants import MUTANTS, Mutant
from tests.tck.mutants.clock import CLOCK
from tests.tck.mutants.correct import GoodProcessor, GoodPublisher, GoodSubscriber
from tests.tck.mutants.mutant import (
    blackbox_verification,
    processor_verification,
    publisher_verification,
    whitebox_verification,
)
from tests.tck.where import patient

CORRECT = {
    "publisher": publisher_verification(GoodPublisher, patient()),
    "whitebox": whitebox_verification(GoodSubscriber, patient()),
    "blackbox": blackbox_verification(GoodSubscriber, patient()),
    "processor": processor_verification(GoodProcessor, patient()),
}
# The correct processor serves one subscriber, as a publisher may.
UNICAST = "spec111"


@pytest.fixture(autouse=True)
def only_mutants_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "time", CLOCK)


@pytest.mark.costly
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_fails_exactly_the_tests_that_are_there_for_it(mutant: Mutant) -> None:
    failed = {
        result.about.name: result.text
        for result in verify(mutant.verification)
        if result.outcome in {"broken", "does not hold"} and not (is_processor(mutant) and UNICAST in result.about.name)
    }

    assert mutant.fails == failed.keys(), "\n".join(failed.values())


def is_processor(mutant: Mutant) -> bool:
    return "(processor)" in mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_failure_names_the_rule_and_says_what_to_do(mutant: Mutant) -> None:
    (result, *_) = verify(mutant.verification, [min(mutant.fails, key=lambda name: name.split("spec")[-1])])

    assert result.outcome in {"broken", "does not hold"}
    assert result.about.rule is None or f"§{result.about.rule}" in result.text


@pytest.mark.parametrize("role", CORRECT)
def test_what_is_correct_passes_all_tests(role: str) -> None:
    verification: type[Verification] = CORRECT[role]
    results = verify(verification)
    other = {result.about.name for result in results if result.outcome != "held"}

    assert {name for name in other if "spec211" not in name and not (role == "processor" and UNICAST in name)} == set()


def test_every_rule_that_can_be_verified_has_a_mutant() -> None:
    assert set(RULES) - set(NEVER_SEEN) == {mutant.rule for mutant in MUTANTS}
