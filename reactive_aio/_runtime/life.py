"""The life of a region on its event loop, in phases that follow each other.

::

    MADE ──begin──► BEGUN ──first turn──► OPEN ──complete, fail, cancel──► CLOSED
      └──────────────┴──── cancel, or its loop ends ─────────────────────────┘

A region is linked to its neighbours when it is MADE. It is BEGUN when it is on its loop, and its receiver has its subscription.
Its first turn opens the source. While it is OPEN its passes run, which have phases of their own (`_fusion.passes`). It is CLOSED
once: then downstream has heard of the end, unless it has cancelled, and everything is let go of.

That downstream has cancelled is no phase: any thread may say so at any time, and the region sees it at its next step.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal


class Life(Enum):
    """The states of a region's life."""

    MADE = auto()
    BEGUN = auto()
    OPEN = auto()
    CLOSED = auto()


# By names of the module, as each turn asks: to look one up on the class takes Python far longer.
MADE: Final[Literal[Life.MADE]] = Life.MADE
BEGUN: Final[Literal[Life.BEGUN]] = Life.BEGUN
OPEN: Final[Literal[Life.OPEN]] = Life.OPEN
CLOSED: Final[Literal[Life.CLOSED]] = Life.CLOSED
