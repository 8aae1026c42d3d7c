"""Docs, docstrings, comments and help are in plain English: short sentences, and none of the words that make a reader go back."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from inspect import cleandoc
from io import StringIO
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted((ROOT / "reactive_aio").rglob("*.py"))
PROGRAMS = sorted(
    path
    for path in [ROOT / "dev.py", *(ROOT / "examples").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    if not path.name.startswith("bench_")  # their docstrings are the headings of a page
)
"""The modules that the package does not have."""
DIRECTIVE = r"#\s*(type:|noqa|pyright:|pragma|ruff:|fmt:)"
LONGEST = 30
LONGEST_JOINED = 24
TYPICAL = 16
WRITE_INSTEAD = {
    "whoever": "name who it is: the caller, the subscriber, the source",
    "whichever": "say which",
    "of which": "begin a new sentence",
    "of whom": "begin a new sentence",
    "is told": "say who tells what to whom",
    "becomes of": "say what it does: is closed, is dropped, is passed on",
    r"(?:that|what|which) (?:is|are) no (?!more|longer|earlier|later)": "write that it is not one, as in: not a flow",
}
"""Words, as regular expressions, each with advice."""
OPENS = r"\W*What\b(?!.*\?\W*$)"
"""A sentence that opens with a clause, "What comes of them is a flow": write "The result is a flow"."""
HIDES = r"(Gives?|Tells?)\b(?! (up|back)\b)"
"""Openings of a docstring that hide what a function does: it returns, yields, emits, passes on or signals."""


def paragraphs(text: str) -> Iterator[str]:
    """Yield the running text of Markdown or a docstring: no code, tables, headings and trees."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.) )", text):
        lines = [line.strip() for line in block.splitlines()]
        if not any(line.startswith(("|", "#", ">>>", "├", "└")) or "  " in line for line in lines):
            yield " ".join(lines)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences, from full stop to full stop; what is code in them is one word."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"``.*?``|`.*?`|\[([^\]]*)\]\([^)]*\)", lambda found: found[1] or "code", paragraph)
        yield from re.split(r"(?<=[.!?])\s+", plain)


def words(sentence: str) -> int:
    return len([word for word in sentence.split() if any(map(str.isalnum, word))])


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of modules, classes and functions, and the strings below fields."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield cleandoc(text)
            case _:
                pass


def comments(source: str) -> Iterator[str]:
    """Yield the comments; those on lines that follow each other are one text, and directives to tools are none."""
    found: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(DIRECTIVE, token.string):
            if token.start[0] != last + 1:
                yield " ".join(found)
                found = []
            found.append(token.string.lstrip("#: "))
            last = token.start[0]
    yield " ".join(found)


def helps(source: str) -> Iterator[str]:
    """Yield the texts that a command shows with `--help`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.keyword("help" | "description" | "epilog", ast.Constant(str(text))):
                yield text
            case ast.keyword("help" | "description" | "epilog", ast.JoinedStr(parts)):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
            case _:
                pass


def written(page: Path) -> str:
    """Return the text of a page: of the operators' only the head, since the rest is made of docstrings."""
    text = page.read_text(encoding="utf-8")
    return text.partition("\n- ")[0] if page.name == "operators.md" else text


def prose(texts: Iterable[tuple[Path, str]]) -> list[tuple[str, str]]:
    """Return all sentences of the texts, each with the file that it stands in."""
    return [
        (path.relative_to(ROOT).as_posix(), sentence)
        for path, text in texts
        for sentence in sentences(text)
        if words(sentence) > 2
    ]


def forbidden(text: str) -> list[str]:
    """Return the words of `WRITE_INSTEAD` in a text."""
    return [word for word in WRITE_INSTEAD if re.search(rf"\b{word}\b", text, re.IGNORECASE)]


@cache
def sources() -> list[tuple[Path, str]]:
    """Read the modules of the library and the programs beside it."""
    return [(path, path.read_text(encoding="utf-8")) for path in [*MODULES, *PROGRAMS]]


