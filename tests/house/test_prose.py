"""Docs and docstrings are in plain English: short sentences, and none of the words that make a reader go back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
MODULES = sorted((ROOT / "reactive_aio").rglob("*.py"))
LONGEST = 30
TYPICAL = 16
WRITE_INSTEAD = {
    "whoever": "name who it is: the caller, the subscriber, the source",
    "whichever": "say which",
    "of which": "begin a new sentence",
    "of whom": "begin a new sentence",
    "is told": "say who tells what to whom",
    "becomes of": "say what it does: is closed, is dropped, is passed on",
}
LEFT = {"long": 7, "whoever": 19, "whichever": 7, "of which": 31, "of whom": 0, "is told": 16, "becomes of": 5}
"""How many are left of sentences that are too long, and of these words. A number may only fall."""


def paragraphs(text: str) -> Iterator[str]:
    """Give the running text of Markdown or a docstring: no code, tables, headings and trees."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.) )", text):
        lines = [line.strip() for line in block.splitlines()]
        if not any(line.startswith(("|", "#", ">>>", "├", "└")) or "  " in line for line in lines):
            yield " ".join(lines)


def sentences(text: str) -> Iterator[str]:
    """Give the sentences; what is code in them is one word."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"``.*?``|`.*?`|\[([^\]]*)\]\([^)]*\)", lambda found: found[1] or "code", paragraph)
        yield from re.split(r"(?<=[.!?:;])\s+", plain)


def words(sentence: str) -> int:
    return len([word for word in sentence.split() if any(map(str.isalnum, word))])


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.fixture(scope="module")
def prose() -> list[tuple[str, str]]:
    """All sentences, each with the file that it stands in."""
    texts = [(path, path.read_text(encoding="utf-8")) for path in PAGES]
    texts += [(path, text) for path in MODULES for text in docstrings(path)]
    return [
        (path.relative_to(ROOT).as_posix(), sentence)
        for path, text in texts
        for sentence in sentences(text)
        if words(sentence) > 2
    ]


def test_no_sentence_is_too_long(prose: list[tuple[str, str]]) -> None:
    found = [each for each in prose if words(each[1]) > LONGEST]

    assert len(found) <= LEFT["long"], f"one idea a sentence: {found}"


def test_sentences_are_short_as_a_rule(prose: list[tuple[str, str]]) -> None:
    assert median(words(sentence) for _, sentence in prose) <= TYPICAL


@pytest.mark.parametrize("word", WRITE_INSTEAD)
def test_a_word_is_not_written_here(prose: list[tuple[str, str]], word: str) -> None:
    found = [each for each in prose if re.search(rf"\b{word}\b", each[1], re.IGNORECASE)]

    assert len(found) <= LEFT[word], f"{WRITE_INSTEAD[word]}: {found}"


def test_a_sentence_that_is_too_long_is_found() -> None:
    assert [LONGEST + 1] == [words(each) for each in sentences("word " * LONGEST + "`some code`.")]
