"""`reactive-aio run` shows the jobs while they run."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._cli.running import Run, drive
from reactive_aio._cli.screen import RichScreen

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_a_run_on_a_terminal_ends_with_a_full_bar_for_its_job(sc: Any, wire: str) -> None:
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=160)

    await drive(Flow.from_spark(sc.parallelize(range(700), 4), wire=wire).map(str), Run(rows=3), RichScreen(console))

    last = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", out.getvalue()).split("\r")[-1]
    assert re.search(r"━{20} Spark local\[3,4\]: 4/4 tasks, 0 running, 700 elements \([\d,]+/s\)", last), last
