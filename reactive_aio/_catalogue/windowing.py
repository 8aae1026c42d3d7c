"""Operators that gather elements into groups."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "buffer": Traits(
        "size * d",
        keeps="size - 1",
        fails=Fails.DISCARDS,
        names="RxPY: ``buffer_with_count``; aiostream: ``chunks``",
    ),
    "buffer_timeout": Traits("size", keeps="size", completes=Completes.BEHIND, fails=Fails.DISCARDS),
    "sliding": Traits(
        "size + (d - 1) * step", keeps="size", fails=Fails.DISCARDS, names="RxPY: ``buffer_with_count(count, skip)``"
    ),
    "buffer_until_changed": Traits(
        keeps="max_size", completes=Completes.BEHIND, fails=Fails.DISCARDS, names="Pekko: ``groupedAdjacentBy``"
    ),
    "window": Traits("size * d", keeps="size", fails=Fails.DISCARDS),
    "group_by": Traits("prefetch", keeps="prefetch", completes=Completes.BEHIND, fails=Fails.DISCARDS),
    "group_by_key": Traits(
        "1 if d < unbounded else d", keeps="max_keys * max_size", completes=Completes.BEHIND, fails=Fails.DISCARDS
    ),
}
