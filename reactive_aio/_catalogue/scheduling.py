"""Operators that say where regions run."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "publish_on": Traits(
        "prefetch", keeps="prefetch", completes=Completes.BEHIND, fails=Fails.BEHIND, names="RxPY: ``observe_on``"
    ),
    "repartition": Traits(),
    "subscribe_on": Traits(names="RxPY: ``subscribe_on``"),
}
