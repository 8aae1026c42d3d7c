"""Some things are there once: what counts as a failure, the guarded call of a user's function, the life of a region in passes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "reactive_aio"

ENGINE = {
    "_arbiter", "_flow", "_fusion", "_plan", "_runtime", "hooks", "operators",
}  # fmt: skip
"""The parts in which functions of the user's are called, on an event loop or by workers; Spark's engine has rules of its own."""

CATCHES_ALL: dict[str, str] = {}
"""Where everything is caught by another name than FAILURES, and why."""

RUNS_BY_HAND: dict[tuple[str, str], str] = {
    ("_runtime/on_the_spot.py", "gather[0]"): "makes of a failure one that gets its note when it is taken",
    ("operators/flattening/mapper.py", "self.fn"): "adds a note to the failure, and saves a call for each element",
    ("operators/observing/do_on_discard.py", "call"): "tells the hook, which looks after failures itself",
    ("operators/observing/peek.py", "_call"): "the source can't be opened if it raises",
    ("operators/sharing/multicast.py", "self._made"): "the source can't be opened if it raises",
    ("operators/sourcing/callback.py", "unregister"): "raises into close_all, as every cleanup of a source does",
    ("operators/sourcing/defer.py", "self.factory"): "the source can't be opened if it raises",
    ("operators/windowing/substream.py", "self.drop"): "is the library's own",
}
"""Calls in a copy of a context that are not guarded there, and the reason."""

OWN = {
    "discard",
    "driver.lost",
    "drop_error",
    "lifetime.settle",
    "reader.host.cleanup_failed",
    "reader.host.dropped",
    "self._end_without_turns",
    "self.driver.host.cleanup_failed",
    "self.host.dropped",
    "self.host.cleanup_failed",
    "self.lifetime.unawaited",
    "self.reader.cancel",
}
"""Functions of the library's that run in the subscriber's context, and raise nothing."""

PASSES = "_fusion/passes.py"


def modules() -> Iterator[tuple[str, str]]:
    """Yield the path and the code of each module."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path.read_text()


