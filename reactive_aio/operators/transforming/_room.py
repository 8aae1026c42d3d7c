"""The limit of `sort_by`: the default of the method, by which the stage knows where it may run."""

from typing import Final

ROOM: Final = 1_000_000
"""Elements that are taken to fit into this process, unless a flow says how many there may be."""
