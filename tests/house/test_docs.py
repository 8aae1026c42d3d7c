"""Every Python block of the README and the docs runs: most of them here, those on Spark in `tests/spark/test_pages.py`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 240
"""Seconds that only a block which hangs comes to."""
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
"""A program, and what it prints if that stands behind it."""
BLOCKS = [
    (page, number, block, output)
    for page in PAGES
    for number, (block, output) in enumerate(BLOCK.findall(page.read_text()))
]
ON_SPARK = [
    (page, number) for page, number, block, _ in BLOCKS if page.stem.startswith("spark") or "local_session" in block
]
"""Programs that need a session. Those of a page follow one another, so they run in one process."""
UNDER_PYTEST = [
    (page, number) for page, number, block, _ in BLOCKS if re.search(r"^(async )?def test_", block, re.MULTILINE)
]
"""Tests, which pytest runs."""
ELSEWHERE = {("verify-your-own-publisher.md", 1): "test_the_example_of_the_page_finds_what_the_page_says"}
"""A verification of a publisher that breaks rules. A test of its own checks that it fails as the page says."""


# One interpreter imports the library. Each block runs in a copy of it, as it would by `python -c`: with no other names.
COPIES = f"""
def wanted():
    import asyncio, json, os, reactive_aio, signal, sys

    for line in sys.stdin:
        block, *files = json.loads(line)
        copy = os.fork()
        if not copy:
            signal.alarm({LIMIT})
            for number, file in enumerate([os.devnull, *files]):
                os.dup2(os.open(file, os.O_RDWR), number)
            return block
        print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
    return ""

exec(wanted())
"""

Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a block, and gives its exit code and what it has printed."""
    folder = tmp_path_factory.mktemp("printed")

    def run(block: str) -> tuple[int, str, str]:
        files = folder / "stdout", folder / "stderr"
        for file in files:
            file.write_text("")
        assert copies.stdin is not None
        assert copies.stdout is not None
        copies.stdin.write(json.dumps([block, *map(str, files)]) + "\n")
        copies.stdin.flush()
        code = int(copies.stdout.readline())
        return code, files[0].read_text(), files[1].read_text()

    with subprocess.Popen(
        [sys.executable, "-c", COPIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as copies:
        yield run


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be copied there")
@pytest.mark.parametrize(
    ("page", "number", "block", "output"),
    [
        block
        for block in BLOCKS
        if block[:2] not in [*ON_SPARK, *UNDER_PYTEST] and (block[0].name, block[1]) not in ELSEWHERE
    ],
    ids=lambda value: value.name if isinstance(value, Path) else str(value)[:3],
)
def test_a_block_runs(page: Path, number: int, block: str, output: str, run: Run) -> None:
    code, printed, told = run(block)

    assert code == 0, told
    if output:
        assert output == printed


@pytest.mark.costly
def test_the_tests_of_the_docs_pass(tmp_path: Path) -> None:
    blocks = [block for page, number, block, _ in BLOCKS if (page, number) in UNDER_PYTEST]
    for number, block in enumerate(blocks):
        (tmp_path / f"test_{number}.py").write_text(block)
    options = ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-o", "addopts=", "-o", "asyncio_mode=auto", "-q"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert blocks
    assert re.search(rf"^{len(blocks)} passed", done.stdout, re.MULTILINE), done.stdout


def test_no_block_is_left_out() -> None:
    """Each block that another test runs is named above, and that test is there."""
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    places = [(page.name, number) for page, number, *_ in BLOCKS]

    assert set() == set(ON_SPARK) & set(UNDER_PYTEST)
    assert set() == ELSEWHERE.keys() - set(places)
    assert [] == [name for name in ELSEWHERE.values() if f"def {name}(" not in sources]
    assert "def test_the_programs_of_a_page_run(" in (ROOT / "tests" / "spark" / "test_pages.py").read_text()


def test_each_output_is_compared() -> None:
    """An output behind a program is marked as text, by which the tests find it."""
    unmarked = re.compile(r"^```python\n(?:(?!```).*\n)*```\n\n```\n", re.MULTILINE)

    assert [] == [page.name for page in PAGES if unmarked.search(page.read_text())]


def anchors(page: Path) -> set[str]:
    """The names by which links reach the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_each_test_that_the_page_on_security_names_is_there() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    named = re.findall(r"`(test_\w+)`", page)

    assert len(named) > 20
    assert [] == [name for name in named if f"def {name}(" not in sources]
    assert [] == [name for name in re.findall(r"`(tests/[\w/.]+)`", page) if not (ROOT / name).exists()]
