"""The catalogue: every operator, source and end of `Flow` with its declared traits and its docstring.

The page of the operators is made from it, and the tests compare it with their measurements.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import frozen

from .._flow.calling import Calling
from .._flow.ends import Ends
from .._flow.flow import Flow
from .._flow.reductions import Reductions
from ..operators._fluent import Fluent
from . import (
    awaiting,
    combining,
    ends,
    filtering,
    flattening,
    observing,
    overflow,
    recovering,
    scheduling,
    sharing,
    sourcing,
    timing,
    transforming,
    windowing,
)
from .docstring import PEERS as PEERS
from .docstring import Told as Told
from .docstring import names_in as names_in
from .docstring import read as read
from .traits import Completes as Completes
from .traits import Fails as Fails
from .traits import Traits as Traits

TRAITS: Final[dict[str, Traits]] = {
    name: traits
    for records in (
        sourcing, transforming, filtering, combining, flattening, awaiting, timing,
        windowing, recovering, observing, scheduling, sharing, overflow, ends,
    )
    for name, traits in records.TRAITS.items()
}  # fmt: skip
"""The traits of each method, by its name."""

LEFT_OUT: Final = {
    "describe": "shows the plan",
    "diagram": "draws the plan",
    "to_frame": "gives a frame of Spark's, and runs nothing; docs/concepts/spark.md has it",
    "to_rdd": "gives an RDD of Spark's, likewise",
}
"""Public methods without traits, and why."""


@frozen
class Operator:
    """One method of `Flow`: an operator, a source or an end."""

    name: str
    family: type
    """The class that has the method."""
    function: Callable[..., Any]
    traits: Traits
    told: Told

    @property
    def is_end(self) -> bool:
        """Whether the method runs the flow."""
        return self.family in {Ends, Calling, Reductions}

    @property
    def peers(self) -> dict[str, tuple[str, ...]]:
        """The names in other libraries, from the docstring and the traits."""
        return names_in(self.traits.names) | self.told.peers


def _families() -> list[type[Any]]:
    return [base for base in Flow.__mro__ if issubclass(base, Fluent) and base is not Fluent]


def methods() -> Iterator[tuple[str, type, Callable[..., Any]]]:
    """Yield every public method of `Flow` that belongs here, with its family, in the order of the source."""
    for family in _families():
        for name, value in vars(family).items():
            function = getattr(value, "__func__", value)
            public = not name.startswith("_") or name == "__getitem__"
            if public and inspect.isfunction(function) and name not in LEFT_OUT:
                yield name, family, function


def operators() -> tuple[Operator, ...]:
    """Return all operators, sources and ends that have traits.

    >>> [take] = [each for each in operators() if each.name == "take"]
    >>> take.traits.demand, take.peers["Reactor"], take.told.sentence[:27]
    ('min(d, n)', ('take',), 'Emit the first ``n`` elemen')
    """
    return tuple(
        Operator(name, family, function, TRAITS[name], read(inspect.getdoc(function) or ""))
        for name, family, function in methods()
        if name in TRAITS
    )
