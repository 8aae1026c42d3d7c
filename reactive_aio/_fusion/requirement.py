"""What a stage needs of the place where it runs."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Requirement(Enum):
    """What a stage needs of the place where it runs."""

    ELEMENT = "one element after another, whichever they are"
    AWAIT = "an event loop, for what its function awaits"
    PART = "a part of the stream, in its order"
    OFFSET = "the number of elements before its part"
    SORT = "all elements put in order"
    WHOLE = "the whole stream, in its order"


ELEMENT: Final = Requirement.ELEMENT
AWAIT: Final = Requirement.AWAIT
PART: Final = Requirement.PART
OFFSET: Final = Requirement.OFFSET
SORT: Final = Requirement.SORT
WHOLE: Final = Requirement.WHOLE
