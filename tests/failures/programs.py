"""Random programs: a source, operators, boundaries and an end, with a failure somewhere; and what plain Python makes of them.

A program is made from a seed. The same description is run by the library and by generators of plain Python, whose
outcome is what is expected.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from attrs import define, field, frozen

from reactive_aio import Flow, schedulers
from tests.failures.code import AnyFlow
from tests.failures.kinds import ALL_KINDS, Kind

Fn = Callable[..., Any]
Plain = Callable[[Callable[[], Iterator[Any]], Fn, int], Iterator[Any]]
"""From what makes the input anew, the program's function, and a number: the output."""
Build = Callable[[AnyFlow, Fn, int], AnyFlow]


class OracleError(Exception):
    """How the plain program fails, in the place of an Exception that the program raises."""


class OracleExit(BaseException):
    """How it fails in the place of any other exception, from which no operator recovers unasked."""


@frozen
class Operator:
    """One operator with its meaning in plain Python."""

    name: str
    build: Build
    plain: Plain
    calls: Fn | None = None
    """The function of the operator, if it has one."""
    eager: bool = False
    """Whether a failure may overtake elements."""
    recovers: bool = False
    remembers: bool = False
    """Whether what it makes of an element depends on those before it."""
    stops: bool = False
    """Whether it may end before its input does."""
    mixes: bool = False
    """Whether the order of the elements is a matter of time."""


