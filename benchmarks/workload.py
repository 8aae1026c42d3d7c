"""A workload and its contestants: a function for each, which is all it takes to add one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from attrs import define, field, frozen

from .harness import Bar, Contestant, Row

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
F = TypeVar("F", bound=Callable[..., Any])


def loop_kinds() -> dict[str, LoopFactory]:
    """Give the event loops there are on this machine."""
    kinds: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    with suppress(ImportError):
        kinds["uvloop"] = import_module("uvloop").new_event_loop
    return kinds


def peer(module: str) -> Any:
    """Give a module of somebody else's, which is in the group `bench` and nowhere else.

    Untyped, since it is not there when the types are checked.
    """
    return import_module(module)


@frozen
class _Entry:
    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]
    note: str


@define
class Workload:
    """The same work for many; ``rows`` gives it on each kind of event loop.

    A contestant is a coroutine function of the number of elements, run on a loop of its own, or an ordinary
    function of that number and the factory of loops.
    """

    title: str
    share: float = 1.0
    """The elements of a row, in relation to what a run asks of everybody."""
    expect: Callable[[int], object] = field(default=lambda n: n)
    bars: tuple[Bar, ...] = ()
    limit: str = ""
    rounds: int = 7
    metrics: tuple[str, ...] = ()
    cpu: bool = True
    series: str = ""
    x: float = 0
    x_name: str = ""
    entries: list[_Entry] = field(init=False, factory=list[_Entry])

    def contestant(self, name: str, *, needs: tuple[str, ...] = (), note: str = "") -> Callable[[F], F]:
        """Register a function; ``needs`` names the modules that it can't do without."""

        def register(function: F) -> F:
            self.entries.append(_Entry(name, function, needs, note))
            return function

        return register

    def rows(self, n: int) -> list[Row]:
        """Give the row for each kind of loop."""
        return [
            Row(
                f"{self.title}, {kind}",
                max(int(n * self.share), 1),
                tuple(self._contestants(factory)),
                self.bars,
                self.rounds,
                cpu=self.cpu,
                metrics=self.metrics,
                expect=self.expect,
                limit=self.limit,
                series=self.series and f"{self.series}, {kind}",
                x=self.x,
                x_name=self.x_name,
            )
            for kind, factory in loop_kinds().items()
        ]

    def _contestants(self, factory: LoopFactory) -> Iterator[Contestant]:
        for each in self.entries:
            run = partial(_run, each.function, factory)
            yield Contestant(each.name, run, sized=True, needs=each.needs, note=each.note)


def _run(function: Callable[..., Any], factory: LoopFactory, n: int) -> object:
    if not iscoroutinefunction(function):
        return function(n, factory)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(function(n))
