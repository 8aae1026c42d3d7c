"""The examples of the page of the operators, as text: what goes in, who asks for how much, and what comes of it.

A file for each family, in ``marbles/``. An example is what an author writes and what a run of it writes::

    skip: a.skip(2)
        a       -1-2-3-4-|
        asked   4@0 1@6
        wanted  2@0 1@6
        given   -----3-4-|

The first line has the operator and a call of it. Then come the lanes:

- ``a``, ``b``, ``c``: the marbles that the flows of these names emit, from their subscription on
- *asked*: the requests to the flow above, as ``number@time``; ``x`` is a cancel, ``,`` begins a further subscription
- *wanted*: the requests for the result; without this lane it is ∞ at once
- *given*: the marbles of the result
- *told*: the calls of the function ``tell``
- *lost*: the discarded elements, in the order in which the hook hears of them
- *fails*: the error of the result, if it is not the error of the marbles

The last lines say which elements the letters stand for. Times are seconds.

``python -m tests.catalogue.examples`` runs all examples and writes the lanes that came out into the files, for the
author to read. A new example needs its first line, the flows that it reads, and *wanted*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import field, frozen

FOLDER = Path(__file__).with_name("marbles")
MEASURED = ("asked", "given", "told", "lost", "fails", "where")


@frozen
class Example:
    """One example, as it is written."""

    operator: str
    call: str
    lines: tuple[tuple[str, str], ...]
    """The lines below the call: a word and what is said of it."""
    file: str = field(default="", eq=False)

    @property
    def flows(self) -> dict[str, str]:
        """The flows that it reads, by their names, in marbles."""
        return {word: text for word, text in self.lines if len(word) == 1 and word != ">"}

    def said(self, word: str) -> str:
        """Return what is said of something, or nothing."""
        return next((text for each, text in self.lines if each == word), "")

    @property
    def wanted(self) -> list[tuple[float, float]]:
        """The times and the numbers of what is wanted of the result; 0 stands for a cancel."""
        return [(at, number) for at, number in map(_mark, (self.said("wanted") or "∞@0").split())]

    def __str__(self) -> str:
        width = max([len(word) for word, _ in self.lines] + [6])
        return "\n".join(
            [f"{self.operator}: {self.call}", *(f"    {word:{width}}  {text}".rstrip() for word, text in self.lines)]
        )


def _mark(text: str) -> tuple[float, float]:
    number, _, at = text.partition("@")
    return float(at), {"∞": float("inf"), "x": 0}.get(number) or (0 if number == "x" else float(number))


def parse(text: str, file: str = "") -> Iterator[Example]:
    """Yield the examples of a file."""
    for block in re.split(r"\n(?=\S)", text.strip()):
        head, *lines = (line for line in block.splitlines() if line.strip())
        operator, _, call = head.partition(": ")
        yield Example(operator, call, tuple(_words(line) for line in lines), file)


def _words(line: str) -> tuple[str, str]:
    word, _, text = line.strip().partition(" ")
    return word, text.strip()


def all_examples() -> list[Example]:
    """Return the examples of all files."""
    return [
        example
        for path in sorted(FOLDER.glob("*.txt"))
        for example in parse(path.read_text(encoding="utf-8"), path.name)
    ]


def write() -> None:
    """Run all examples and write what came of it into their files."""
    from .running import ran

    for path in sorted(FOLDER.glob("*.txt")):
        done = [str(ran(example).example) for example in parse(path.read_text(encoding="utf-8"), path.name)]
        path.write_text("\n\n".join(done) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
