"""Which tests a run takes, and how they are spread over its processes.

There are four parts:

- ``all``: every test. pytest takes them all when nothing is said, and so does ``python3 dev.py test --all``.
- ``brief``: each test but those marked ``long``, with some of its cases. A coroutine test runs on one event loop. Of a
  test with many cases run as many as it takes to have each value of each parameter at least once. Of a test on Spark
  run a few cases. CI runs this part where it does not run the next.
- ``ci``: what CI runs on the default Python. It is the brief part, and one in `SHARE` of all other tests.
- ``daily``: what ``python3 dev.py test`` runs, which is to take minutes. It is the brief part with only one in `EVERY` of
  the tests on Spark, one case of each, and of the cases of those marked ``costly``.

A seed draws what is drawn. The same seed draws the same tests. No test has to be entered here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar

import pytest

MANY: Final = 24
"""A test with more cases than this runs some of them in the brief part."""
FEW: Final = 3
"""A test on Spark runs so many of its cases in the brief part, since each takes seconds."""
SHARE: Final = 10
"""CI runs one in so many of the tests that the brief part leaves out."""
EVERY: Final = 4
"""The daily part runs one in so many of the tests that take seconds."""
COSTLY: Final = ("costly", "spark")
"""The marks of tests that take seconds; so do all those in the folders of `SPARK`."""
SPARK: Final = ("tests/spark", "reactive_aio/spark")
"""The folders whose tests start a session of Spark."""
SESSION: Final = (*SPARK, "tests/benchmarks/test_tpch.py", "tests/test_flights.py")
"""All tests that start one."""
APART: Final = "tests/failures/test_programs.py"
"""The module whose cases take up to a minute each."""
SECONDS: Final = 30
"""A test that takes seconds counts as so many others, when a run puts the long ones first."""
LOOP: Final = "_asyncio_loop_factory"
"""The parameter by which pytest-asyncio chooses the event loop; it comes first."""
NAMES_OF_LOOPS: Final = {"asyncio", "uvloop"}

T = TypeVar("T")


class Case:
    """The value of a test's one parameter, where it stands for several."""

    def axes(self) -> dict[Hashable, Hashable]:
        """Return these with their values."""
        raise NotImplementedError


def rank(seed: str, name: str) -> int:
    """Return the place of a name in the order that a seed makes."""
    return int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "big")


def axes(item: pytest.Item) -> dict[Hashable, Hashable]:
    """Return what a test is parametrized by, each time it is; parameters that are given together are one."""
    callspec: Any = getattr(item, "callspec", None)
    if callspec is None:
        return {}
    case = next((value for value in callspec.params.values() if isinstance(value, Case)), None)
    ids = [*callspec._idlist]
    found: dict[Hashable, Hashable] = {}
    if LOOP in callspec.params and ids and ids[0] in NAMES_OF_LOOPS:
        found[LOOP] = ids.pop(0)
    return found | (dict(enumerate(ids)) if case is None else case.axes())


def loop_of(test: str, names: Iterable[str], seed: str) -> str:
    """Draw the event loop of a test."""
    return min(names, key=lambda name: rank(seed, f"{test} {name}"))


