"""Random programs give what plain Python makes of them, fail as it does, leave nothing, and can be cancelled.

The daily run has the first `DAILY` of them. ``PROGRAMS=1000000`` runs so many, which is about an hour's worth;
``PROGRAM_SEED=17`` the one that a failure names.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest
from attrs import define, field, frozen

from reactive_aio import Flow, ProtocolViolation
from reactive_aio._core import budgets
from tests.conftest import LOOPS
from tests.failures.code import AnyFlow
from tests.failures.ends import later, listening
from tests.failures.kinds import shown, stands_for
from tests.failures.programs import Expected, Program, Step, expected, functions_of, poison, program
from tests.failures.running import Bench, Leaks, none_go_wrong, outcome_of
from tests.jumping import Jumping

PROGRAMS: Final = int(os.environ.get("PROGRAMS", "60000"))
DAILY: Final = 3_000
AT_A_TIME: Final = 10_000
"""How many of the others make one test, so that none takes longer than a test may."""
SEED: Final = os.environ.get("PROGRAM_SEED")


@define(eq=False)
class Run:
    """One run of a program."""

    program: Program
    error: BaseException
    raised: int = 0
    open: int = 0
    got: list[Any] = field(factory=list[Any])
    blind: bool = False
    """Whether the end does not tell what has come to it."""

    def fail(self) -> None:
        """Raise what the program raises."""
        self.raised += 1
        raise self.error

    def at_source(self, at: int) -> None:
        """Fail at an element of the source, if it is the one."""
        if self.program.fails_in == -1 and at == self.program.fails_at:
            self.fail()

    def at_end_of_source(self) -> None:
        """Fail behind the elements of the source, if it is to fail and there are not so many."""
        if self.program.fails_in == -1 and self.program.fails_at >= len(self.program.items):
            self.fail()

    def at_cleanup(self) -> None:
        """Fail in the cleanup of the source."""
        self.open -= 1
        if self.program.fails_in == -2:
            self.fail()

    # -- sources

    def source(self) -> AnyFlow:
        """Return the source of the program."""
        makers: dict[str, Callable[[], AnyFlow]] = {
            "iterable": lambda: Flow.from_iterable(Listed(self)),
            "generator": lambda: Flow.defer(lambda: Flow.from_iterable(self.generator())),
            "async generator": lambda: Flow.defer(lambda: Flow.from_async_iterable(self.async_generator())),
            "create": lambda: Flow.create(self.produce),
            "publisher": lambda: Flow.from_publisher(Published(self)),
        }
        return makers[self.program.source]()

    def plainly(self) -> Any:
        """Generate the elements."""
        for at, item in enumerate(self.program.items):
            self.at_source(at)
            yield item
        self.at_end_of_source()

    def generator(self) -> Any:
        """Generate the elements, and clean up."""
        self.open += 1
        try:
            yield from self.plainly()
        finally:
            self.at_cleanup()

    async def async_generator(self) -> Any:
        """Generate the elements, now and then in a later turn, and clean up."""
        self.open += 1
        try:
            for item in self.plainly():
                if item % 2:
                    await asyncio.sleep(0)
                yield item
        finally:
            self.at_cleanup()

    async def produce(self, emit: Callable[[Any], Awaitable[None]]) -> None:
        """Emit the elements, and clean up."""
        self.open += 1
        try:
            for item in self.plainly():
                await emit(item)
        finally:
            self.at_cleanup()


@frozen(eq=False)
class Listed:
    """An iterable that can be read several times."""

    run: Run

    def __iter__(self) -> Any:
        return self.run.plainly()


@frozen(eq=False)
class Published:
    """A publisher of somebody's, which may misbehave."""

    run: Run

    def subscribe(self, subscriber: Any) -> None:
        """Take a subscriber, twice if it is that kind of publisher."""
        subscriber.on_subscribe(Link(self.run, subscriber))
        if self.run.program.flaw == "subscribes twice":
            subscriber.on_subscribe(Link(self.run, subscriber, spare=True))


@define(eq=False)
class Link:
    """The subscription, which sends from within request."""

    run: Run
    subscriber: Any
    spare: bool = False
    items: Any = None
    wanted: int = 0
    sending: bool = False
    over: bool = False

    def request(self, n: int) -> None:
        """Send what is wanted."""
        if self.run.program.flaw == "raises from request":
            self.run.fail()
        if self.spare:
            return
        self.wanted += n
        if self.sending or self.over:
            return
        if self.items is None:
            self.items = self.run.plainly()
        self.sending = True
        while not self.over:
            try:
                # The end is sent when one more is wanted, as that of a generator.
                if not self.wanted:
                    break
                item = next(self.items)
            except StopIteration:
                self.finish(self.subscriber.on_complete)
            except BaseException as error:
                self.finish(partial(self.subscriber.on_error, error))
            else:
                self.wanted -= 1
                self.subscriber.on_next(item)
        self.sending = False

    def finish(self, signal: Callable[[], None]) -> None:
        """Signal the end. Some publishers go on after it."""
        self.over = True
        signal()
        if self.run.program.flaw == "goes on after the end":
            self.subscriber.on_next(99)
            self.subscriber.on_complete()

    def cancel(self) -> None:
        """Stop."""
        self.over = True
        if self.run.program.flaw == "raises from cancel":
            self.run.fail()


