"""The common part of all verifications."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from ..spec.trace import Facts
from .environment import Environment
from .outcome import About, Result, contents_of, judged
from .run import Run


class Verification(ABC):  # noqa: B024 - what is to be written differs by role
    """A class of tests, to be subclassed with factories for the objects to verify.

    pytest collects a subclass as usual. A program calls ``verify(subclass)`` and gets the results.
    """

    __test__: ClassVar[bool] = False

    environment: Environment = Environment()
    """Where the tests run, and how long they wait for others."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # ABCMeta fills __abstractmethods__ in only later; a class is a test when nothing is left to be given.
        cls.__test__ = not any(getattr(getattr(cls, name, None), "__isabstractmethod__", False) for name in dir(cls))

    def facts(self) -> Facts:
        """Return the facts that are known before a test."""
        return Facts(budget=self.environment.budget)

    def carry_out(self, about: About, body: Callable[[Any, Run], Any]) -> Result:
        """Run one test."""
        run = Run(self.environment, self.facts())
        return judged(about, lambda: run.main(lambda run: body(self, run)))


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
    if inspect.isabstract(verification):
        raise TypeError(f"{verification.__name__} has methods that are still to be written")
    subject, results = verification(), list[Result]()
    names = contents_of(verification) if only is None else {name: contents_of(verification)[name] for name in only}
    for name, about in names.items():
        body = getattr(verification, name).body
        results.append(subject.carry_out(about, body))
    return results
