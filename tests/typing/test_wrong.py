"""Wrong uses are type errors: mypy in strict mode refuses a comment that ignores none. The functions are never called."""

from __future__ import annotations

from reactive_aio import Flow


def joined(a: int, b: int) -> str:
    return f"{a}{b}"


def reduced_to_another_type(flow: Flow[int]) -> None:
    flow.group_by_key(str).reduce(joined)  # type: ignore[arg-type]
