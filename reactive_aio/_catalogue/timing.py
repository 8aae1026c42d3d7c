"""Operators that go by the clock."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "delay": Traits("min(d, max_size)", keeps="max_size", completes=Completes.BEHIND, fails=Fails.BEHIND),
    "delay_subscription": Traits(names="RxPY: ``delay_subscription``"),
    "debounce": Traits("unbounded", keeps="2", completes=Completes.BEHIND, fails=Fails.DISCARDS),
    "throttle_first": Traits("unbounded"),
    "sample": Traits("unbounded", keeps="2", completes=Completes.BEHIND, fails=Fails.DISCARDS),
    "rate_limit": Traits("min(d, max_elements)"),
    "timestamp": Traits(),
    "elapsed": Traits(),
}
