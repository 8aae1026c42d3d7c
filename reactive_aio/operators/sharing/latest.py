"""The latest value, for readers on any event loops: nothing is kept but that one."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from attrs import define, field, frozen

from ..._core.containers import new_dict
from ..._core.here import Here
from ..._plan import Inlet, Pushed
from ...schedulers.base import Released
from ...spec import Subscription, add_demand, subtract_demand
from .mutex import Mutex


@define(eq=False)
class Latest(Here):
    """A value that any thread may replace. A reader that requests gets the current one, if it has not had that yet."""

    STAYS: ClassVar[str] = (
        "a State can't be pickled: its readers are in this process. Send the new value back to this process and set it here"
    )

    value: Any
    version: int = field(init=False, default=1)
    closed: bool = field(init=False, default=False)
    mutex: Mutex = field(init=False, factory=Mutex)
    readers: dict[LatestReader, None] = field(init=False, factory=new_dict)

    def put(self, value: Any) -> None:
        """Replace the value, and notify all readers."""
        if self.mutex.is_mine:  # a finalizer, in the middle of a change
            self.mutex.later(partial(self.put, value))
            return
        with self.mutex:
            if self.closed:
                raise RuntimeError("the state is closed: it takes no more values")
            before, self.value = self.value, value
            self.version += 1
            due = self._due()
        del before  # its finalizer is somebody else's code, which does not run under the lock
        _tell(due)

    def close(self) -> None:
        """Let nothing come after the current value."""
        if self.mutex.is_mine:
            self.mutex.later(self.close)
            return
        with self.mutex:
            self.closed = True
            due = self._due()
        _tell(due)

    def _due(self) -> list[LatestReader]:
        """Return the readers that have not been woken yet. The caller holds the lock."""
        due = [each for each in self.readers if not each.posted]
        for each in due:
            each.posted = True
        return due


@define(eq=False)
class LatestReader:
    """A reader of the value: the Subscription of a region, on its event loop."""

    latest: Latest
    inlet: Inlet[Any]
    posted: bool = field(init=False, default=True)
    """Whether an event of this reader is on its way."""
    _had: int = field(init=False, default=0)
    """The version that it got last."""
    _demand: int = field(init=False, default=0)
    _release: Released = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._release = self.inlet.hold()

    def request(self, n: int) -> None:
        """Ask for values; what there is comes in an event."""
        self._demand = add_demand(self._demand, n)
        with self.latest.mutex:
            posted, self.posted = self.posted, True
        if not posted:
            self.tell()

    def cancel(self) -> None:
        """Leave."""
        if self.latest.mutex.is_mine:
            self.latest.mutex.later(self.cancel)
            return
        with self.latest.mutex:
            there = self in self.latest.readers
            self.latest.readers.pop(self, None)
        if there:
            self._release()

    def tell(self) -> None:
        """Schedule an event, from any thread."""
        self.inlet.post(self._look, None)

    def _look(self, _: None) -> None:
        """Emit the latest element if it is wanted and new, and then the end."""
        latest = self.latest
        with latest.mutex:
            self.posted = False
            if self not in latest.readers:
                return
            version, value, closed = latest.version, latest.value, latest.closed
        if version != self._had and self._demand:
            self._had = version
            self._demand = subtract_demand(self._demand, 1)
            self.inlet.on_chunk([value])
        if closed and version == self._had:
            self.cancel()
            self.inlet.on_complete()


def _tell(due: list[LatestReader]) -> None:
    for each in due:
        each.tell()


@frozen(eq=False)
class StateFlow(Pushed[Any]):
    """Source of ``State.flow``."""

    latest: Latest = field(repr=False)

    @property
    def name(self) -> str:
        """Return its name in plans."""
        return "state"

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read."""
        reader = LatestReader(self.latest, inlet)
        with self.latest.mutex:
            self.latest.readers[reader] = None
        reader.tell()
        return reader
