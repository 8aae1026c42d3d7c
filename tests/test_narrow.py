"""Unbounded demand is more than Python counts to on a machine of 32 bits; flows run there all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from reactive_aio import Flow

HERE = Path(__file__).parent


def test_where_python_counts_to_two_thousand_million_flows_run() -> None:
    command = [sys.executable, "-m", "tests.narrow"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, timeout=120, check=False)

    assert "" == told.stderr
    given = dict(line.split(" ", 1) for line in told.stdout.splitlines())
    assert "[]" == given.pop("skip_last")
    assert {"[0, 1, 2]"} == set(given.values())


async def test_more_than_python_counts_to_may_be_asked_for_anywhere() -> None:
    numbers, more = Flow.range(3), 2**70

    assert [0, 1, 2] == await numbers.take_last(more).to_list()
    assert [] == await numbers.skip_last(more).to_list()
    assert [0, 1, 2] == await numbers[:more].to_list()
    assert [1] == await numbers[1 : more : more - 1].to_list()
    assert [] == await numbers[more:].to_list()
