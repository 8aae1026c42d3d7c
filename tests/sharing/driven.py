"""Sources of shared flows that say what is asked of them, and that are driven by hand."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from reactive_aio import Flow, Shared
from reactive_aio.operators.sharing.reader import Reader
from tests.subscribers import ByHand, Recorder


@define(eq=False)
class Counted:
    """A source that says how often it was subscribed to, and what was asked of it."""

    source: Flow[Any]
    runs: int = 0
    asked: list[int] = field(factory=list)
    cancels: int = 0

    def flow(self) -> Flow[Any]:
        return self.source.do_on_subscribe(self._begun).do_on_request(self.asked.append).do_on_cancel(self._cancelled)

    def _begun(self) -> None:
        self.runs += 1

    def _cancelled(self) -> None:
        self.cancels += 1


def reads(shared: Flow[Any], request: int = 0) -> Recorder:
    """Have somebody subscribe who asks for so much at once."""
    recorder = Recorder(request)
    shared.subscribe(recorder)
    return recorder


@define
class Hot:
    """A shared source driven by hand."""

    publisher: ByHand
    shared: Shared[Any]

    @classmethod
    def of(cls, **options: Any) -> Hot:
        publisher = ByHand()
        return cls(publisher, Flow.from_publisher(publisher).share(**options))

    @property
    def readers(self) -> list[Reader]:
        """Those who read the run that may be joined."""
        run = self.shared._sharing.current
        assert run is not None
        return run.everybody
