"""Makes docs/rules.md: each rule with its tests and its mutants. ``python -m tests.tck.rules_page`` writes it."""

from __future__ import annotations

from pathlib import Path

from reactive_aio.spec import RULES
from reactive_aio.spec.predicates import NEVER_SEEN
from reactive_aio.tck import (
    About,
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    contents_of,
)
from tests.tck.mutants import MUTANTS

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

HEAD = """# The rules, their tests and their mutants

This page is generated (`python -m tests.tck.rules_page`); a test checks that it is up to date.

The table has each rule of [Reactive Streams 1.0.4](https://github.com/reactive-streams/reactive-streams-jvm/blob/v1.0.4/README.md#specification),
in a sentence of ours, with the tests of `reactive_aio.tck` that verify it, and the *mutants*. A mutant is a publisher,
subscriber or processor that breaks the rule on purpose and fails exactly these tests. Where it breaks more than one rule and
fails others as well, the table names them.

Names of tests are those of the JVM's TCK. *(a stub there)*: the JVM's TCK has the name but no test.
*(ours)*: it has no such name. *optional*: the test reports a broken rule, but does not fail.

| rule | tests | mutants |
| --- | --- | --- |
"""


def tests() -> dict[str, About]:
    """Return the tests of all verifications."""
    roles = [
        PublisherVerification,
        SubscriberWhiteboxVerification,
        SubscriberBlackboxVerification,
        IdentityProcessorVerification,
    ]
    return {name: about for role in roles for name, about in contents_of(role).items()}


def shown(about: About) -> str:
    """Show a test with what is to be said of it."""
    notes: list[str] = []
    if about.name.startswith("test_untested_"):
        notes.append(f"not verified: {NEVER_SEEN[about.rule or '']}")
    elif (about.jvm or "").startswith("untested_"):
        notes.append("a stub there")
    elif not about.jvm:
        notes.append("ours")
    if about.optional:
        notes.append("optional")
    return f"`{about.name}`" + (f" *({', '.join(notes)})*" if notes else "")


def row(rule: str) -> str:
    """Return the row of a rule."""
    own = {name: about for name, about in tests().items() if about.rule == rule}
    mutants: list[str] = []
    for mutant in MUTANTS:
        if mutant.rule == rule:
            others = sorted(
                {about.rule or "set-up" for name, about in tests().items() if name in mutant.fails - set(own)}
            )
            also = f" (also fails {', '.join(others)})" if others else ""
            mutants.append(f"`{mutant.name}` {mutant.text}{also}")
    cells = [f"**{rule}** {RULES[rule]}", "<br>".join(map(shown, own.values())), "<br>".join(mutants) or "none"]
    return f"| {' | '.join(cells)} |\n"


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(map(row, RULES))


if __name__ == "__main__":
    PAGE.write_text(page())