@cache
def nodes(code: str) -> tuple[ast.AST, ...]:
    """Return what a module consists of."""
    return tuple(ast.walk(ast.parse(code)))


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Keep these for the tests of this module only: they are many, and the collector of garbage goes through all."""
    yield
    nodes.cache_clear()


def in_engine() -> Iterator[tuple[str, str]]:
    return ((name, code) for name, code in modules() if name.split("/")[0].removesuffix(".py") in ENGINE)


# -- one definition of failures


def definitions(code: str) -> list[int]:
    """Return the lines that assign FAILURES."""
    return [
        node.lineno
        for node in nodes(code)
        if isinstance(node, ast.Name) and node.id == "FAILURES" and isinstance(node.ctx, ast.Store)
    ]


def catches_all(code: str) -> list[int]:
    """Return the lines that catch everything, or every Exception, by name or for want of one."""
    found: list[int] = []
    for node in nodes(code):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {None if each is None else ast.unparse(each).split(".")[-1] for each in caught}
            if names & {None, "Exception", "BaseException"}:
                found.append(node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "suppress":
            names = {ast.unparse(each) for each in node.args}
            found += [node.lineno] if names & {"Exception", "BaseException"} else []
    return found


def test_what_counts_as_a_failure_is_defined_once() -> None:
    assert ["_core/guard.py"] == [name for name, code in modules() for _ in definitions(code)]


def test_what_catches_everything_catches_failures() -> None:
    found = {name: catches_all(code) for name, code in in_engine()}

    assert set(CATCHES_ALL) == {name for name, lines in found.items() if lines}, {
        n: at for n, at in found.items() if at
    }
    assert [1] * len(CATCHES_ALL) == [len(found[name]) for name in CATCHES_ALL]


@pytest.mark.parametrize(
    "code",
    [
        "try: pass\nexcept Exception: pass",
        "try: pass\nexcept BaseException as error: raise",
        "try: pass\nexcept (OSError, Exception): pass",
        "try: pass\nexcept: pass",
        "try: pass\nexcept builtins.Exception: pass",
        "with contextlib.suppress(Exception): pass",
    ],
)
def test_a_clause_that_catches_everything_is_found(code: str) -> None:
    assert [len(code.splitlines())] == catches_all(code)


def test_a_clause_for_some_errors_is_let_through() -> None:
    assert [] == catches_all("try: pass\nexcept (OSError, ValueError): pass\nexcept FAILURES: raise")


# -- one guarded call


def runs(code: str) -> list[str]:
    """Return what is called in a copy of a context."""
    return [
        ast.unparse(node.args[0])
        for node in nodes(code)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Call)
        and ast.unparse(node.func.value.func).endswith((".copy", "copy_context"))
        and node.args
    ]


def test_a_users_function_is_called_in_a_copy_of_its_context_by_guarded() -> None:
    found = Counter((name, what) for name, code in in_engine() for what in runs(code) if what not in OWN)

    assert dict.fromkeys(RUNS_BY_HAND, 1) == dict(found), "call guarded()"


def test_guarded_is_where_such_a_call_is_guarded() -> None:
    assert ["fn"] == runs((PACKAGE / "_core/guard.py").read_text())


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("self.inlet.context.copy().run(self.fn, item)", "self.fn"),
        ("context.copy().run(fn)", "fn"),
        ("copy_context().run(call, 1)", "call"),
    ],
)
def test_a_call_in_a_copy_of_a_context_is_found(code: str, what: str) -> None:
    assert [what] == runs(code)


# -- one automaton


def moves(code: str) -> list[int]:
    """Return the lines that set the phase of a region, or begin one of its passes."""
    found: list[int] = []
    for node in nodes(code):
        match node:
            case ast.Attribute(attr="phase", ctx=ast.Store()):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr="starting" | "finishing")):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=at) | ast.Attribute(attr=at), attr="over")) if (
                at.strip("_") == "run"
            ):
                found.append(node.lineno)
            case _:
                pass
    return found


def test_the_life_of_a_region_goes_on_in_one_module_only() -> None:
    assert {PASSES} == {name for name, code in modules() if moves(code)}


@pytest.mark.parametrize(
    "code",
    [
        "self.phase = Phase.OVER",
        "self._passes.phase = next_one",
        "items = self.run.over(items, until)",
        "run.over(items, inf)",
        "yield from self._run.starting()",
        "list(run.finishing())",
    ],
)
def test_a_move_of_a_region_is_found(code: str) -> None:
    assert [1] == moves(code)


@pytest.mark.parametrize("code", ["self.over = True", "if passes.phase is Phase.OVER: pass", "Iteration.over(flow)"])
def test_what_only_looks_is_let_through(code: str) -> None:
    assert [] == moves(code)


# -- one clock, one arithmetic of demand, one rule of refilling, one StopIteration

DEMAND = "spec/demand.py"

BY_HAND: dict[str, tuple[int, str]] = {
    "_arbiter/arbiter.py": (1, "the elements of each inner flow come through"),
    "operators/observing/__init__.py": (1, "shows a demand"),
    "operators/transforming/flat_map_iterable.py": (1, "asks for one element at a time unless all are wanted"),
    "operators/windowing/by_key.py": (1, "asks for one element at a time unless all are wanted"),
    "operators/transforming/map_batches.py": (1, "asks for a batch unless all or nothing is wanted"),
    "operators/sourcing/task.py": (1, "each element of a coroutine comes through"),
    "_arbiter/gathering.py": (
        1,
        "each list of a combinator comes through, and where its sources suspend that is each element",
    ),
    "_arbiter/merging.py": (2, "the same, and asks whether all elements are wanted"),
    "_runtime/iterator_subscription.py": (
        2,
        "each list of an iterator comes through, and where it suspends that is each element",
    ),
    "_runtime/direct_buffered.py": (2, "what is asked without bound is not asked again"),
    "operators/windowing/substream.py": (1, "each list of a window or a group comes through"),
    "_runtime/driver.py": (2, "each request comes through, and a call would cost more than the sum"),
    "_runtime/emission.py": (1, "each list that is delivered comes through, and in some flows that is each element"),
    "_runtime/inputs.py": (
        5,
        "each list that arrives comes through; and what is asked without bound is not asked again",
    ),
    "testing/snapshot.py": (1, "shows a demand"),
}
"""Where something is compared with UNBOUNDED beside the functions for that, how often, and why."""

CLOCKS: dict[str, str] = {
    "_core/budgets.py": "the one clock",
    "_clocks/counted.py": "puts a count in its place, on virtual loops",
    "_cli/running.py": "tells how long a run took",
    "spec/recorder.py": "tells when a signal came, where there is no event loop",
}
"""Where Python's clock is read, and why."""

