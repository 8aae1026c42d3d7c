"""The outcome of a test, for pytest and for programs.

The possible results of a test:

- it *held*;
- it is *broken*: the test fails, and says which rule, what was seen and what to do;
- it *does not hold*, but was optional: an expected failure in pytest's terms (``pytest -rx`` shows the reasons);
- it was *not verified*, because something it needs was missing, or because no program can verify it: a skipped test in
  pytest's terms (``pytest -rs``), with the reason.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar

from attrs import field, frozen

if TYPE_CHECKING:
    from .run import Run
    from .verification import Verification

V = TypeVar("V", bound="Verification")

Outcome = Literal["held", "broken", "does not hold", "not verified"]


class RuleBrokenError(AssertionError):
    """A rule of Reactive Streams was broken."""


class DoesNotHoldError(Exception):
    """An optional or recommended part of the specification does not hold."""


class NotVerifiedError(Exception):
    """A test could not verify anything."""


@frozen
class About:
    """The subject of a test."""

    name: str
    rule: str | None
    """The rule, or None for a test of the set-up."""
    jvm: str | None
    """The name of the test in the TCK for the JVM, or an empty string for one of ours."""
    optional: bool


@frozen
class Result:
    """The result of a test."""

    about: About
    outcome: Outcome
    text: str = field(default="", repr=False)


ABOUT: Final = "verifies"
Body = Callable[[V, "Run"], Awaitable[None]]


def verifies(rule: str | None, *, jvm: str | None = None, optional: bool = False) -> Callable[[Body[V]], Any]:
    """Turn a coroutine with a fresh run into a test method.

    ``jvm`` is the name in the TCK for the JVM, if it differs from the method's.
    """

    def wrap(body: Body[V]) -> Callable[[V], None]:
        name = body.__name__
        about = About(name, rule, jvm if jvm is not None else name.removeprefix("test_"), optional)

        # Neither a coroutine function nor one with arguments, lest pytest or its plugins take it for theirs.
        def test(self: V) -> None:
            __tracebackhide__ = True  # the text says it all
            result = self.carry_out(about, body)
            tell(result)

        test.__name__, test.__doc__ = name, body.__doc__
        test.__qualname__, test.__module__ = body.__qualname__, body.__module__
        setattr(test, ABOUT, about)
        setattr(test, "body", body)  # noqa: B010 - functions have no such attribute in the eyes of the type checkers
        return test

    return wrap


def ours(rule: str, *, optional: bool = False) -> Callable[[Body[V]], Any]:
    """Turn a coroutine into a test method that the TCK for the JVM does not have."""
    return verifies(rule, jvm="", optional=optional)


def tell(result: Result) -> None:
    """Report a result to the framework that runs the test."""
    __tracebackhide__ = True
    if result.outcome == "broken":
        raise RuleBrokenError(result.text)
    if result.outcome == "does not hold":
        _report("xfail", result.text)
    elif result.outcome == "not verified":
        _report("skip", result.text)


def _report(how: str, text: str) -> NoReturn:
    try:
        import pytest
    except ImportError:
        import unittest

        raise unittest.SkipTest(text) from None
    report: Callable[[str], NoReturn] = getattr(pytest, how)
    report(text)


def contents_of(verification: type[Verification]) -> dict[str, About]:
    """Return the subjects of the tests of a verification, by their names, in the order of their rules."""
    found: dict[str, About] = {}
    for name, method in inspect.getmembers(verification):
        about = getattr(method, ABOUT, None)
        if isinstance(about, About):
            found[name] = about
    return dict(sorted(found.items(), key=lambda entry: _order(entry[1].rule)))


def _order(rule: str | None) -> tuple[int, ...]:
    return () if rule is None else tuple(int(part) for part in rule.split("."))


def judged(about: About, main: Callable[[], None]) -> Result:
    """Run a test and return its result."""
    try:
        main()
    except DoesNotHoldError as found:
        return Result(about, "does not hold", str(found))
    except NotVerifiedError as reason:
        return Result(about, "not verified", str(reason))
    except (AssertionError, asyncio.CancelledError) as broken:
        return Result(about, "does not hold" if about.optional else "broken", str(broken) or repr(broken))
    return Result(about, "held")
