"""One given element through stateless stages, run at once: ``Flow.of(x).map(f)`` in a ``flat_map`` needs no region."""

from __future__ import annotations

import asyncio
from contextvars import Context
from functools import lru_cache
from math import inf
from operator import length_hint
from typing import Any

from attrs import define

from .._core.guard import FAILURES, Failed, as_failure, as_of_a_generator
from .._fusion import RegionRun, Stage
from .._fusion.fuse import DEEPEST
from .._fusion.shape import shape_of
from .._plan import Nodes, Pulled, SubscribeOn


@lru_cache(maxsize=512)
def is_one_for_one(kinds: tuple[Any, ...]) -> bool:
    """Return whether steps of these classes keep no state, and emit at most one element for each, and nothing else."""
    stage: Any = Stage
    if len(kinds) > DEEPEST or not all(issubclass(kind, Stage) for kind in kinds):
        return False
    shape = shape_of(kinds)
    speaks = shape.starting or shape.stopping or shape.holding or shape.reticent or shape.finishing or shape.closing
    return not speaks and all(kind.transform is stage.transform for kind in kinds)


def is_read_here(nodes: Nodes) -> bool:
    """Return whether a flow signals on the running event loop, and has no stages but such as keep no state."""
    scheduler = nodes.scheduler
    if scheduler is not None and not scheduler.is_here():
        return False
    kinds = tuple([type(step.operator) for step in nodes.steps])
    if scheduler is not None:
        kinds = tuple([kind for kind in kinds if kind is not SubscribeOn])  # they say: here
    return not kinds or is_one_for_one(kinds)


@define(eq=False)
class Unlocated(Failed):
    """A failure that gets its note when it is taken: a retry lets go of most failures before anybody sees them."""

    _run: RegionRun

    def take(self) -> BaseException:
        """Add the note, return the exception, and let go of it."""
        error = super().take()
        self._run.locate(error)
        return error


@define(eq=False)
class Spot:
    """A flow of one given element, run as often as it is read. Its stages keep no state, so one run does for all."""

    _source: Pulled[Any]
    _run: RegionRun

    @classmethod
    def of(cls, nodes: Nodes) -> Spot:
        """Return that of a flow whose stages are `is_one_for_one`."""
        stages: Any = nodes.steps
        source: Any = nodes.source
        run = RegionRun(stages, source, counted=True)
        run.total = 1
        return cls(source.operator, run)

    def made(self, most: int, context: Context) -> list[Any] | Failed | None:
        """Return what the stages make of the element, or their failure; in a context of its own. None for several elements.

        Each function is called once, and a call can't be interrupted: so there is no turn that could end in the middle.
        """
        items, run = self._source.iterate(), self._run
        count = length_hint(items)
        if count > 1 or count > most:
            return None
        gather = run.gather(inf)
        assert gather is not None
        made: list[Any] = []
        try:
            context.copy().run(gather[0], items, run.pace, made, 1, *gather[1])
        except (asyncio.CancelledError, StopIteration) as error:  # another failure stands for it
            failure = as_of_a_generator(error)
            run.locate(failure)
            return Failed(as_failure(failure))
        except FAILURES as error:
            return Unlocated(error, run)
        return made
