"""Operators that let some of the elements through."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "filter": Traits(names="RxPY: ``filter``; aiostream: ``filter``"),
    "take": Traits("min(d, n)", completes=Completes.EARLY, names="RxPY: ``take``; aiostream: ``take``"),
    "skip": Traits("d + n", names="RxPY: ``skip``; aiostream: ``skip``"),
    "take_last": Traits(
        "unbounded",
        keeps="n",
        completes=Completes.BEHIND,
        fails=Fails.DISCARDS,
        names="RxPY: ``take_last``; aiostream: ``takelast``",
    ),
    "take_while": Traits(completes=Completes.EARLY, names="RxPY: ``take_while``; aiostream: ``takewhile``"),
    "take_until": Traits(completes=Completes.EARLY, names="RxPY: ``take_while(inclusive=True)``; aiostream: ``until``"),
    "skip_last": Traits("d + n", keeps="n", fails=Fails.DISCARDS, names="RxPY: ``skip_last``; aiostream: ``skiplast``"),
    "skip_while": Traits(names="RxPY: ``skip_while``; aiostream: ``dropwhile``"),
    "__getitem__": Traits("range(start, stop, step)[:d][-1] + 1", completes=Completes.EARLY),
    "distinct": Traits(keeps="max_keys", names="RxPY: ``distinct``"),
    "distinct_until_changed": Traits(keeps="1", names="RxPY: ``distinct_until_changed``"),
    "take_until_other": Traits(others="1", completes=Completes.EARLY),
    "of_type": Traits(),
    "sample_fraction": Traits(),
    "ignore_elements": Traits("unbounded", names="RxPY: ``ignore_elements``"),
}
