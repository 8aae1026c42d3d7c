"""The pytest plugin: fixtures for tests of streams. It is active when the package is installed, without configuration.

It works with pytest-asyncio, whose tests run on a virtual loop when they use the fixture ``virtual_time``, and
without it, for tests that are ordinary functions.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from .._clocks.virtual import VirtualTimeLoop
from ..spec import Publisher
from .leaks import LeakCheck
from .probing import StreamProbe
from .running import run_virtual
from .settling import settle

T = TypeVar("T")


class VirtualTime:
    """The value of the fixture ``virtual_time``."""

    @property
    def loop(self) -> VirtualTimeLoop:
        """The virtual loop that the test runs on."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualTimeLoop):
            raise TypeError(
                f"the test runs on {loop!r}: virtual_time needs pytest-asyncio 1.4 or later to run a test on its "
                "loop. With anyio's plugin, have anyio_backend return ('asyncio', {'loop_factory': VirtualTimeLoop}). "
                "Or write an ordinary test that calls virtual_time.run(coroutine)"
            )
        return loop

    @property
    def now(self) -> float:
        """The seconds that have passed on the clock of the loop."""
        return self.loop.time()

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
        await settle()

    async def settle(self) -> None:
        """Wait until nothing can run now."""
        await settle()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on a virtual loop, from a test that is an ordinary function."""
        return run_virtual(main)


class _VirtualLoops:
    """The plugin that is registered while the tests of a function that uses virtual_time are made."""

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_asyncio_loop_factories(self) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
        """Return the loops on which pytest-asyncio runs a test."""
        return {"virtual": VirtualTimeLoop}


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Make pytest-asyncio run tests that use virtual_time on a virtual loop, whatever loops are configured."""
    if "virtual_time" not in metafunc.fixturenames:
        return (yield)
    # For this function only: a hook that is always there would have to answer for all others as well.
    plugin = _VirtualLoops()
    metafunc.config.pluginmanager.register(plugin)
    try:
        return (yield)
    finally:
        metafunc.config.pluginmanager.unregister(plugin)


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest) -> VirtualTime:
    """A virtual clock. An async test that uses it runs on a VirtualTimeLoop. An ordinary test calls its ``run``.

    An async test that another plugin runs on a loop of its own fails with TypeError.
    """
    made = VirtualTime()
    test: object = getattr(request.node, "obj", None)
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def checked(*args: Any, **kwargs: Any) -> None:
            _ = made.loop  # else the test would sleep by the real clock
            await test(*args, **kwargs)

        request.node.obj = checked
    return made


@pytest.fixture
def no_leaks(request: pytest.FixtureRequest) -> Iterator[LeakCheck]:
    """Fail the test if it leaves a task, a timer, a thread or an async generator behind, or a tracked object."""
    check = LeakCheck()
    test: object = getattr(request.node, "obj", None)
    if not inspect.iscoroutinefunction(test):
        with check:
            yield check
        return

    @functools.wraps(test)
    async def checked(*args: Any, **kwargs: Any) -> None:
        async with check:
            await test(*args, **kwargs)

    request.node.obj = checked
    yield check


@pytest.fixture
def probe() -> Iterator[Callable[..., StreamProbe[Any]]]:
    """Provide `reactive_aio.testing.probe`. The test fails if it makes a probe and does not use it."""
    made: list[StreamProbe[Any]] = []

    def make(publisher: Publisher[T], *, request: int = 0, within: float = 30.0) -> StreamProbe[T]:
        made.append(StreamProbe(publisher, request=request, within=within))
        return made[-1]

    yield make
    unused = [each.publisher for each in made if not each.entered]
    if unused:
        pytest.fail(f"the test made probes and did not enter them with `async with`: {unused}")
