"""The pages about the verification suite say what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tck.rules_page import PAGE, page

VERIFY = PAGE.with_name("verify-your-own-publisher.md")


def test_the_page_of_the_rules_is_up_to_date() -> None:
    assert page() == PAGE.read_text(), "write it anew: python -m tests.tck.rules_page"


@pytest.mark.costly
def test_the_example_of_the_page_finds_what_the_page_says(tmp_path: Path) -> None:
    publisher, test, *_ = re.findall(r"^```python\n(.*?)^```", VERIFY.read_text(), re.MULTILINE | re.DOTALL)
    (told,) = re.findall(r"^```text\n(.*?)^```", VERIFY.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "countdown.py").write_text(publisher)
    (tmp_path / "test_countdown.py").write_text(test)
    options = ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-o", "addopts=", "-q"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    failed = re.findall(r"^FAILED .*?test_required_spec(\d)(\d\d)", done.stdout, re.MULTILINE)
    assert ["1.6", "3.3", "3.9", "3.9"] == sorted(f"{chapter}.{int(rule)}" for chapter, rule in failed), done.stdout
    for line in told.splitlines():
        assert line.strip() in done.stdout
