"""The parts of a docstring: the sentence, the paragraphs with a head, the names elsewhere."""

from __future__ import annotations

import re
from typing import Final

from attrs import field, frozen

from .._core.containers import new_dict

HEADS: Final = ("Demand", "Errors", "Cancel", "Spark", "Runs", "Scheduling")
PEERS: Final = ("Reactor", "RxJava", "RxPY", "aiostream", "Pekko", "Kotlin")
SNAKES: Final = ("RxPY", "aiostream")
"""The libraries of Python, whose names are as the others' and in snake case."""


@frozen
class Told:
    """The parts of a docstring."""

    sentence: str
    parts: dict[str, str] = field(factory=new_dict)
    """The paragraphs that begin with one of the heads."""
    details: str = ""
    """The paragraphs between the sentence and the first head."""
    origin: str = ""
    """The text of the parentheses: where the name comes from."""

    @property
    def peers(self) -> dict[str, tuple[str, ...]]:
        """The operator's names in other libraries."""
        return names_in(self.origin)


def read(text: str) -> Told:
    r"""Take a docstring apart. A line in parentheses is the origin if the sentence before it has ended.

    >>> told = read("Do it.\n\nAt once.\nDemand: one for one;\nnothing is kept.\n(Reactor, RxJava: ``do``.)")
    >>> told.sentence, told.details, told.parts, told.peers
    ('Do it.', 'At once.', {'Demand': 'one for one; nothing is kept.'}, {'Reactor': ('do',), 'RxJava': ('do',)})
    >>> told = read("Do it.\n\nErrors: TypeError for None\n(rule 2.13).\n(Reactor: ``do``.)")
    >>> told.parts, told.origin
    ({'Errors': 'TypeError for None (rule 2.13).'}, 'Reactor: ``do``')
    """
    prose = re.split(r"^(?:>>>|\.\. code-block)", text, maxsplit=1, flags=re.MULTILINE)[0]
    sentence, *lines = prose.strip().splitlines()
    while lines and not sentence.rstrip().endswith((".", ":")):
        sentence += f" {lines.pop(0).strip()}"
    parts: dict[str, str] = {}
    details: list[str] = []
    head, before = "", sentence
    for line in lines:
        found = re.match(rf"({'|'.join(HEADS)}): ", line)
        origin_begins = line.startswith("(") and (not before.strip() or before.rstrip().endswith((".", ":")))
        if found or not line.strip() or origin_begins:
            head = found[1] if found else "(" if origin_begins else ""
        if head:
            parts[head] = f"{parts.get(head, '')} {line.strip().removeprefix(f'{head}: ')}".strip()
        else:
            details.append(line)
        before = line
    origin = parts.pop("(", "").strip("()").removesuffix(".")
    return Told(sentence, parts, "\n".join(details).strip(), origin)


def names_in(origin: str) -> dict[str, tuple[str, ...]]:
    """Return the names that are quoted first, by the libraries that they are said to come from.

    >>> names_in("RxJava: ``repeat``, also in the count; Reactor's ``repeat(n)`` counts the runs after the first")
    {'RxJava': ('repeat',), 'Reactor': ('repeat(n)',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in origin.split(";"):
        before, _, _ = part.partition("``")
        first = re.search(r"``.+?``(?:, ``.+?``)*", part)
        names = re.findall(r"``(.+?)``", first[0]) if first else []
        for peer in PEERS:
            if names and re.search(rf"\b{peer}x?\b(?!-)", before, re.IGNORECASE):
                found[peer] = (*found.get(peer, ()), *(map(_snake, names) if peer in SNAKES else names))
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda capital: f"_{capital[1].lower()}", name)
