"""Operators that await a function of the user."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "map_async": Traits(
        "max(max_concurrency, min(d, 4 * max_concurrency))",
        keeps="4 * max_concurrency",
        completes=Completes.BEHIND,
        fails=Fails.BEHIND,
        names="RxJava: ``concatMapEager``, ``flatMapSingle``; aiostream: ``map``",
    ),
    "filter_when": Traits(
        "max(max_concurrency, min(d, 4 * max_concurrency))",
        keeps="4 * max_concurrency",
        completes=Completes.BEHIND,
        fails=Fails.BEHIND,
        names="Mutiny: ``select.when``; aiostream: ``filter``",
    ),
}
