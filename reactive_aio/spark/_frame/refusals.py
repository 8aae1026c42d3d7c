"""Operators that can't be part of a frame's plan: named by operator and line, with the way out."""

from __future__ import annotations

from typing import Any, Final

from ..._fusion import Placed
from ..._plan import PublishOn, Source, SubscribeOn
from ...errors import UnsupportedOnSparkError

IN_ORDER: Final = "it needs the order of all elements, and a Spark task sees only a part"
ANYWAY: Final = "use a Spark window or applyInArrow() by key on the frame, or run the flow on an event loop and write it with to_spark()"
"""The way out of what Spark has no method for."""
BY_KEY: Final = f"chain it behind group_by_key(..., order_by=...), {ANYWAY}"
"""The way out of what can be done for the elements of each key."""
WAYS_OUT: Final = {
    "take": "chain .limit(n) to the frame, or read with from_spark(ordered=False) for any n elements",
    "skip": "chain .offset(n) to the frame, or read with from_spark(ordered=False) to leave out any n elements",
    "index": "have Spark number the rows before they are read, with row_number() over a window",
    "sort_by": "chain .orderBy(...) to the frame",
    "distinct": "chain .dropDuplicates() to the result, or to the frame that from_spark() reads",
    **dict.fromkeys(("scan", "pairwise", "buffer", "buffer_until_changed"), BY_KEY),
}
"""How Spark does the same as a stage, or another way out, by the stage's name."""
OF_SOURCES: Final = {
    "join": "Leave out within=, or have Spark join two streaming frames by their event times: with withWatermark() on each, and a condition "
    "on both times in frame.join(...)",
}
"""The same for what combines flows on an event loop."""


def refused_part(method: str, step: Placed[Any], whole: Placed[Source[Any]]) -> UnsupportedOnSparkError:
    """Raise for a stage that Spark would run on the rows of one flow of several."""
    return UnsupportedOnSparkError(
        f"{step}, can't be run by {method}(): Spark runs it itself, on a whole frame, and this flow is only one part of {whole}. "
        "Make a frame of each flow with to_frame(), and put these together with union()"
    )


def refused_rows(method: str, step: Placed[Any], in_batches: bool) -> UnsupportedOnSparkError:
    """Raise for a stage that Spark would run on rows, where the elements are not the rows of a frame."""
    why = (
        "the elements are batches, and Spark counts rows. Chain .limit(n) or .offset(n) to the frame, or read rows"
        if in_batches
        else "Spark runs it itself, on a frame, and an RDD has no such method. Put it in front of all functions, or use to_frame()"
    )
    return UnsupportedOnSparkError(f"{step}, can't be run by {method}(): {why}")


def refused_stage(method: str, step: Placed[Any]) -> UnsupportedOnSparkError:
    """Raise for a stage that needs more than one element after another."""
    way = WAYS_OUT.get(step.operator.name, ANYWAY)
    return UnsupportedOnSparkError(f"{step}, can't be run by {method}(): {IN_ORDER}. {way[0].upper()}{way[1:]}")


def refused_between(method: str, before: Placed[Any], step: Placed[Any]) -> UnsupportedOnSparkError:
    """Raise for a stage of Spark's own after another one, because it has to be the last."""
    return UnsupportedOnSparkError(
        f"{step}, can't be run by {method}() behind {before.operator}, which Spark runs itself. "
        f"Put {before.operator.name}() first or last, or put {method}() and from_spark() between the two"
    )


def refused_place(method: str, step: Placed[PublishOn | SubscribeOn]) -> UnsupportedOnSparkError:
    """Raise for a boundary or a placement."""
    return UnsupportedOnSparkError(
        f"{step}, can't be run by {method}(): the steps behind it run on an event loop, but the elements of a frame stay on Spark. "
        f"Leave it out, or put {method}() before it and read the result with from_spark()"
    )


def refused_source(method: str, source: Placed[Source[Any]]) -> UnsupportedOnSparkError:
    """Raise for a source that makes elements, or combines flows, on an event loop."""
    if source.operator.name == "from_spark":
        return UnsupportedOnSparkError(
            f"{source}, can't be run by {method}(): its elements are micro-batches, which are handed to this process one after another. "
            f"Put {method}() behind the rows of each: Flow.from_spark(batch.frame).{method}(...). Or have Spark write the streaming frame"
        )
    if source.operator.inner:
        way = OF_SOURCES.get(source.operator.name, f"Put {method}() before it and read the result with from_spark()")
        return UnsupportedOnSparkError(
            f"{source}, can't be run by {method}(): it works on an event loop, but the elements of a frame stay on Spark. {way}"
        )
    return UnsupportedOnSparkError(
        f"{source}, can't be run by {method}(): its elements are made in this process. Begin the flow with "
        "from_spark(), or write it with to_spark()"
    )
