"""Operators that map each element to a flow."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "flat_map": Traits(
        "max_concurrency",
        others="prefetch",
        keeps="prefetch",
        completes=Completes.BEHIND,
        fails=Fails.DISCARDS,
        names="aiostream: ``flatmap``",
    ),
    "concat_map": Traits("min(d, 1)", others="d", names="aiostream: ``concatmap``"),
    "concat_map_eager": Traits(
        "max_concurrency", others="prefetch", keeps="prefetch", completes=Completes.BEHIND, fails=Fails.BEHIND
    ),
    "switch_map": Traits("32", others="d", completes=Completes.BEHIND, names="aiostream: ``switchmap``"),
    "exhaust_map": Traits("32", others="d", completes=Completes.BEHIND),
}
