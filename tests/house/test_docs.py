"""Every Python block of the README and the docs runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 240.0
"""Seconds that only a block which hangs comes to: on a busy machine an interpreter takes ten to start, and not one."""
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCKS = [
    (page, number, block)
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))
]


@pytest.mark.parametrize(
    ("page", "number", "block"),
    [block for block in BLOCKS if "from_spark" not in block[2] and "pytest" not in block[2]],
    ids=lambda value: value.name if isinstance(value, Path) else str(value)[:3],
)
def test_a_block_runs(page: Path, number: int, block: str) -> None:
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, timeout=LIMIT)

    assert done.returncode == 0, done.stderr
    if page.name == "README.md" and number == 0:
        (shown,) = re.findall(r"^```text\n(R1.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        assert done.stdout == shown


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
