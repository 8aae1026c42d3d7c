"""Every coroutine test runs on asyncio's loop and, where it is installed, on uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

try:
    import uvloop
except ImportError:
    uvloop = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--loop", default="all", choices=["all", "asyncio", "uvloop"], help="the event loops to run on")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if uvloop is not None:
        factories["uvloop"] = uvloop.new_event_loop
    wanted = config.getoption("--loop")
    return {name: factory for name, factory in factories.items() if wanted in {"all", name}}
