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


@processor("4.2", also=("OnErrorSignalWithoutPreceding",))
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


@processor("4.2", also=("spec104_mustCallOnErrorOnAllItsSubscribers", "spec210"))
class WrapsTheFailure(GoodProcessor):
    """passes on another error than the one that came, and gives that as its cause"""

    def on_error(self, error: Any) -> None:
        wrapped = None if error is None else RuntimeError("upstream failed")
        if wrapped is not None:
            wrapped.__cause__ = error
        super().on_error(wrapped)


@processor("4.1", also=("HappyPath", "spec201", "spec308_requestMustRegister"))
class MakesOtherElements(GoodProcessor):
    """is no identity: it passes on other elements than came"""

    def on_next(self, item: Any) -> None:
        super().on_next(None if item is None else str(item))
