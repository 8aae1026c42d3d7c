"""The page by which others may write the protocol anew has the sizes and the numbers of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reactive_aio._remote import frames
from reactive_aio._remote.handshake import GREETING, MAGIC, PROOF, REPLY

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "credit.md").read_text()


def rows(*columns: str) -> list[Any]:
    return re.findall(r"^\| " + r" \| ".join(columns), PAGE, re.MULTILINE)


def test_the_handshake() -> None:
    sizes = {name: int(size) for name, size in rows(r"(greeting|reply|proof)", "(?:worker|loop)", r"(\d+)")}

    assert {"greeting": GREETING.size, "reply": REPLY.size, "proof": PROOF.size} == sizes
    assert 2 == PAGE.count("magic and version") >= PAGE.count(f"`{MAGIC.decode()}`") >= 1


def test_the_head_of_a_frame() -> None:
    fields = rows(r"(?:kind|number|count|place|detail|length|buffers)", r"`(\w)`")

    assert frames.HEAD.format == "!" + "".join(fields)
    assert f"a head of {frames.HEAD.size} bytes" in PAGE
    assert "!Q" == frames.SIZE.format


def test_the_kinds() -> None:
    told = {name: int(kind) for kind, name in rows(r"(\d+)", r"([A-Z]+)")}

    assert told == {name: getattr(frames, name) for name in told}
    assert list(range(1, 12)) == sorted(told.values())
