"""One given element through stateless stages, run at once: ``Flow.of(x).map(f)`` in a ``flat_map`` needs no region."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context
from functools import lru_cache
from math import inf
from typing import Any

from .._core.guard import Failed, as_failure, as_of_a_generator, guarded
from .._fusion import RegionRun, Stage
from .._fusion.fuse import DEEPEST
from .._fusion.shape import shape_of
from .._plan import Nodes


@lru_cache(maxsize=512)
def is_one_for_one(kinds: tuple[Any, ...]) -> bool:
    """Return whether steps of these classes keep no state, and emit at most one element for each, and nothing else."""
    stage: Any = Stage
    if len(kinds) > DEEPEST or not all(issubclass(kind, Stage) for kind in kinds):
        return False
    shape = shape_of(kinds)
    speaks = shape.starting or shape.stopping or shape.holding or shape.reticent or shape.finishing or shape.closing
    return not speaks and all(kind.transform is stage.transform for kind in kinds)


def run_on_the_spot(nodes: Nodes, items: Iterator[Any], context: Context) -> list[Any] | Failed:
    """Return what the stages make of one element, or their failure, in a context of the flow's own.

    Each function is called once, and a call can't be interrupted: so there is no turn that could end in the middle.
    """
    stages: Any = nodes.steps  # as `is_one_for_one` has said
    run = RegionRun(stages, nodes.source, counted=True)
    gather = run.gather(inf)
    assert gather is not None
    run.total = 1
    made: list[Any] = []
    outcome = guarded(context, gather[0], items, run.pace, made, 1, *gather[1])
    if not isinstance(outcome, Failed):
        return made
    failure = as_of_a_generator(outcome.take())
    run.locate(failure)
    return Failed(as_failure(failure))
