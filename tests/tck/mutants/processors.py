"""Broken processors."""

from __future__ import annotations

from typing import Any

from .correct import GoodProcessor
from .mutant import processor


@processor("1.4", fails=("spec104_mustCallOnErrorOnAllItsSubscribers",))
class KeepsLaterFailures(GoodProcessor):
    """swallows a failure of upstream once an element has come"""

    received: bool = False

    def on_next(self, item: Any) -> None:
        super().on_next(item)
        self.received = True

    def on_error(self, error: Any) -> None:
        if error is None or not self.received:
            super().on_error(error)


@processor("4.1")
class AsksOnceForFive(GoodProcessor):
    """asks upstream for five elements at most, and not again for the rest"""

    def request(self, n: int) -> None:
        super().request(min(n, 5))


@processor("4.2")
class WaitsForDemand(GoodProcessor):
    """passes a failure on only when something has been requested"""

    asked: bool = False

    def request(self, n: int) -> None:
        self.asked = True
        super().request(n)
        if self.ended and not self.over:
            super().finish()

    def finish(self) -> None:
        if self.asked or self.end is None:
            super().finish()
