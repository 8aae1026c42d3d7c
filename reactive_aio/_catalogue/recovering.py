"""Operators that subscribe again, or to another flow, when a flow ends."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "repeat": Traits(completes=Completes.ALL, names="RxPY: ``repeat``; aiostream: ``cycle``"),
    "repeat_when": Traits(completes=Completes.ALL),
    "retry": Traits(fails=Fails.ANSWERED, names="RxPY: ``retry``"),
    "retry_if": Traits(fails=Fails.ANSWERED),
    "retry_when": Traits(fails=Fails.ANSWERED),
    "on_error_resume_next": Traits(fails=Fails.ANSWERED, names="RxPY: ``catch``"),
    "on_error_return": Traits(fails=Fails.ANSWERED, names="RxPY: ``catch``"),
    "on_error_complete": Traits(fails=Fails.ANSWERED, names="RxPY: ``catch``"),
    "on_error_map": Traits(fails=Fails.REPLACED),
    "timeout": Traits(names="aiostream: ``timeout``"),
}
