"""The tests are those of the JVM's TCK 1.0.4 by name, and some that it lacks."""

from __future__ import annotations

import pytest

from reactive_aio.spec import RULES
from reactive_aio.spec.predicates import NEVER_SEEN, PREDICATES
from reactive_aio.tck import (
    About,
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
    contents_of,
)

ROLES: dict[type[Verification], int] = {
    PublisherVerification: 38,
    SubscriberWhiteboxVerification: 27,
    SubscriberBlackboxVerification: 26,
    IdentityProcessorVerification: 68,
}
# Of the 35 tests that are stubs there, the two about rule 2.11 stay so.
STUBS_THERE, STUBS_HERE = 35, 2


def abouts(*roles: type[Verification]) -> dict[str, About]:
    return {name: about for role in roles for name, about in contents_of(role).items()}


@pytest.mark.parametrize(("role", "there"), ROLES.items())
def test_a_verification_has_as_many_tests_as_there(role: type[Verification], there: int) -> None:
    assert there == len([about for about in contents_of(role).values() if about.jvm])


def test_all_94_names_are_there_and_none_twice() -> None:
    names = [about.jvm for about in abouts(*ROLES).values() if about.jvm]

    assert (94, 94) == (len(names), len(set(names)))


def test_a_stub_there_is_a_test_here_under_the_same_words() -> None:
    stubs = {name: about for name, about in abouts(*ROLES).items() if (about.jvm or "").startswith("untested_")}
    stubs_here = [name for name in stubs if name.startswith("test_untested_")]

    assert (STUBS_THERE, STUBS_HERE) == (len(stubs), len(stubs_here))
    for name, about in abouts(*ROLES).items():
        if about.jvm:
            assert about.jvm.split("spec")[-1] == name.removeprefix("test_").split("spec")[-1]
        assert not about.optional or name.startswith("test_optional_")


def test_every_rule_has_a_predicate_or_a_reason_why_not() -> None:
    assert set(RULES) == set(PREDICATES) | set(NEVER_SEEN)
    assert not set(PREDICATES) & set(NEVER_SEEN)


def test_every_rule_has_a_test() -> None:
    assert set(RULES) == {about.rule for about in abouts(*ROLES).values() if about.rule}
