"""Stages run to the end over whatever there is to iterate over: for engines, which know nothing of demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

from .._core.guard import FAILURES
from .origin import Placed
from .passes import OVER
from .run import RegionRun
from .stage import Stage


def run_stages(stages: Sequence[Placed[Stage[Any, Any]]], items: Iterable[Any], where: str) -> Iterator[Any]:
    """Yield the results of a flow's stages for elements, fused into one loop, each result on demand.

    ``where`` names the source of the elements. A failure has a note that names it, the operator and its line.
    """
    run = RegionRun(stages, where, counted=False)
    remaining = iter(items)
    try:
        while run.phase is not OVER:
            yield from run.current or run.begin(remaining, inf) or ()
            run.ended(input_ended=run.pace.ended)
    except GeneratorExit:
        raise
    except FAILURES as error:
        run.locate(error)
        raise
    finally:
        run.close()
