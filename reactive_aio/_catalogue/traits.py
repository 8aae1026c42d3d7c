"""The traits of an operator as data: what it requests, what it keeps, when it ends and what a failure does to it."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Completes(Enum):
    """When a flow completes. The value is how the page says it."""

    WITH_SOURCE = "with its source"
    BEHIND = "behind what it keeps"
    EARLY = "early, and cancels its source"
    ALL = "with the last of its sources"
    ANY = "with the first of its sources"
    ITSELF = "by itself"
    NEVER = "never"


class Fails(Enum):
    """The effect of a failure of the source. The value is how the page says it."""

    AT_ONCE = "ends it at once"
    BEHIND = "ends it behind what it keeps"
    DISCARDS = "ends it at once; what it keeps is discarded"
    IN_TURN = "ends it behind what came of that flow; what it keeps of others is discarded"
    ANSWERED = "is answered"
    REPLACED = "is replaced"
    NONE = "reads no flow"


@frozen
class Traits:
    """The traits that an operator declares, for the page and for the tests that measure them.

    ``demand``, ``others`` and ``keeps`` are expressions of Python in the operator's own arguments, in ``d``, the
    demand that there is, and in ``unbounded``, the demand without bound.
    """

    demand: str = "d"
    """The elements that are requested from the flow for a demand of ``d``, before any has come; empty for a source."""
    keeps: str = "0"
    """The most elements that are kept of each flow: taken from it, and neither passed on nor dropped."""
    completes: Completes = Completes.WITH_SOURCE
    fails: Fails = Fails.AT_ONCE
    others: str = ""
    """The elements that are requested from each other flow that is read at the same time."""
    names: str = ""
    """The names in other libraries that the docstring has no room for, as in it: ``RxPY: map; aiostream: map``."""