LENGTHS = ("TURN", "SHORT")


def bounds(code: str) -> list[int]:
    """Return the lines that compare with UNBOUNDED, or take the least of something and it."""
    found: list[int] = []
    for node in nodes(code):
        match node:
            case ast.Compare():
                parts = [node.left, *node.comparators]
            case ast.Call(func=ast.Name(id="min" | "max")):
                parts = node.args
            case _:
                continue
        if any(
            isinstance(each, ast.Name) and each.id == "UNBOUNDED" for part in parts for each in [part, *elements(part)]
        ):
            found.append(node.lineno)
    return found


def elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.Set, ast.Tuple, ast.List)) else []


def quarters(code: str) -> list[int]:
    """Return the lines that reckon a quarter."""
    return [
        node.lineno
        for node in nodes(code)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.RShift)
        and isinstance(node.right, ast.Constant)
        and node.right.value == 2
    ]


def clocks(code: str) -> list[int]:
    """Return the lines that name Python's clock of performance."""
    return [
        node.lineno
        for node in nodes(code)
        if (isinstance(node, ast.alias) and node.name.startswith("perf_counter"))
        or (isinstance(node, ast.Attribute) and node.attr.startswith("perf_counter"))
    ]


def lengths(code: str) -> list[str]:
    """Return the names of lengths of turns that are assigned."""
    return [
        node.id
        for node in nodes(code)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in LENGTHS
    ]


def by_name(code: str) -> list[int]:
    """Return the lines that import the clock or a length of turns by name, where a test can't put another."""
    return [
        node.lineno
        for node in nodes(code)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").endswith("budgets")
        and {"clock", *LENGTHS} & {each.name for each in node.names}
    ]


def conversions(code: str) -> list[int]:
    """Return the lines that make the RuntimeError which stands for what would end an iteration."""
    found: list[int] = []
    for node in nodes(code):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "RuntimeError":
            text = ast.unparse(node)
            if "raised Stop" in text or "raised {type(error)" in text:
                found.append(node.lineno)
    return found


def test_demand_is_reckoned_in_one_module() -> None:
    found = {name: len(lines) for name, code in modules() if name != DEMAND and (lines := bounds(code))}

    assert {name: count for name, (count, _) in BY_HAND.items()} == found, (
        "call add_demand(), subtract_demand(), bounded()"
    )


def test_when_more_is_asked_for_is_said_once() -> None:
    assert [DEMAND] == [name for name, code in modules() for _ in quarters(code)], "call refill_after() or quarter()"


def test_work_is_measured_by_one_clock() -> None:
    assert set(CLOCKS) == {name for name, code in modules() if clocks(code)}, "call budgets.clock()"


def test_how_long_a_turn_lasts_is_said_once() -> None:
    assert [("_core/budgets.py", "TURN"), ("_core/budgets.py", "SHORT")] == [
        (n, each) for n, code in modules() for each in lengths(code)
    ]
    assert [] == [name for name, code in modules() if by_name(code)]


def test_what_would_end_an_iteration_becomes_a_failure_in_one_function() -> None:
    assert ["_core/guard.py"] == [name for name, code in modules() for _ in conversions(code)], (
        "call as_of_a_generator()"
    )


