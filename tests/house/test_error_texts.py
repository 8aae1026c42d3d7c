"""Errors, notes and warnings are in plain English: what happened, where, and what to do, in short sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from statistics import median

import pytest

from tests.house.error_texts import Text, texts_of
from tests.house.test_prose import LONGEST, OPENS, ROOT, TYPICAL, WRITE_INSTEAD, forbidden, sources, words

LEAST = 500
"""The collector has to find so many: else the tests are about nothing."""
NAMES = {
    *("Arrow", "Python", "Spark", "Unix", "Connect", "SQLite", "Java"),  # products
    *("None", "True", "False"),  # Python's
    *("Events", "Frames", "Peer", "Poll", "Row", "State", "Subscriber", "Table"),  # types of the library and of Spark
}
"""Words with a capital letter in the middle of a sentence."""
AS_IN_PYTHON = {"Executor shutdown has been called", "Event loop is closed"}
"""The words of asyncio itself in these cases."""


@cache
def texts() -> list[Text]:
    """Read the texts when the first test asks for them: every process of a run imports this module."""
    return texts_of({path.relative_to(ROOT).as_posix(): source for path, source in sources()})


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text: a full stop and a line break end one."""
    yield from re.split(r"(?<=[.!?])\s+|\s*\n\s*", text.strip())


def too_long(text: str) -> bool:
    return any(words(sentence) > LONGEST for sentence in sentences(text))


def opens_with_a_clause(text: str) -> bool:
    return any(re.match(OPENS, sentence) for sentence in sentences(text))


def begins_badly(text: str) -> bool:
    """Return whether a text begins with a capital letter that is not part of a name or of code."""
    first = re.match(r"([A-Z][a-z]+)(?![\w(.])", text)
    return first is not None and first[1] not in NAMES


def lacks_a_full_stop(text: str) -> list[str]:
    """Return the words that begin a sentence although the one before has not ended."""
    pairs = [pair for line in text.splitlines() for pair in zip(line.split(), line.split()[1:], strict=False)]
    begun = [(before, re.fullmatch(r"([A-Z][a-z]+),?", word)) for before, word in pairs]
    return [found[1] for before, found in begun if found and before[-1] not in ".?!:" and found[1] not in NAMES]


def where(found: list[Text]) -> str:
    return "\n".join(f"{each.file}:{each.line}: {each.text}" for each in found)


def test_the_texts_are_found() -> None:
    assert len(texts()) >= LEAST


def test_no_sentence_of_an_error_is_too_long() -> None:
    found = [each for each in texts() if too_long(each.text)]

    assert not found, f"one idea a sentence:\n{where(found)}"


def test_errors_are_short_as_a_rule() -> None:
    assert median(words(sentence) for each in texts() for sentence in sentences(each.text)) <= TYPICAL


@pytest.mark.parametrize("word", WRITE_INSTEAD)
def test_a_word_is_not_in_an_error(word: str) -> None:
    found = [each for each in texts() if word in forbidden(each.text)]

    assert not found, f"{WRITE_INSTEAD[word]}:\n{where(found)}"


def test_no_error_opens_with_a_clause() -> None:
    found = [each for each in texts() if opens_with_a_clause(each.text)]

    assert not found, f"begin with the subject:\n{where(found)}"


def test_an_error_begins_in_lower_case_or_with_a_name() -> None:
    found = [each for each in texts() if begins_badly(each.text) and each.text not in AS_IN_PYTHON]

    assert not found, f"begin in lower case:\n{where(found)}"


def test_a_full_stop_divides_the_sentences_of_an_error() -> None:
    found = [each for each in texts() if lacks_a_full_stop(each.text)]

    assert not found, f"end the sentence before:\n{where(found)}"


# -- the collector finds what is planted


def planted(source: str) -> list[str]:
    return [each.text for each in texts_of({"planted.py": source})]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("raise ValueError('one two three')", "one two three"),
        ("raise ValueError(f'{a.b!r} is no {c}')", "x is no x"),
        ("raise ValueError('one two ' + f'{three}')", "one two x"),
        ("raise ValueError('\\n'.join(['one two three']))", "one two three"),
        ("raise ValueError(f'one {WHY} three')\nWHY = 'two'", "one two three"),
        ("raise ValueError(f'one {WHY} three')\nWHY: Final = 'two'", "one two three"),
        ("give_up(OSError('one two three'))", "one two three"),
        ("add_note(error, f'one two {at}')", "one two x"),
        ("warnings.warn('one two three')", "one two three"),
        ("_logger.warning('one %s three', two)", "one %s three"),
        ("check_function('map', fn, 'one two three')", "one two three"),
        ("class A:\n    STAYS: ClassVar[str] = 'one two three'", "one two three"),
        ("def f():\n    told = f'one two {n}'\n    raise ValueError(told)", "one two x"),
        ("async def f():\n    why = 'two'\n    raise ValueError(f'one {why} three')", "one two three"),
    ],
)
def test_a_text_is_found(source: str, text: str) -> None:
    assert [text] == planted(source)


def test_both_sides_of_a_condition_are_found() -> None:
    source = "def f():\n    why = 'two' if a else 'three'\n    raise ValueError(f'one {why} four')"

    assert ["one two four", "one three four"] == planted(source)


def test_each_value_of_a_name_is_found() -> None:
    source = "def f():\n    if a:\n        why = 'two'\n    else:\n        why = 'three'\n    raise ValueError(f'one {why} four')"

    assert ["one two four", "one three four"] == planted(source)


def test_a_constant_of_another_module_is_found() -> None:
    sources = {"a.py": "from b import WHY\nraise ValueError(f'one {WHY} three')", "b.py": "WHY = 'two'"}

    assert ["one two three"] == [each.text for each in texts_of(sources)]


def test_the_place_of_a_text_is_found() -> None:
    assert [Text("a.py", 2, "one two three")] == texts_of({"a.py": "\nraise ValueError('one two three')"})


def test_other_texts_are_not_errors() -> None:
    assert [] == planted("print('one two three')\nshow = 'one two three'")


def test_a_name_that_is_made_of_itself_ends() -> None:
    assert ["one two x"] == planted("def f():\n    why = f'one two {why}'\n    raise ValueError(why)")


def test_a_long_sentence_is_bad() -> None:
    assert too_long("word " * LONGEST + "word")
    assert not too_long("word " * LONGEST)


def test_a_forbidden_word_is_bad() -> None:
    assert ["of which"] == forbidden("two results, of which one is late")
    assert [] == forbidden("one of two results is late")


def test_a_clause_in_front_is_bad() -> None:
    assert opens_with_a_clause("it fails. What came before is lost")
    assert not opens_with_a_clause("it fails. Is that what you want?")


@pytest.mark.parametrize("text", ["The flow has ended", "Nobody reads"])
def test_a_capital_letter_in_front_is_bad(text: str) -> None:
    assert begins_badly(text)


@pytest.mark.parametrize(
    "text", ["the flow has ended", "Flow(...) fails", "Inbox.start() fails", "None can't leave", "x is bad"]
)
def test_a_name_in_front_is_good(text: str) -> None:
    assert not begins_badly(text)


def test_a_missing_full_stop_is_bad() -> None:
    assert ["Raise"] == lacks_a_full_stop("there are 3 elements Raise max_size")
    assert ["Raise"] == lacks_a_full_stop("there are 3 elements; Raise max_size")
    assert [] == lacks_a_full_stop("there are 3 elements. Raise max_size, or use Spark")
