"""A source with several readers, of somebody else's; docs/writing-a-shared-source.md begins with it."""

from typing import Any

from attrs import define, field, frozen

from reactive_aio import Flow
from reactive_aio.extend import Inlet, Pushed, Subscription, connect, flow_of


@define(eq=False)
class Radio:
    """One run of a flow for all who listen, on one event loop; the slowest of them sets the pace."""

    flow: Flow[Any]
    listeners: list["Listener"] = field(init=False, factory=list)
    asked: bool = field(init=False, default=False)
    run: Subscription | None = field(init=False, default=None)

    def listen(self) -> Flow[Any]:
        return flow_of(Listening(self))

    def keep_pace(self) -> None:
        if self.run is not None and not self.asked and all(listener.demand for listener in self.listeners):
            self.asked = True
            self.run.request(1)

    def leave(self, listener: "Listener") -> None:
        if listener in self.listeners:
            self.listeners.remove(listener)
            if self.listeners:
                self.keep_pace()
            elif self.run is not None:
                self.run.cancel()
                self.run, self.asked = None, False

    # -- what the run signals

    def on_subscribe(self, subscription: Subscription) -> None:
        self.run = subscription
        self.keep_pace()

    def on_chunk(self, items: list[Any]) -> None:
        self.asked = False
        for listener in tuple(self.listeners):
            if listener.demand:  # one who has come in the meantime may not want any
                listener.demand -= 1
                listener.inlet.on_chunk(list(items))
        self.keep_pace()

    def on_error(self, error: BaseException) -> None:
        self.run, self.asked = None, False
        listeners, self.listeners = self.listeners, []
        for listener in listeners:
            listener.inlet.on_error(error)

    def on_complete(self) -> None:
        self.run, self.asked = None, False
        listeners, self.listeners = self.listeners, []
        for listener in listeners:
            listener.inlet.on_complete()


@define(eq=False)
class Listener:
    """The subscription of one who listens."""

    radio: Radio
    inlet: Inlet[Any]
    demand: int = field(init=False, default=0)

    def request(self, n: int) -> None:
        self.demand += n
        self.radio.keep_pace()

    def cancel(self) -> None:
        self.radio.leave(self)


@frozen(eq=False)
class Listening(Pushed[Any]):
    radio: Radio

    def open(self, inlet: Inlet[Any]) -> Subscription:
        listener = Listener(self.radio, inlet)
        self.radio.listeners.append(listener)
        if len(self.radio.listeners) == 1:
            connect(self.radio.flow, self.radio)
        return listener
