"""No public name or signature changes by accident."""

from __future__ import annotations

import difflib
import sys

import pytest

from tests.house.surface import FILE, surface

pytest.importorskip("pyspark")


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="other Pythons show some signatures of builtins in other words"
)
def test_the_public_surface_is_the_one_that_was_written_down() -> None:
    expected = FILE.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(expected, surface().splitlines(), lineterm="", n=0))

    assert [] == changes, "if that is meant, run `python -m tests.house.surface`, and say so in the changelog"