def taken(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Yield the first elements, and look at no other."""
    if n:
        for at, item in enumerate(items(), 1):
            yield item
            if at == n:
                return


def skipped(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Leave out the first elements."""
    for at, item in enumerate(items()):
        if at >= n:
            yield item


def scanned(items: Callable[[], Iterator[Any]], fn: Fn, n: int) -> Iterator[Any]:
    """Yield each total, from the first one on."""
    total: Any = n
    yield total
    for item in items():
        total = fn(item, total)
        yield total


def flattened(items: Callable[[], Iterator[Any]], fn: Fn, _: int) -> Iterator[Any]:
    """Yield the elements of what is made of each element."""
    for item in items():
        yield from fn(item)


def buffered(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Yield elements in tuples."""
    kept: list[Any] = []
    for item in items():
        kept.append(item)
        if len(kept) == n + 1:
            yield sum(kept)
            kept = []
    if kept:
        yield sum(kept)


def changed(items: Callable[[], Iterator[Any]], fn: Fn, _: int) -> Iterator[Any]:
    """Leave out an element whose key is that of the one before."""
    last: Any = object()
    for item in items():
        key = fn(item)
        if key != last:
            yield item
        last = key


def taken_while(items: Callable[[], Iterator[Any]], fn: Fn, _: int) -> Iterator[Any]:
    """Yield elements as long as the function agrees."""
    for item in items():
        if not fn(item):
            return
        yield item


def retried(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Begin again after a failure, so many times."""
    for left in range(n, -1, -1):
        try:
            yield from items()
        except OracleError:
            if not left:
                raise
        else:
            return


def returned(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Yield an element instead of a failure."""
    try:
        yield from items()
    except OracleError:
        yield n


def resumed(items: Callable[[], Iterator[Any]], fn: Fn, n: int) -> Iterator[Any]:
    """Yield other elements instead of a failure."""
    try:
        yield from items()
    except OracleError:
        yield from fn(n)


def or_default(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Yield an element instead of none."""
    empty = True
    for item in items():
        empty = False
        yield item
    if empty:
        yield n


def mapped(items: Callable[[], Iterator[Any]], fn: Fn, _: int) -> Iterator[Any]:
    """Return what the function makes of each."""
    return map(fn, items())


def filtered(items: Callable[[], Iterator[Any]], fn: Fn, _: int) -> Iterator[Any]:
    """Return the elements for which the function is true."""
    return filter(fn, items())


def before(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Yield some elements first."""
    yield from (n, n + 1)
    yield from items()


def behind(items: Callable[[], Iterator[Any]], _: Fn, n: int) -> Iterator[Any]:
    """Yield some elements last."""
    yield from items()
    yield from (n, n + 1)


def the_same(items: Callable[[], Iterator[Any]], _: Fn, __: int) -> Iterator[Any]:
    """Change nothing."""
    return items()


def no_function(item: Any) -> Any:
    """Stand in for a function, where there is none."""
    return item


def later(fn: Fn) -> Fn:
    """Make an async function of a function."""

    async def function(item: Any) -> Any:
        return fn(item)

    return function


def some(item: int) -> tuple[int, ...]:
    """Make up to two elements of one."""
    return (item, item + 1)[: item % 3]


def flow_of(fn: Fn) -> Fn:
    """Make flows of what a function makes tuples of."""
    return lambda item: Flow.from_iterable(fn(item))


OPERATORS: Final = [
    Operator("map", lambda flow, fn, _: flow.map(fn), mapped, lambda item: item + 1),
    Operator(
        "map_async", lambda flow, fn, n: flow.map_async(later(fn), max_concurrency=n + 1), mapped, lambda item: item + 2
    ),
    Operator("filter", lambda flow, fn, _: flow.filter(fn), filtered, lambda item: item % 3),
    Operator(
        "filter_when",
        lambda flow, fn, n: flow.filter_when(later(fn), max_concurrency=n + 1),
        filtered,
        lambda item: item % 2,
    ),
    Operator("take", lambda flow, _, n: flow.take(n), taken, remembers=True, stops=True),
    Operator("skip", lambda flow, _, n: flow.skip(n), skipped, remembers=True),
    Operator(
        "scan",
        lambda flow, fn, n: flow.scan(lambda total, item: fn(item, total), n),
        scanned,
        lambda item, total: (total + item) % 97,
        remembers=True,
    ),
    Operator("flat_map_iterable", lambda flow, fn, _: flow.flat_map_iterable(fn), flattened, some),
    Operator("concat_map", lambda flow, fn, _: flow.concat_map(flow_of(fn)), flattened, some),
    Operator(
        "flat_map",
        lambda flow, fn, n: flow.flat_map(flow_of(fn), max_concurrency=1, prefetch=n + 1),
        flattened,
        some,
        eager=True,
    ),
    Operator("buffer", lambda flow, _, n: flow.buffer(n + 1).map(sum), buffered, remembers=True),
    Operator(
        "distinct_until_changed",
        lambda flow, fn, _: flow.distinct_until_changed(fn),
        changed,
        lambda item: item // 2,
        remembers=True,
    ),
    Operator(
        "take_while",
        lambda flow, fn, _: flow.take_while(fn),
        taken_while,
        lambda item: item % 7 != 6,
        remembers=True,
        stops=True,
    ),
    Operator("start_with", lambda flow, _, n: flow.start_with(n, n + 1), before),
    Operator("concat", lambda flow, _, n: flow.concat(Flow.of(n, n + 1)), behind),
    Operator("merge", lambda flow, _, n: flow.merge(Flow.of(n, n + 1), prefetch=n + 1), behind, eager=True, mixes=True),
    Operator("retry", lambda flow, _, n: flow.retry(n), retried, recovers=True),
    Operator("on_error_return", lambda flow, _, n: flow.on_error_return(n), returned, recovers=True),
    Operator(
        "on_error_resume_next",
        lambda flow, fn, n: flow.on_error_resume_next(lambda _: Flow.from_iterable(fn(n))),
        resumed,
        lambda n: (n, n + 2),
        recovers=True,
    ),
    Operator("default_if_empty", lambda flow, _, n: flow.default_if_empty(n), or_default, remembers=True),
    Operator("do_on_next", lambda flow, fn, _: flow.do_on_next(fn), mapped, no_function),
    Operator("checkpoint", lambda flow, _, n: flow.checkpoint(f"{n}"), the_same),
    Operator("publish_on current", lambda flow, _, n: flow.publish_on(schedulers.current(), prefetch=n + 1), the_same),
    Operator(
        "publish_on thread", lambda flow, _, n: flow.publish_on(schedulers.thread("program"), prefetch=n + 1), the_same
    ),
    Operator("publish_on threads", lambda flow, _, n: flow.publish_on(schedulers.threads(2), prefetch=n + 1), the_same),
    Operator("subscribe_on", lambda flow, _, __: flow.subscribe_on(schedulers.thread("under")), the_same),
    Operator("from_publisher", lambda flow, _, __: Flow.from_publisher(flow), the_same),
]
"""All keep to small whole numbers, so that several operators can follow each other."""
AT_ANOTHER_PLACE: Final = {
    "publish_on current",
    "publish_on thread",
    "publish_on threads",
    "subscribe_on",
    "from_publisher",
}
SOURCES: Final = ["iterable", "generator", "async generator", "create", "publisher"]
FLAWS: Final = ["subscribes twice", "goes on after the end", "raises from request", "raises from cancel"]
ENDS: Final = ["to_list", "for_each", "for_each async", "async for", "open", "subscribe", "subscribe, by ones"]


@frozen
class Step:
    """An operator in a program."""

    operator: Operator
    n: int

    def __str__(self) -> str:
        return f"{self.operator.name}({self.n})"


@frozen
class Program:
    """A program, whole."""

    seed: int
    source: str
    flaw: str
    items: tuple[int, ...]
    steps: tuple[Step, ...]
    end: str
    leaves_after: int | None
    """How many elements are read of ``open()``, or all."""
    cancel_at: int | None
    """The turn of the loop in which the end is cancelled."""
    kind: Kind
    fails_in: int | None
    """The step whose function fails, -1 for the source, -2 for its cleanup."""
    fails_at: int
    """Which of the elements that come there it fails for."""
    loop_name: str

    def __str__(self) -> str:
        where = {None: "nowhere", -1: "in the source", -2: "in the source's cleanup"}.get(
            self.fails_in, f"in step {self.fails_in}"
        )
        steps = "".join(f".{step}" for step in self.steps)
        flaw = f", which {self.flaw}" if self.flaw else ""
        leaves = "" if self.leaves_after is None else f", left after {self.leaves_after}"
        cancel = "" if self.cancel_at is None else f", cancelled at turn {self.cancel_at}"
        return (
            f"PROGRAM_SEED={self.seed}: {self.source}{list(self.items)}{flaw}{steps} -> {self.end}{leaves}{cancel}; "
            f"{self.kind.name} {where} at {self.fails_at}; {self.loop_name}"
        )

    @property
    def eager(self) -> bool:
        """Whether a failure may overtake elements."""
        return any(step.operator.eager for step in self.steps)

    @property
    def mixes(self) -> bool:
        """Whether the order of elements is a matter of time."""
        return any(step.operator.mixes for step in self.steps)

    @property
    def fails_with(self) -> type[BaseException]:
        """The class that stands for its failure in the plain program; a CancelledError arrives as an Exception."""
        return OracleError if self.kind.name == "CancelledError" or self.kind.is_exception else OracleExit

    @property
    def recovers(self) -> bool:
        """Whether a failure may be answered."""
        return any(step.operator.recovers for step in self.steps)

    def has_in_turn(self, *traits: str) -> bool:
        """Return whether operators with these traits follow each other, with others in between or not."""
        steps = iter(self.steps)  # one behind the other
        return all(any(getattr(step.operator, trait) for step in steps) for trait in traits)

    @property
    def remembers_the_overtaken(self) -> bool:
        """Whether other elements come of a failure that is answered when it has overtaken some, and not only fewer."""
        return self.has_in_turn("eager", "recovers", "remembers")

    @property
    def may_answer_what_plain_python_does_not_reach(self) -> bool:
        """Whether a failure may overtake the element with which an operator would have ended, and be answered behind that."""
        return self.has_in_turn("eager", "stops", "recovers")

    @property
    def reads_ahead(self) -> bool:
        """Whether something may be made that nobody wants."""
        return any(step.operator.name in AT_ANOTHER_PLACE or step.operator.eager for step in self.steps) or any(
            step.operator.name in {"map_async", "filter_when"} for step in self.steps
        )


def program(seed: int, loops: list[str]) -> Program:
    """Make the program of a seed."""
    rng = random.Random(seed)
    steps = [Step(rng.choice(OPERATORS), rng.randrange(4)) for _ in range(rng.randrange(7))]
    for at, step in enumerate(steps):
        # An operator that mixes several flows makes the order a matter of time. So it comes only at the end of a program.
        if step.operator.mixes:
            steps = steps[: at + 1]
            break
    source = rng.choice(SOURCES)
    flaw = rng.choice(FLAWS) if source == "publisher" and rng.random() < 0.6 else ""
    sites = [at for at, step in enumerate(steps) if step.operator.calls is not None]
    sites += [-1, -1, -2] if source in {"generator", "async generator", "create"} else [-1]
    fails_in = -3 if flaw.startswith("raises") else rng.choice([None, *sites, *sites])
    end = rng.choice(ENDS)
    return Program(
        seed,
        source,
        flaw,
        tuple(rng.randrange(12) for _ in range(rng.randrange(10))),
        tuple(steps),
        end,
        rng.randrange(1, 4) if end == "open" and rng.random() < 0.5 else None,
        rng.randrange(1, 12) if rng.random() < 0.15 else None,
        rng.choice([kind for kind in ALL_KINDS if not kind.name.startswith("Stop")]),
        fails_in,
        rng.randrange(8),
        rng.choice(loops),
    )


# -- the plain program


@define(eq=False)
class Expected:
    """The result of a program in plain Python."""

    items: list[Any] = field(factory=list[Any])
    failed: bool = False


def plain_source(program: Program, *, fails: bool) -> Iterator[Any]:
    """Yield the elements, and fail where the program does."""
    for at, item in enumerate(program.items):
        if fails and program.fails_in == -1 and at == program.fails_at:
            raise program.fails_with
        yield item
    if fails and program.fails_in == -1 and program.fails_at >= len(program.items):
        raise program.fails_with


def plain_chain(program: Program, functions: list[Fn], *, fails: bool) -> Iterator[Any]:
    """Return the elements that leave the last operator."""

    def source() -> Iterator[Any]:
        return plain_source(program, fails=fails)

    make: Callable[[], Iterator[Any]] = source
    for step, fn in zip(program.steps, functions, strict=True):
        make = chained(step, make, fn)
    return make()


def chained(step: Step, items: Callable[[], Iterator[Any]], fn: Fn) -> Callable[[], Iterator[Any]]:
    """Continue a plain program."""
    return lambda: step.operator.plain(items, fn, step.n)


def poison(program: Program) -> Any:
    """Return the argument for which the failing function fails: one that it gets in a run without failures, or None."""
    if program.fails_in is None or program.fails_in < 0:
        return None
    seen: list[Any] = []
    functions = [step.operator.calls or no_function for step in program.steps]
    inner = functions[program.fails_in]

    def watching(item: Any, *more: Any) -> Any:
        seen.append(item)
        return inner(item, *more)

    functions[program.fails_in] = watching
    for _ in read(program, plain_chain(program, functions, fails=False)):
        pass
    return seen[program.fails_at % len(seen)] if seen else None


def functions_of(program: Program, bad: Any, fail: Callable[[], None]) -> list[Fn]:
    """Return the functions of a program. One of them fails for a certain argument."""
    return [
        failing(step.operator.calls or no_function, bad, fail)
        if at == program.fails_in
        else step.operator.calls or no_function
        for at, step in enumerate(program.steps)
    ]


def failing(fn: Fn, bad: Any, fail: Callable[[], None]) -> Fn:
    """Have a function fail for an argument."""

    def function(item: Any, *more: Any) -> Any:
        if bad is not None and item == bad:
            fail()
        return fn(item, *more)

    return function


def read(program: Program, items: Iterable[Any]) -> Iterator[Any]:
    """Read as the end does."""
    for at, item in enumerate(items, 1):
        yield item
        if at == program.leaves_after:
            return


def expected(program: Program, bad: Any) -> Expected:
    """Run the plain program."""

    def fail() -> None:
        raise program.fails_with

    outcome = Expected()
    try:
        for item in read(program, plain_chain(program, functions_of(program, bad, fail), fails=True)):
            outcome.items.append(item)
    except (OracleError, OracleExit):
        outcome.failed = True
    return outcome
