"""No public name or signature changes by accident."""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path

import pytest

from tests.house.surface import FILE, MODULES, PACKAGE, surface

pytest.importorskip("pyspark")


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="other Pythons show some signatures of builtins in other words"
)
def test_the_public_surface_is_the_one_that_was_written_down() -> None:
    expected = FILE.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(expected, surface().splitlines(), lineterm="", n=0))

    assert [] == changes, "if that is meant, run `python -m tests.house.surface`, and say so in the changelog"


def test_the_policy_names_the_modules_whose_names_are_frozen() -> None:
    policy = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    listed = policy.partition("names that these modules export")[2].partition("\n- ")[0]

    assert set(MODULES) == {name.removeprefix(PACKAGE) for name in re.findall(r"`([\w.]+)`", listed)}
