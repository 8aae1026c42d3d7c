"""The notes of changes make a section of the changelog."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTES = ROOT / "docs" / "changelog"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]


def test_every_note_says_its_kind_by_its_name() -> None:
    kinds = "|".join(each["directory"] for each in SETTINGS["type"])

    names = [path.name for path in NOTES.iterdir() if path.name != "README.md"]

    assert [] == [name for name in names if not re.fullmatch(rf"\+[a-z0-9-]+\.({kinds})\.md", name)]


def test_a_release_moves_the_notes_in_front_of_the_older_releases(tmp_path: Path) -> None:
    shutil.copytree(NOTES, tmp_path / "docs" / "changelog")
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    note = tmp_path / "docs" / "changelog" / "+nap.added.md"
    note.write_text("Call `Flow.nap` to nap.\n")
    release = ["towncrier", "build", "--yes", "--version", "9.8.7", "--date", "2100-01-01"]

    subprocess.run([sys.executable, "-m", *release], cwd=tmp_path, check=True, capture_output=True)

    text = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.index("\n## 9.8.7, 2100-01-01\n") < text.index("- Call `Flow.nap` to nap.") < text.index("\n## 0.2.0")
    assert not note.exists()
