"""Operators that wait for a function of the user's."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "map_async": Traits(
        "max(concurrency, min(d, 4 * concurrency))",
        keeps="4 * concurrency",
        completes=Completes.BEHIND,
        fails=Fails.BEHIND,
        names="RxJava: ``concatMapEager``, ``flatMapSingle``; aiostream: ``map``",
    ),
    "filter_when": Traits(
        "max(concurrency, min(d, 4 * concurrency))",
        keeps="4 * concurrency",
        completes=Completes.BEHIND,
        fails=Fails.BEHIND,
        names="Mutiny: ``select.when``; aiostream: ``filter``",
    ),
}
