"""A workload and its contestants: a function for each, which is all it takes to add one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from attrs import field, frozen

from .harness import Bar, Contestant, Figures, Row, Stopwatch

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
F = TypeVar("F", bound=Callable[..., Any])


def loop_kinds() -> dict[str, LoopFactory]:
    """Return the event loops there are on this machine."""
    kinds: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    with suppress(ImportError):
        kinds["uvloop"] = import_module("uvloop").new_event_loop
    return kinds


def peer(module: str) -> Any:
    """Return a third-party module, which only the group `bench` installs.

    Untyped, since it is not there when the types are checked.
    """
    return import_module(module)


@frozen
class _Entry:
    name: str
    function: Callable[..., Any]
    needs: str
    note: str


class Field:
    """Those who take part, in any number of workloads: a function each."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def contestant(self, name: str, *, needs: str = "", note: str = "") -> Callable[[F], F]:
        """Register a function; ``needs`` is the module of somebody else's that it is about.

        It is a coroutine function of the number of elements, which runs on a loop of its own, or an ordinary
        function of that number and the factory of loops. All else is passed by keyword.
        """

        def register(function: F) -> F:
            self._entries.append(_Entry(name, function, needs, note))
            return function

        return register

    def enlist(
        self, factory: LoopFactory, only: Sequence[str], given: Mapping[str, Any], fixed: int | None
    ) -> Iterator[Contestant]:
        """Yield the contestants on one kind of event loop, perhaps with a fixed number of elements."""
        for each in self._entries:
            if not only or each.name in only:
                run = partial(_run, each.function, factory, given)
                sized = fixed is None
                yield Contestant(each.name, run if sized else partial(run, fixed), sized, each.needs, each.note)


def _run(function: Callable[..., Any], factory: LoopFactory, given: Mapping[str, Any], n: int) -> object:
    if not iscoroutinefunction(function):
        return function(n, factory, **given)

    async def main() -> object:
        # On the loop, so that it is the work that is timed and not the making of a loop.
        stopwatch = Stopwatch()
        result = await function(n, **given)
        return result if isinstance(result, Figures) else stopwatch.figures(result, n)

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


@frozen(kw_only=True)
class Workload:
    """The same work for many; ``rows`` gives it on each kind of event loop."""

    title: str
    by: Field
    given: Mapping[str, Any] = field(factory=dict[str, Any])
    """The arguments of the contestants beside the number of elements."""
    only: Sequence[str] = ()
    """The names of those who take part, if not all."""
    share: float = 1.0
    """The elements of a row, in relation to what a run asks of everybody."""
    fixed: int | None = None
    """The elements of a row, where who is slow can't have fewer."""
    expect: Callable[[int], object] | None = field(default=lambda n: n)
    bars: tuple[Bar, ...] = ()
    limit: str = ""
    rounds: int = 7
    metrics: tuple[str, ...] = ()
    cpu: bool = True
    loops: Sequence[str] = ("asyncio", "uvloop")
    series: str = ""
    x: float = 0
    x_name: str = ""

    def rows(self, n: int) -> list[Row]:
        """Return the row for each kind of loop."""
        return [
            Row(
                f"{self.title}, {kind}",
                self.fixed or max(int(n * self.share), 1),
                tuple(self.by.enlist(factory, self.only, self.given, self.fixed)),
                self.bars,
                self.rounds,
                cpu=self.cpu,
                metrics=self.metrics,
                expect=self.expect,
                limit=self.limit,
                loop=kind,
                series=self.series,
                x=self.x,
                x_name=self.x_name,
            )
            for kind, factory in loop_kinds().items()
            if kind in self.loops
        ]
