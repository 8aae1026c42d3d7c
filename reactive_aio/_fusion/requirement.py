"""The requirement of a stage: what the place where it runs must offer."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Requirement(Enum):
    """The requirement of a stage: what the place where it runs must offer."""

    ELEMENT = "one element after another, from any part of the stream"
    AWAIT = "an event loop, for what its function awaits"
    PART = "a part of the stream, in its order"
    OFFSET = "the number of elements before its part"
    SORT = "all elements put in order"
    KEYED = "the elements of each key brought together"
    WHOLE = "the whole stream, in its order"


ELEMENT: Final = Requirement.ELEMENT
AWAIT: Final = Requirement.AWAIT
PART: Final = Requirement.PART
OFFSET: Final = Requirement.OFFSET
SORT: Final = Requirement.SORT
KEYED: Final = Requirement.KEYED
WHOLE: Final = Requirement.WHOLE
