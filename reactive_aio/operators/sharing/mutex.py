"""The lock of what several event loops share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock, get_ident

from ..._core.guard import close_all
from ...hooks import drop_error


class Mutex:
    """A lock under which nobody else's code runs, but for one exception: a finalizer.

    The garbage collector may run at any allocation, also under the lock, and with it the ``__del__`` of any object of anybody's.
    If that calls a method here, the method finds out by `is_mine` that it is in the middle of a change, and has itself
    called `later`.
    """

    __slots__ = ("_later", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = 0
        self._later: deque[Callable[[], None]] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = get_ident()

    def __exit__(self, *exc_info: object) -> None:
        self.leave()

    def enter(self) -> bool:
        """Take the lock, to be given back by `leave`; False if this thread has it already, and is in the middle of a change."""
        if not self._lock.acquire(False):
            if self._owner == get_ident():
                return False
            self._lock.acquire()
        self._owner = get_ident()
        return True

    def leave(self) -> None:
        """Give the lock back, and call what has been put off."""
        self._owner = 0
        self._lock.release()
        if self._later:
            self._see_to_what_was_put_off()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the lock."""
        return self._owner == get_ident()

    def later(self, call: Callable[[], None]) -> None:
        """Have something called when this thread has let go of the lock."""
        self._later.append(call)

    def _see_to_what_was_put_off(self) -> None:
        while True:
            try:
                call = self._later.popleft()
            except IndexError:  # another thread may have taken the last one
                return
            for error in close_all((call,)):
                drop_error(error)
