"""Operators that combine several flows into one."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "concat": Traits(completes=Completes.ALL, names="RxPY: ``concat``; aiostream: ``chain``"),
    "concat_eager": Traits(
        "prefetch", others="prefetch", keeps="prefetch", completes=Completes.ALL, fails=Fails.IN_TURN
    ),
    "merge": Traits("prefetch", others="prefetch", keeps="prefetch", completes=Completes.ALL, fails=Fails.IN_TURN),
    "zip": Traits(
        "prefetch",
        others="prefetch",
        keeps="prefetch",
        completes=Completes.ANY,
        fails=Fails.IN_TURN,
        names="aiostream: ``zip``",
    ),
    "combine_latest": Traits(
        "prefetch",
        others="prefetch",
        keeps="prefetch",
        completes=Completes.ALL,
        fails=Fails.IN_TURN,
        names="aiostream: ``ziplatest``; Pekko: ``zipLatest``",
    ),
    "with_latest_from": Traits(others="unbounded", keeps="1"),
    "race": Traits(others="d"),
    "start_with": Traits("d - len(items)"),
    "default_if_empty": Traits(),
    "switch_if_empty": Traits(completes=Completes.ALL),
}
