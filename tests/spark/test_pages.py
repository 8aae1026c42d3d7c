"""The programs of the pages about Spark run, on one session. Those of a page follow one another and share their names."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house.test_docs import BLOCKS, ON_SPARK

pytestmark = pytest.mark.spark


def run(block: str, names: dict[str, Any], runner: asyncio.Runner) -> None:
    """Run a program that may await outside of a function."""
    code = compile(block, "<page>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    found = eval(code, names)
    if found is not None:
        runner.run(found)


@pytest.fixture
def page_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The session of all tests. A program may stop it without an effect on other tests."""
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    yield spark
    for query in spark.streams.active:
        query.stop()


@pytest.mark.parametrize("page", sorted({page for page, _ in ON_SPARK}), ids=lambda page: page.stem)
def test_the_programs_of_a_page_run(
    page: Path, page_session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for where, number, block, output in BLOCKS:
            if where == page and (where, number) in ON_SPARK:
                run(block.replace('"out/', f'"{tmp_path}/'), names, runner)
                assert output in ("", capsys.readouterr().out), f"block {number}"
