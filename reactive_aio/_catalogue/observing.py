"""Operators that observe signals and change nothing."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {
    "do_on_next": Traits(names="aiostream: ``action``"),
    "do_on_error": Traits(names="RxPY: ``do_action``"),
    "do_on_complete": Traits(names="RxPY: ``do_action``"),
    "do_on_subscribe": Traits(),
    "do_on_request": Traits(),
    "do_on_cancel": Traits(),
    "do_finally": Traits(names="RxPY: ``finally_action``"),
    "do_on_discard": Traits(),
    "log": Traits(names="aiostream: ``print``"),
    "checkpoint": Traits(),
    "strict": Traits(keeps="80"),
}