def on_one_loop(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return the cases of a test on the loop that is drawn for it."""
    loops = {str(axes(item)[LOOP]) for item in items if LOOP in axes(item)}
    if len(loops) < 2:
        return [*items]
    drawn = loop_of(name_of(items[0]), loops, seed)
    return [item for item in items if axes(item).get(LOOP, drawn) == drawn]


def name_of(item: pytest.Item) -> str:
    """Return the name of a test without its case."""
    return item.nodeid.partition("[")[0]


def covering(items: Iterable[pytest.Item], seed: str) -> Iterator[pytest.Item]:
    """Draw cases of a test until each value of each parameter is among them."""
    seen: set[tuple[Hashable, Hashable]] = set()
    for item in sorted(items, key=lambda item: rank(seed, item.nodeid)):
        values = set(axes(item).items())
        if not values <= seen:
            seen |= values
            yield item


def brief(items: Iterable[pytest.Item], seed: str, few: int = FEW) -> set[pytest.Item]:
    """Return some cases of each test, at most ``few`` of one on Spark, but of those that are ``long``."""
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("long") is None:
            tests[name_of(item)].append(item)
    found: set[pytest.Item] = set()
    for cases in tests.values():
        here = on_one_loop(cases, seed)
        if on_spark(here[0]):
            found.update(sorted(here, key=lambda item: rank(seed, item.nodeid))[:few])
        else:
            found.update(here if len(here) <= MANY else covering(here, seed))
    return found


def on_spark(item: pytest.Item) -> bool:
    """Return whether a test needs a session of Spark."""
    return item.nodeid.startswith(SPARK)


def takes_seconds(item: pytest.Item) -> bool:
    """Return whether a test is costly."""
    return on_spark(item) or any(item.get_closest_marker(name) is not None for name in COSTLY)


def is_drawn(item: pytest.Item, seed: str) -> bool:
    """Draw one in `EVERY` of the tests that take seconds; others are always in.

    Of tests on Spark it draws tests, of others their cases. So a test with a hundred cases does not make one run long
    and the next one short.
    """
    if on_spark(item):
        return rank(f"daily {seed}", name_of(item)) % EVERY == 0
    return not takes_seconds(item) or rank(f"daily {seed}", item.nodeid) % EVERY == 0


def chosen(items: Sequence[pytest.Item], part: str, seed: str) -> set[pytest.Item]:
    """Return the tests of a part."""
    if part == "all":
        return set(items)
    if part == "daily":
        return {item for item in brief(items, seed, few=1) if is_drawn(item, seed)}
    found = brief(items, seed)
    if part == "brief":
        return found
    return found.union(item for item in items if rank(f"ci {seed}", item.nodeid) % SHARE == 0)


# --- hooks, which conftest.py calls ----------------------------------------------------------------------------------


def add_options(parser: pytest.Parser) -> None:
    """Let the command say which tests to run."""
    parser.addoption(
        "--part", default="all", choices=["daily", "brief", "ci", "all"], help="the tests to run: tests/selection.py"
    )
    parser.addoption("--seed", default="0", help="draws the tests of a part that does not have all of them")


def loops(item: pytest.Item, found: Mapping[str, T]) -> Mapping[str, T]:
    """Leave the loop that is drawn for a test, so that its cases on the others are not even made."""
    marker = item.get_closest_marker("asyncio")
    if item.config.getoption("--part") not in ("daily", "brief") or (
        marker is not None and "loop_factories" in marker.kwargs
    ):
        return found
    drawn = loop_of(name_of(item), found, item.config.getoption("--seed"))
    return {drawn: found[drawn]}


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the part that is wanted."""
    part = config.getoption("--part")
    found = chosen(items, part, config.getoption("--seed"))
    left_out = [item for item in items if item not in found]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in found]
    if part != "all":
        long_first(items)


def long_first(items: list[pytest.Item]) -> None:
    """Put what takes long in front, so that the processes of a run end at about the same time."""
    weights = Counter[str]()
    for item in items:
        weights[unit(item.nodeid)] += SECONDS if takes_seconds(item) else 1
    items.sort(key=lambda item: (-weights[unit(item.nodeid)], unit(item.nodeid)))


def unit(nodeid: str) -> str:
    """Return what a process runs as a whole: a module, all modules that need a session of Spark, or a case that takes a minute.

    A session takes seconds to start, and a JVM is slow until it has compiled what it runs: with two of them all tests take
    twice as long. Thousands of units would cost more than they even out: the scheduler looks through all of them after each test.
    """
    if nodeid.startswith(SESSION):
        return "spark"
    return nodeid if nodeid.startswith(APART) else module(nodeid)


def module(nodeid: str) -> str:
    """Return the module of a test."""
    return nodeid.partition("::")[0]