def words_of_tests() -> Iterator[tuple[Path, str]]:
    """Yield the docstrings and comments of the tests."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        yield from ((path, text) for text in (*docstrings(source), *comments(source)))


KINDS: dict[str, Callable[[], Iterable[tuple[Path, str]]]] = {
    "pages": lambda: ((path, written(path)) for path in PAGES),
    "docstrings": lambda: ((path, text) for path, source in sources() for text in docstrings(source)),
    "comments": lambda: ((path, text) for path, source in sources() for text in comments(source)),
    "help": lambda: ((path, text) for path, source in sources() for text in helps(source)),
    "tests": words_of_tests,
}


@cache
def prose_of(kind: str) -> list[tuple[str, str]]:
    """Read all sentences of a kind, when the first test asks for them: every process of a run imports this module."""
    return prose(KINDS[kind]())


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_is_too_long(kind: str) -> None:
    found = [each for each in prose_of(kind) if words(each[1]) > LONGEST]

    assert not found, "one idea a sentence"


@pytest.mark.parametrize("kind", KINDS)
def test_no_long_sentence_is_joined_by_a_semicolon(kind: str) -> None:
    found = [each for each in prose_of(kind) if ";" in each[1] and words(each[1]) > LONGEST_JOINED]

    assert not found, "write two sentences"


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_short_as_a_rule(kind: str) -> None:
    assert median(words(sentence) for _, sentence in prose_of(kind)) <= TYPICAL


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_opens_with_a_clause(kind: str) -> None:
    found = [each for each in prose_of(kind) if re.match(OPENS, each[1])]

    assert not found, "begin with the subject"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", WRITE_INSTEAD)
def test_a_word_is_not_written_here(kind: str, word: str) -> None:
    found = [each for each in prose_of(kind) if word in forbidden(each[1])]

    assert not found, WRITE_INSTEAD[word]


def test_a_docstring_says_what_a_function_returns_or_does() -> None:
    folders = ["reactive_aio", "tests", "benchmarks", "examples"]
    paths = [ROOT / "dev.py", *(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))]
    texts = ((path, text) for path in paths for text in docstrings(path.read_text(encoding="utf-8")))
    found = [(path.relative_to(ROOT).as_posix(), text.splitlines()[0]) for path, text in texts if re.match(HIDES, text)]

    assert not found, "write Return, Yield, Emit, or the verb of what is done"


def test_a_sentence_that_is_too_long_is_found() -> None:
    assert [LONGEST + 1] == [words(each) for each in sentences("word " * LONGEST + "`some code`.")]


def test_a_sentence_ends_at_a_full_stop_only() -> None:
    assert ["One; two: three.", "Four?", "Five."] == list(sentences("One; two: three. Four? Five."))


@pytest.mark.parametrize("text", ["What comes of it is a flow.", "- **What follows** runs there."])
def test_a_clause_in_front_is_found(text: str) -> None:
    assert re.match(OPENS, text)


@pytest.mark.parametrize("text", ["What is a flow?", "Whatever comes is kept.", "The result is what you asked for."])
def test_a_question_is_no_clause(text: str) -> None:
    assert not re.match(OPENS, text)


@pytest.mark.parametrize("text", ["Give the end.", "Gives elements.", "Tell whether it ends.", "Tells the hook."])
def test_an_opening_that_hides_what_is_done_is_found(text: str) -> None:
    assert re.match(HIDES, text)


@pytest.mark.parametrize("text", ["Give up.", "Give back a slot.", "Return the end.", "Given elements.", "Telling."])
def test_another_opening_is_good(text: str) -> None:
    assert not re.match(HIDES, text)


@pytest.mark.parametrize(
    "text", ["A value that is no flow.", "Raise for what is no number.", "Arguments that are no JSON."]
)
def test_a_negation_of_a_kind_is_found(text: str) -> None:
    assert forbidden(text)


@pytest.mark.parametrize("text", ["A value that is not a flow.", "A time that is no later.", "There is no demand."])
def test_another_negation_is_good(text: str) -> None:
    assert not forbidden(text)


def test_a_string_below_a_field_is_a_docstring() -> None:
    assert ["A module.", "A field."] == list(docstrings('"""A module."""\n\nfield = 1\n"""A field."""\n'))


def test_comments_on_lines_that_follow_each_other_are_one_text() -> None:
    source = "# One\n# text.\na = 1  # Another.\n\n# noqa\n# A third.\n"

    assert ["One text. Another.", "A third."] == list(comments(source))


def test_the_help_of_a_command_is_found() -> None:
    source = 'parser = ArgumentParser(description="One.")\nparser.add_argument("--n", help=f"Two {three}.")\nf(say="Four.")\n'

    assert ["One.", "Two x."] == list(helps(source))
