"""The examples of docstrings that need a cluster, run as they stand there, in the session of these tests."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from textwrap import dedent
from types import CodeType
from typing import Any

import attrs
import pytest

from reactive_aio import Flow

pytest.importorskip("pyspark")

pytestmark = pytest.mark.spark


@attrs.frozen
class Reading:
    id: int
    name: str


def example(documented: Any, out: Path) -> CodeType:
    """Compile what stands in the docstring, where it may await; it writes to a folder of the test's."""
    text = inspect.getdoc(documented) or ""
    (block,) = re.findall(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text + "\n")
    source = dedent(block).replace('"out/', f'"{out}/')
    code: CodeType = compile(source, documented.__name__, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


def test_of_from_spark(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example(Flow.from_spark, tmp_path), {"Flow": Flow})

    assert "[1, 9, 25]\n" == capsys.readouterr().out


def test_of_to_frame(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example(Flow.to_frame, tmp_path), {"Flow": Flow, "session": spark})

    first, second = capsys.readouterr().out.splitlines()
    assert "[Row(square=1), Row(square=9), Row(square=25)]" == first
    assert "[Row(square=25, id=5)]" == second


def test_of_to_rdd(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example(Flow.to_rdd, tmp_path), {"Flow": Flow, "session": spark})

    assert "[1, 9, 25]\n" == capsys.readouterr().out


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_of_to_spark(spark: Any, tmp_path: Path) -> None:
    names = {"readings": Flow.range(3).map(lambda n: Reading(n, f"r{n}")), "session": spark, "Reading": Reading}
    await eval(example(Flow.to_spark, tmp_path), names)

    done: Any = names["done"]
    assert ("monday", 1, 3) == (done.run, done.batches, done.rows)
    assert [0, 1, 2] == sorted(row.id for row in spark.read.parquet(str(tmp_path / "readings")).collect())
