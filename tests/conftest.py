"""Every coroutine test runs on asyncio's loop and, where it is installed, on uvloop; there is one session of Spark."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from reactive_aio._core import budgets
from tests import selection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRID = "tests/grid/"
ONCE = ("tests/house/", "tests/catalogue/", "tests/benchmarks/")
"""The folders whose tests have the same result on every Python."""

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--loop", default="all", choices=["all", "asyncio", "uvloop"], help="the event loops to run on")
    selection.add_options(parser)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    wanted = config.getoption("--loop")
    return selection.loops(item, {name: factory for name, factory in LOOPS.items() if wanted in {"all", name}})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The grid is thousands of tests: on each Python on asyncio's loop, on uvloop on the default one.
    for item in items:
        if item.nodeid.startswith(ONCE) or (item.nodeid.startswith(GRID) and "uvloop" in item.name):
            item.add_marker(pytest.mark.stress)
    selection.select(config, items)


def set_aside() -> None:
    """Put all objects that are there out of the reach of the garbage collector.

    A process of a run has collected thousands of tests. With these a collection takes half a second, and some tests
    have many.
    """
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    set_aside()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # Again between modules, since some freeze and unfreeze objects themselves.
    if nextitem is not None and nextitem.path != item.path:
        set_aside()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    scheduler: Any = LoadScopeScheduling(config, log)
    scheduler._split_scope = selection.unit
    if config.getoption("--part") != "all":
        config.option.loadscopereorder = False  # the selection has put the long ones first
    return scheduler


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Have the clock by which turns are measured stand where the test sets it.

    For what is said of one turn, which on a busy machine may be two.
    """
    now = [0.0]
    monkeypatch.setattr(budgets, "clock", lambda: now[0])
    return now


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have the programs that a test starts heed Ctrl-C, though the tests run in the background of a script, which does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is over as soon as something has been done, as where the machine puts a thread aside."""
    monkeypatch.setattr(budgets, "TURN", 0.0)


def no_word(*_: object) -> None:
    """Keep what PySpark's server of accumulators would print out of what tests capture."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of a process, of three slots, so that one partition runs ahead, and four attempts for each task."""
    pytest.importorskip("pyspark")
    from pyspark import accumulators

    from reactive_aio.spark.session import local_session

    # Tasks are killed on purpose here, and what Spark has to say about that is not wanted.
    session = local_session("tests", "local[3,4]", spark__log__level="OFF", spark__sql__shuffle__partitions="3")
    assert session.sparkContext.master == "local[3,4]", "a test that ran before has started a session of its own"
    with pytest.MonkeyPatch.context() as patch:
        for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
            patch.setattr(server, "handle_error", no_word)  # the JVM hangs up on it now and then
        yield session
        session.stop()
