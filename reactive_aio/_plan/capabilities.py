"""The capabilities of an engine, as data. They are read while a flow is built, and by the rewrites of its plan.

An engine makes the elements of a flow somewhere else than on an event loop: in the tasks of a cluster, on worker processes, in
a database. It may run the stages that follow there too, as far as they need no more than it has. A stage has a
`Requirement`, and an engine has `Capabilities`. So a flow is built the same whatever runs it, and a stage that can't be
sent to its engine is refused at once, where it is chained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, frozen

from .._core.containers import new_dict
from .._fusion.requirement import AWAIT, ELEMENT, PART, Requirement

if TYPE_CHECKING:
    from .._fusion.stage import Stage


Check = Callable[[object, "Stage[Any, Any]"], None]
"""Raises TypeError for a stage that can't be sent to the engine: its name and line in words, and what of it would be sent."""


def check_nothing(_: object, __: Stage[Any, Any]) -> None:
    """Accept every stage."""


@frozen
class Capabilities:
    """The stages that the engine can run at one point of a flow. Each point after a stage has its own object."""

    engine: str = ""
    """The name of the engine, as plans show it."""
    runs: frozenset[Requirement] = frozenset()
    """The requirements that a stage may have to be run there."""
    check: Check = check_nothing
    """Refuses what can't be sent there."""
    behind: Mapping[Requirement, frozenset[Requirement]] = field(factory=new_dict)
    """The requirements that can be met after a stage with this requirement. Without an entry they are unchanged."""

    def after(self, requirement: Requirement) -> Capabilities:
        """Return what can run after a stage of this kind that the engine runs."""
        left = self.behind.get(requirement)
        if left is None:
            return self
        return evolve(self, runs=left) if left else LOOP

    def meet(self, other: Capabilities) -> Capabilities:
        """Return what can be run on the elements of two flows alike, each of them a part of the whole."""

        def both(placed: object, sent: Stage[Any, Any]) -> None:
            self.check(placed, sent)
            other.check(placed, sent)

        runs = self.runs & other.runs & ON_PARTS
        names = self.engine if self.engine == other.engine else f"{self.engine} and {other.engine}"
        check = self.check if other.check == self.check else both
        return Capabilities(names, runs, check, BEHIND_PARTS) if PART in runs else LOOP


ON_PARTS: Final = frozenset({ELEMENT, AWAIT, PART})
"""The requirements of stages that run on one part of a stream without regard to the others."""
BEHIND_PARTS: Final[Mapping[Requirement, frozenset[Requirement]]] = {PART: frozenset()}
"""The result of a part has to be combined with the others before it is used."""

LOOP: Final = Capabilities()
"""Of an event loop: it runs every stage, and there is nothing to be decided or sent."""
