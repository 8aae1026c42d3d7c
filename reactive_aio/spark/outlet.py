"""What a task does with the elements of its partition: it packs them into frames, whichever way these travel."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from attrs import define, field

from ..remote.frames import FAILED, LAST, PART, Frame
from .pickling import dumps_by_value


@define(eq=False)
class Outlet(ABC):
    """Where the elements of a partition go."""

    partition: int
    granted: int = field(init=False, default=0)
    """Elements that may be sent."""
    skip: int = field(init=False, default=0)
    """Elements to leave out: an earlier attempt has sent them."""
    stopped: bool = field(init=False, default=False)
    """Whether nobody listens any more."""
    _dumps: Callable[[Any], bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._dumps = _dumps

    @abstractmethod
    def hear(self) -> None:
        """Take the orders that have come; wait for one if nothing may be done without."""

    @abstractmethod
    def say(self, frame: Frame) -> None:
        """Have a frame go out."""

    def send(self, items: list[Any]) -> Exception | None:
        """Send elements, no more than were granted; where one can't be pickled, those before it and the failure."""
        failure: Exception | None = None
        try:
            data = self._pickled(items)
        except Exception as error:
            items, failure = self._picklable(items), error
            failure.add_note("an element that leaves the workers has to be picklable")
            data = self._pickled(items)
        if items:
            self.granted -= len(items)
            self.say(Frame(PART, self.partition, len(items), pickled=data))
        return failure

    def fail(self, packed: bytes) -> None:
        """Send the failure that ends the partition."""
        self.say(Frame(FAILED, self.partition, pickled=packed))

    def end(self) -> None:
        """Say that all elements have been sent."""
        self.say(Frame(LAST, self.partition))

    def _pickled(self, items: list[Any]) -> bytes:
        try:
            return self._dumps(items)
        except Exception:
            # By value, for classes that can't be imported on the other side, such as those of a script.
            self._dumps = dumps_by_value
            return self._dumps(items)

    def _picklable(self, items: list[Any]) -> list[Any]:
        """Give the elements before the first that can't be pickled."""
        for at, item in enumerate(items):
            try:
                self._pickled([item])
            except Exception:
                return items[:at]
        return items


def _dumps(items: list[Any]) -> bytes:
    return pickle.dumps(items, 5)
