"""A source with several readers, of somebody else's; docs/writing-a-shared-source.md begins with it."""

from typing import Any

from attrs import define, field, frozen

from reactive_aio import Flow
from reactive_aio.extend import Inlet, Pushed, SharedHost, Subscription, flow_of


@define(eq=False)
class Broadcast(SharedHost["Listener"]):
    """One run of a flow for all who listen, on one event loop; the slowest of them sets the pace."""

    asked: bool = field(init=False, default=False)

    def keep_pace(self) -> None:
        if not self.asked and all(listener.demand for listener in self.audience.members):
            self.asked = True
            self.request(1)

    def on_chunk(self, items: list[Any]) -> None:
        self.asked = False
        for listener in tuple(self.audience.members):
            if listener.demand:  # one who has come in the meantime may not want any
                listener.demand -= 1
                listener.inlet.on_chunk(list(items))
        self.keep_pace()


@define(eq=False)
class Listener:
    """The subscription of one who listens."""

    broadcast: Broadcast
    inlet: Inlet[Any]
    demand: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        self.demand += n
        self.broadcast.keep_pace()

    def cancel(self) -> None:
        self.broadcast.leave(self)
        self.broadcast.keep_pace()

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self.inlet.on_complete()
        else:
            self.inlet.on_error(error)


@define(eq=False)
class Radio:
    """Has one broadcast of a flow at a time, for as long as somebody listens."""

    flow: Flow[Any]
    broadcast: Broadcast | None = field(init=False, default=None)

    def listen(self) -> Flow[Any]:
        return flow_of(Listening(self))


@frozen(eq=False)
class Listening(Pushed[Any]):
    radio: Radio

    def open(self, inlet: Inlet[Any]) -> Subscription:
        broadcast = self.radio.broadcast
        if broadcast is None or broadcast.over:
            broadcast = self.radio.broadcast = Broadcast(self.radio.flow)
        listener = Listener(broadcast, inlet)
        broadcast.join(listener)
        return listener
