"""One run of one test: its loop, its trace, and the ways to make something happen and to judge it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import attrs
from attrs import define, field

from .._core.containers import new_list
from .._core.guard import FAILURES, shown
from ..spec import Publisher, quote
from ..spec.predicates import violations
from ..spec.recorder import Recorder
from ..spec.trace import Facts, Trace
from .environment import Environment, NeverAtRestError, Settling
from .outcome import NotVerifiedError, RuleBrokenError
from .probe import Probe


@define(eq=False)
class Run:
    """The arguments of a test."""

    environment: Environment
    facts: Facts
    recorder: Recorder = field(init=False, factory=Recorder)
    handed: list[weakref.ref[Any] | None] = field(init=False, factory=new_list)
    """The subscribers that publishers were handed."""
    publishers: list[Publisher[Any]] = field(init=False, factory=new_list)
    """They live as long as the test: a publisher must let go of its subscribers, not die with them (rule 3.13)."""
    probes: list[Probe] = field(init=False, factory=new_list)
    _settling: Settling | None = field(init=False, default=None)

    def know(self, **facts: Any) -> None:
        """Add to what is known about the recording."""
        self.facts = attrs.evolve(self.facts, **facts)

    def subscribe(self, publisher: Publisher[Any], probe: Probe | None = None) -> Probe:
        """Subscribe a probe. An exception of subscribe is in the trace."""
        probe = probe or Probe()
        self.probes.append(probe)
        self.publishers.append(publisher)
        self.tolerate(lambda: self.handed.append(self.recorder.connect(publisher, probe)))
        return probe

    def tolerate(self, call: Callable[[], object]) -> None:
        """Make a call. An exception of it that the trace already has is ignored."""
        try:
            call()
        except FAILURES as error:
            if not any(signal.value is error for signal in self.trace().signals):
                raise

    async def rest(self) -> None:
        """Wait until nothing is left to run."""
        assert self._settling is not None
        await self._settling.settle()
        self.recorder.rest()

    async def released(self) -> bool:
        """Return whether no reference is left to the subscribers that publishers got."""
        if any(ref is not None and ref() is not None for ref in self.handed):
            await self.rest()
            gc.collect()
        return all(ref is None or ref() is None for ref in self.handed)

    def trace(self) -> Trace:
        """Return the recorded trace."""
        return self.recorder.trace(self.facts)

    async def check(self, *rules: str) -> None:
        """Wait for rest and fail if one of the rules was broken."""
        await self.rest()
        self.know(at_rest=True)
        found = violations(self.trace(), rules)
        if found:
            raise RuleBrokenError("\n".join(map(str, found)))

    def agree(self, rule: str | None, said: object, heard: object) -> None:
        """Fail if the received signals differ from the sent ones."""
        if said != heard:
            raise RuleBrokenError(
                f"{'what is passed on must be what came' if rule is None else quote(rule)}\n"
                f"  seen: {shown(heard)} was passed on, where {shown(said)} had come\n"
                "  what to do: pass on each signal, with the very object that came\n"
                f"  the last signals:\n{self.trace().excerpt()}"
            )

    def need(self, condition: object, reason: str) -> None:
        """Skip a test whose precondition fails. The test of the precondition says why."""
        if not condition:
            raise NotVerifiedError(f"not verified: {reason}\n  what was seen:\n{self.trace().excerpt()}")

    def main(self, body: Callable[[Run], Awaitable[None]]) -> None:
        """Run a test on a loop of its own."""

        async def call() -> None:
            loop = asyncio.get_running_loop()
            # An error of a callback shows in the signals that do not come; it is not reported as well.
            loop.set_exception_handler(lambda _, __: None)
            self._settling = Settling(self.environment, lambda: len(self.recorder.signals))
            self._settling.begin()
            try:
                await body(self)
            finally:
                if loop.is_running():  # a callback may have stopped it
                    await self._leave()
                self._settling.end()

        try:
            with asyncio.Runner(loop_factory=self.environment.loop_factory) as runner:
                runner.run(call())
        except SystemExit as error:
            raise RuleBrokenError(
                f"a callback raised {shown(error)}, which stopped the event loop of the test\n"
                "  what to do: catch what the source raises and hand it to on_error\n"
                f"  the last signals:\n{self.trace().excerpt()}"
            ) from error

    async def _leave(self) -> None:
        """Cancel what is still under way, and let it come to its end before the loop does."""
        for probe in self.probes:
            if not probe.over:
                probe.cancel()
        with suppress(NeverAtRestError):
            await self.rest()
