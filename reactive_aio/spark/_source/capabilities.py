"""What Spark's workers can run of a flow, by the way in which its elements travel.

The partitions of the data are the parts of the stream.
"""

from __future__ import annotations

from typing import Final

from ..._fusion import AWAIT, ELEMENT, OFFSET, PART, SORT
from ..._plan import Capabilities
from .portable import check_portable

_BEHIND_OFFSET: Final = frozenset({ELEMENT, AWAIT, PART})
"""A task tells of one stage how far it has come, and its partitions wait for each other: they are not shuffled."""

ORDERED: Final = Capabilities(
    "Spark",
    frozenset({ELEMENT, AWAIT, PART, OFFSET, SORT}),
    check_portable,
    {PART: frozenset(), OFFSET: _BEHIND_OFFSET},
)
"""Elements come in the order of the partitions, by TCP."""

UNORDERED: Final = Capabilities(
    "Spark", frozenset({ELEMENT, AWAIT, PART, SORT}), check_portable, {PART: frozenset(), SORT: ORDERED.runs}
)
"""Partitions come as they are ready, until they are sorted."""

RESULTS: Final = Capabilities("Spark", frozenset({ELEMENT, AWAIT, PART}), check_portable, {PART: frozenset()})
"""Elements are the results of jobs: what a task tells at its end comes too late for the next, and Spark Connect has no shuffle."""
