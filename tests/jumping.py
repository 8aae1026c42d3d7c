"""A clock that jumps by chance, as it does for a thread that the machine has put aside for some milliseconds: a pytest plugin.

Turns are measured by ``budgets.clock``, so any of them may end at any look at it. ``--jumps`` is the chance of that at each
look; the looks at which it jumps hang on the test and on ``--jump-seed``.
"""

from __future__ import annotations

import random
import time

import pytest
from attrs import Factory, define, field

from reactive_aio._core import budgets

JUMP = 2e-3
"""Seconds; longer than any turn."""


@define(eq=False)
class Jumping:
    """The clock, and the plugin that puts it in the place of the real one."""

    chance: float
    seed: int
    _random: random.Random = field(init=False, default=Factory(lambda self: random.Random(self.seed), takes_self=True))
    _ahead: float = field(init=False, default=0.0)

    def now(self) -> float:
        if self._random.random() < self.chance:
            self._ahead += JUMP
        return time.perf_counter() + self._ahead

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        budgets.clock = self.now
        self._random.seed(f"{item.nodeid} {self.seed}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--jumps", type=float, default=0.3, help="the chance that the clock of turns jumps at a look at it"
    )
    parser.addoption("--jump-seed", type=int, default=1, help="another number: other looks")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Jumping(config.getoption("--jumps"), config.getoption("--jump-seed")))