@pytest.mark.parametrize(
    "code", ["if demand != UNBOUNDED: pass", "min(a + b, UNBOUNDED)", "n in {0, UNBOUNDED}", "max(UNBOUNDED, 1)"]
)
def test_reckoning_with_demand_is_found(code: str) -> None:
    assert [1] == bounds(code)


@pytest.mark.parametrize("code", ["subscription.request(UNBOUNDED)", "n = UNBOUNDED if m else 0"])
def test_what_only_asks_for_all_is_let_through(code: str) -> None:
    assert [] == bounds(code)


@pytest.mark.parametrize(
    "code", ["from time import perf_counter", "time.perf_counter()", "from time import perf_counter_ns"]
)
def test_a_clock_is_found(code: str) -> None:
    assert [1] == clocks(code)


@pytest.mark.parametrize(
    "code",
    [
        "from ..budgets import clock",
        "from .budgets import TURN, Budget",
        "from reactive_aio._core.budgets import SHORT",
    ],
)
def test_a_clock_that_is_imported_by_name_is_found(code: str) -> None:
    assert [1] == by_name(code)


@pytest.mark.parametrize(
    "code", ['RuntimeError("generator raised StopIteration")', 'RuntimeError(f"{what} raised {type(error).__name__}")']
)
def test_a_conversion_is_found(code: str) -> None:
    assert [1] == conversions(code)


# -- one drain


def drains(code: str) -> list[int]:
    """Return the lines that ask whether a failure is being handled, which only a drain has to know."""
    return [
        node.lineno for node in nodes(code) if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.exception"
    ]


DRAINS: dict[str, str] = {
    "_arbiter/drain.py": "the drain",
    "_runtime/direct_buffered.py": "a service may have thousands of them: it holds nothing that one reader does not need",
}


def test_work_by_steps_is_drained_in_one_loop() -> None:
    assert list(DRAINS) == [name for name, code in in_engine() for _ in drains(code)]


def test_a_drain_is_found() -> None:
    assert [1] == drains("if sys.exception() is None: pass")


# -- one subscriber of inner flows

INNER = ("_arbiter/inner.py", "Inner")

RECEIVERS: dict[tuple[str, str], str] = {
    ("operators/observing/judging.py", "OneByOne"): "speaks to somebody else's subscriber",
    (
        "operators/observing/passing.py",
        "Passing",
    ): "passes on what the one flow of its region gives: it asks for nothing",
    ("operators/overflow/intake.py", "Intake"): "takes all that comes, and has a backlog in the place of demand",
    ("operators/scheduling/_worker_boundary.py", "WorkerBoundary"): "hands on to workers, who ask by credit",
    ("operators/sharing/inside.py", "Inside"): "has readers, who ask for what is asked of the flow",
    ("operators/sharing/run.py", "Run"): "is a run of its own, for subscribers on several event loops",
}
"""Other subscribers by which an operator reads a flow, and the reason why they are no `Inner`."""


def receivers(code: str) -> list[str]:
    """Return the classes that take a subscription, elements by the list, and either end."""
    signals = {"on_subscribe", "on_chunk", "on_error", "on_complete"}
    return [
        node.name
        for node in nodes(code)
        if isinstance(node, ast.ClassDef)
        and signals <= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    ]


def test_operators_read_flows_by_one_subscriber() -> None:
    readers = ("_arbiter/", "operators/")
    found = [(name, each) for name, code in modules() if name.startswith(readers) for each in receivers(code)]

    assert sorted([INNER, *RECEIVERS]) == sorted(found), "subscribe by an Inner"


def test_a_receiver_is_found() -> None:
    methods = ("on_subscribe", "on_chunk", "on_error", "on_complete")

    assert ["A"] == receivers("class A:\n" + "\n".join(f"    def {name}(self): ..." for name in methods))
    assert [] == receivers("class A:\n    def on_chunk(self): ...\n    def on_end(self): ...")
