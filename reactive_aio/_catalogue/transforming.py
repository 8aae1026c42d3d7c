"""Operators that turn elements into other elements."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "map": Traits(names="RxPY: ``map``; aiostream: ``map``"),
    "flat_map_iterable": Traits("1 if d < unbounded else d", keeps="1", completes=Completes.BEHIND, fails=Fails.BEHIND),
    "map_batches": Traits(
        "size if d < unbounded else d", keeps="size", completes=Completes.BEHIND, fails=Fails.DISCARDS
    ),
    "map_not_none": Traits(),
    "scan": Traits("d - (initial is not MISSING)", keeps="1", names="RxPY: ``scan``; aiostream: ``accumulate``"),
    "index": Traits(names="aiostream: ``enumerate``"),
    "sort_by": Traits(
        "unbounded",
        keeps="max_size",
        completes=Completes.BEHIND,
        fails=Fails.DISCARDS,
        names="RxPY: ``to_list`` and ``sorted``",
    ),
    "handle": Traits(completes=Completes.EARLY),
    "pairwise": Traits("d + 1", keeps="1"),
    "materialize": Traits(fails=Fails.ANSWERED, completes=Completes.BEHIND),
    "dematerialize": Traits(completes=Completes.EARLY),
    "through": Traits(names="RxJava: ``compose``; aiostream: ``pipe``"),
    "then": Traits(),
}
