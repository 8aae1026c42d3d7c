"""The ends."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "subscribe": Traits(names="Reactor, RxJava, RxPY: ``subscribe``"),
    "open": Traits("1"),
    "to_list": Traits(
        "unbounded",
        keeps="unbounded",
        fails=Fails.DISCARDS,
        names="RxJava: ``toList``; RxPY: ``to_list``; aiostream: ``list``",
    ),
    "first": Traits("1", completes=Completes.EARLY, names="RxPY: ``first``; aiostream: ``item(0)``"),
    "last": Traits("unbounded", keeps="1", fails=Fails.DISCARDS, names="RxPY: ``last``; aiostream: ``item(-1)``"),
    "reduce": Traits("unbounded", keeps="1", names="RxPY: ``reduce``; aiostream: ``reduce``"),
    "collect": Traits("unbounded", keeps="unbounded"),
    "count": Traits("unbounded", names="RxPY: ``count``"),
    "for_each": Traits(
        "max_concurrency if is_async(fn) else unbounded", names="RxPY: ``for_each``; aiostream: ``action``"
    ),
    "for_each_batch": Traits("size", keeps="size", fails=Fails.DISCARDS),
    "to_spark": Traits("size", keeps="size"),
    "run_sync": Traits("unbounded", keeps="unbounded", fails=Fails.DISCARDS),
    "to_set": Traits("unbounded", keeps="unbounded", fails=Fails.DISCARDS),
    "to_dict": Traits("unbounded", keeps="unbounded", fails=Fails.DISCARDS),
    "to_sorted_list": Traits("unbounded", keeps="unbounded", fails=Fails.DISCARDS),
    "top_k": Traits("unbounded", keeps="2 * k", fails=Fails.DISCARDS),
    "count_by_key": Traits("unbounded"),
    "reduce_by_key": Traits("unbounded"),
    "single": Traits("2", keeps="1", fails=Fails.DISCARDS, names="RxPY: ``single``"),
    "element_at": Traits("index + 1", completes=Completes.EARLY, names="RxPY: ``element_at``; aiostream: ``item``"),
    "sum": Traits("unbounded", keeps="1"),
    "min": Traits("unbounded", keeps="1", fails=Fails.DISCARDS),
    "max": Traits("unbounded", keeps="1", fails=Fails.DISCARDS),
    "all": Traits("1", completes=Completes.EARLY, names="RxPY: ``all``"),
    "any": Traits("1", completes=Completes.EARLY, names="RxPY: ``some``"),
    "contains": Traits("1", completes=Completes.EARLY),
    "is_empty": Traits("1", completes=Completes.EARLY),
    "drain": Traits("unbounded", names="RxPY: ``ignore_elements``"),
}
