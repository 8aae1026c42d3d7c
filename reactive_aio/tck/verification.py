"""The common part of all verifications."""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from ..spec.trace import Facts
from .environment import Environment
from .outcome import About, Result, contents_of, judged
from .run import Run


class Verification(ABC):  # noqa: B024 - what is to be written differs by role
    """A class of tests, to be subclassed with factories for the objects to verify.

    pytest collects a subclass that has all its factories. A subclass that lacks one is warned about, unless it is meant
    as a base: it has ``abc.ABC`` among its bases, adds abstract methods, or sets ``__test__``. A program calls
    ``verify(subclass)`` and gets the results.
    """

    __test__: ClassVar[bool] = False

    environment: Environment = Environment()
    """Where the tests run, and how long they wait for others."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__test__" in vars(cls):
            return
        lacking = _lacking(cls)
        cls.__test__ = not lacking
        if lacking and ABC not in cls.__bases__ and not any(name in vars(cls) for name in lacking):
            warnings.warn(
                f"{cls.__name__} is not collected, since it lacks {_named(lacking)}. "
                "If it is a base of other classes, derive it from abc.ABC too",
                stacklevel=3,  # behind ABCMeta
            )

    def facts(self) -> Facts:
        """Return the facts that are known before a test."""
        return Facts(budget=self.environment.budget)

    def carry_out(self, about: About, body: Callable[[Any, Run], Any]) -> Result:
        """Run one test."""
        run = Run(self.environment, self.facts())
        return judged(about, lambda: run.main(lambda run: body(self, run)))


def _lacking(verification: type[Verification]) -> list[str]:
    """Return the methods that are still to be written. ABCMeta collects them only after ``__init_subclass__``."""
    members = ((name, getattr(verification, name, None)) for name in dir(verification))
    return [name for name, member in members if getattr(member, "__isabstractmethod__", False)]


def _named(methods: list[str]) -> str:
    return f"the method{'s' if len(methods) > 1 else ''} {', '.join(methods)}"


def verify(verification: type[Verification], only: Iterable[str] | None = None) -> list[Result]:
    """Run all tests of a verification, or the named ones, and return their results.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.tck import PublisherVerification, verify
    >>> class RangeVerification(PublisherVerification):
    ...     def create_publisher(self, elements):
    ...         return Flow.range(elements)
    >>> [result for result in verify(RangeVerification) if result.outcome == "broken"]
    []
    """
    lacking = _lacking(verification)
    if lacking:
        raise TypeError(f"{verification.__name__} lacks {_named(lacking)}")
    subject, results = verification(), list[Result]()
    names = contents_of(verification) if only is None else {name: contents_of(verification)[name] for name in only}
    for name, about in names.items():
        body = getattr(verification, name).body
        results.append(subject.carry_out(about, body))
    return results