@frozen(eq=False)
class ProgramCell:
    """A program to be run and compared."""

    program: Program

    @property
    def loop_name(self) -> str:
        """The name of its loop."""
        return self.program.loop_name

    @property
    def loop(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """Makes its loop."""
        return LOOPS[self.program.loop_name]

    def __str__(self) -> str:
        return str(self.program)

    async def run(self, bench: Bench) -> list[str]:
        """Run the program, and tell in what it differs from the plain one."""
        bad = poison(self.program)
        run, leaks, dropped = Run(self.program, self.program.kind.make()), Leaks(), list[BaseException]()
        leaks.begin()
        with bench.dropped(dropped):
            task = asyncio.create_task(outcome_of(lambda: self._end(run, bad), run))
        if self.program.cancel_at is not None:
            for _ in range(self.program.cancel_at):
                await asyncio.sleep(0)
            task.cancel()
        outcome = await bench.finish(task)
        left = await leaks.told(bench)
        if run.open:
            left.append(f"{run.open} sources are left open")
        wrong = Judge(self.program, expected(self.program, bad), run, outcome.error, dropped).wrong()
        return [*wrong, *left, *(f"told to the loop: {each}" for each in bench.handled)]

    async def _end(self, run: Run, bad: Any) -> None:
        flow = run.source()
        for step, fn in zip(self.program.steps, functions_of(self.program, bad, run.fail), strict=True):
            flow = built(step, flow, fn)
        await READERS[self.program.end](flow, run)


def built(step: Step, flow: AnyFlow, fn: Any) -> AnyFlow:
    """Continue a flow."""
    return step.operator.build(flow, fn, step.n)


async def to_list(flow: AnyFlow, run: Run) -> None:
    """Read all at once; what has passed before a failure is not known."""
    run.blind = True
    run.got = await flow.to_list()
    run.blind = False


async def for_each(flow: AnyFlow, run: Run) -> None:
    """Read by a function."""
    await flow.for_each(run.got.append)


async def for_each_async(flow: AnyFlow, run: Run) -> None:
    """Read by an async function."""

    async def take(item: Any) -> None:
        run.got.append(item)
        await later(item)

    await flow.for_each(take)


async def iterated(flow: AnyFlow, run: Run) -> None:
    """Read by ``async for``."""
    async for item in flow:
        run.got.append(item)


async def opened(flow: AnyFlow, run: Run) -> None:
    """Read by ``open()``, and leave early if the program does."""
    async with flow.open() as items:
        async for item in items:
            run.got.append(item)
            if len(run.got) == run.program.leaves_after:
                break


READERS: Final[dict[str, Callable[[AnyFlow, Run], Awaitable[None]]]] = {
    "to_list": to_list,
    "for_each": for_each,
    "for_each async": for_each_async,
    "async for": iterated,
    "open": opened,
    "subscribe": lambda flow, run: listening(flow, 1 << 62, run.got),
    "subscribe, by ones": lambda flow, run: listening(flow, 1, run.got),
}


@frozen(eq=False)
class Judge:
    """Compares a run with what was expected."""

    program: Program
    plain: Expected
    run: Run
    error: BaseException | None
    dropped: list[BaseException]

    def wrong(self) -> list[str]:
        """Return what is wrong."""
        if self.program.cancel_at is not None and isinstance(self.error, asyncio.CancelledError):
            if (
                self.program.fails_in == -2
                or self.program.flaw
                or (self.program.mixes and self.program.leaves_after is not None)
            ):
                return []
            return [*self._elements(whole=False), *self._hook(most=self.run.raised)]
        if self.program.fails_in == -2:
            return self._cleaned()
        if self.program.mixes and self.program.leaves_after is not None:
            return []  # what comes first, the elements of one flow or the failure of another, is a matter of time
        if self.program.flaw:
            return self._flawed()
        return [*self._outcome(), *self._hook(most=self.run.raised - (self.error is not None))]

    def _outcome(self) -> list[str]:
        if self.plain.failed:
            if self.error is None:
                return [f"expected {self.plain.items} and the failure, and got {self.run.got} and no failure"]
            if not stands_for(self.error, self.run.error):
                return [f"failed with {shown(self.error)}, where it was to be {shown(self.run.error)}"]
            return self._elements(whole=not self.program.eager)
        # A producer goes on behind an element, until it awaits something; and a failure overtakes what would have been enough.
        late = self.program.source == "create" or self.program.eager
        if self.error is not None and late and stands_for(self.error, self.run.error):
            return self._elements(whole=False)
        if self.error is not None:
            return [f"expected {self.plain.items}, and it failed with {shown(self.error)} behind {self.run.got}"]
        return self._elements(whole=True)

    def _elements(self, *, whole: bool) -> list[str]:
        got, wanted = self.run.got, self.plain.items
        if (
            self.run.blind
            or (self.program.remembers_the_overtaken and self.run.raised)
            or (self.program.may_answer_what_plain_python_does_not_reach and self.run.raised)
            # A producer's late failure has been answered, by what the operator gives.
            or (self.program.source == "create" and self.program.recovers and self.run.raised and not self.plain.failed)
        ):
            return []
        if self.program.mixes:
            # Behind a failure, or a cancel, the other flow's elements may be there, or not.
            extra = Counter(got) - Counter(wanted)
            overtaken = self.program.eager and self.program.recovers and self.run.raised
            all_there = got == wanted or Counter(got) == Counter(wanted)
            good = not extra or self.plain.failed if overtaken or not whole else all_there
        elif self.program.eager and self.program.recovers and self.run.raised:
            rest = iter(wanted)  # those that the failure has overtaken are missing before what answers it
            good = all(item in rest for item in got)
        else:
            good = got == wanted if whole else got == wanted[: len(got)]
        return [] if good else [f"expected {wanted}, and got {got}"]

    def _hook(self, most: int) -> list[str]:
        other = [each for each in self.dropped if not stands_for(each, self.run.error)]
        if other:
            return [f"the hook was told of {shown(other[0])}"]
        return [] if len(self.dropped) <= max(most, 0) else [f"the hook was told {len(self.dropped)} times"]

    def _cleaned(self) -> list[str]:
        """Judge a program whose source fails in its cleanup: the program fails, or the hook gets the error, or it recovers."""
        if self.error is not None and not stands_for(self.error, self.run.error):
            return [f"failed with {shown(self.error)}"]
        told = len(self.dropped) + (self.error is not None)
        # Python swallows these, since they are the regular ends of a closed generator and of a cancelled task.
        silent = self.program.kind.name in {"GeneratorExit", "CancelledError"} or self.program.recovers
        if self.run.raised and not told and not silent:
            return [f"cleanup failed {self.run.raised} times, and nobody was told; got {self.run.got}"]
        return self._hook(most=self.run.raised - (self.error is not None))

    def _flawed(self) -> list[str]:
        """Judge a program whose publisher breaks the rules: it ends, by its failure or by that."""
        good = (ProtocolViolation,)
        other = [each for each in (*self.dropped, self.error) if each is not None and not isinstance(each, good)]
        if other and not (self.run.raised and all(stands_for(each, self.run.error) for each in other)):
            return [f"failed with {shown(other[0])}"]
        if self.program.flaw.startswith("raises") and self.run.raised and not other and not self.program.recovers:
            return ["the publisher has raised, and nobody was told"]
        if not self.dropped and self.error is None and not self.program.recovers and not self.run.raised:
            return self._elements(whole=True)
        return []


def blocks() -> Iterator[Any]:
    """Yield the seeds of each test."""
    if SEED is not None:
        yield pytest.param(range(int(SEED), int(SEED) + 1), id=SEED)
        return
    yield pytest.param(range(min(DAILY, PROGRAMS)), id="daily")
    for first in range(DAILY, PROGRAMS, AT_A_TIME):
        yield pytest.param(range(first, min(first + AT_A_TIME, PROGRAMS)), id=f"{first}", marks=pytest.mark.long)


@pytest.mark.costly
@pytest.mark.parametrize("seeds", list(blocks()))
def test_random_programs_do_what_plain_python_does(seeds: range) -> None:
    none_go_wrong(ProgramCell(program(seed, list(LOOPS))) for seed in seeds)


@pytest.mark.costly
@pytest.mark.parametrize("chance", [0.05, 0.3, 1.0])
def test_random_programs_do_so_whenever_the_time_is_up(chance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", Jumping(chance, 1).now)
    # Others than above: these have been seen to do so where the time is seldom up.
    seeds = range(PROGRAMS, PROGRAMS + DAILY // 3) if SEED is None else [int(SEED)]

    none_go_wrong(ProgramCell(program(seed, list(LOOPS))) for seed in seeds)
