"""What a task does with the elements of its partition: it packs them into frames, whichever way these travel."""

from __future__ import annotations

from abc import ABC, abstractmethod

from attrs import define, field

from ..notes import add_note
from ..remote.frames import FAILED, LAST, PART, Frame
from ..remote.pickling import Buffers, picklable
from .pickling import dumps
from .slices import Chunk


@define(eq=False)
class Outlet(ABC):
    """Where the elements of a partition go."""

    partition: int
    granted: int = field(init=False, default=0)
    """Elements that may be sent."""
    skip: int = field(init=False, default=0)
    """Elements to leave out: an earlier attempt has sent them."""
    place: int = field(init=False, default=0)
    """Elements that came, in the partitions before, to the stage that is done in turn."""
    stopped: bool = field(init=False, default=False)
    """Whether nobody listens any more."""

    @abstractmethod
    def hear(self) -> None:
        """Take the orders that have come; wait for one if nothing may be done without."""

    @abstractmethod
    def say(self, frame: Frame) -> None:
        """Have a frame go out."""

    def send(self, items: Chunk) -> Exception | None:
        """Send elements, no more than were granted; where one can't be pickled, those before it and the failure."""
        failure: Exception | None = None
        buffers: Buffers = []
        try:
            data = dumps(items, buffers)
        except Exception as error:
            items, failure, buffers = picklable(list(items), dumps), error, []
            add_note(failure, "an element that leaves the workers has to be picklable")
            data = dumps(items, buffers)
        if len(items):
            self.granted -= len(items)
            self.say(Frame(PART, self.partition, len(items), pickled=data, buffers=buffers))
        return failure

    def fail(self, packed: bytes) -> None:
        """Send the failure that ends the partition."""
        self.say(Frame(FAILED, self.partition, pickled=packed))

    def end(self, passed: int, *, decided: bool) -> None:
        """Say that all elements have been sent, how many came to the stage in turn, and whether nothing behind them matters."""
        self.say(Frame(LAST, self.partition, place=passed, detail=decided))
