"""The lock of what several event loops share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock, get_ident

from ..._core.guard import close_all
from ...hooks import drop_error


class Mutex:
    """A lock under which no other code runs, with one exception: a finalizer.

    The garbage collector may run at any allocation, also under the lock, and with it the ``__del__`` of any object of anybody's.
    If that calls a method here, the method finds out by `is_mine` that it is in the middle of a change, and has itself
    called `later`.
    """

    __slots__ = ("_caller", "lock", "owner", "put_off", "untouched")

    def __init__(self) -> None:
        self.lock: Lock = Lock()
        self.owner: int = 0
        """The thread that has it, or 0."""
        self.untouched: bool = False
        """Whether no thread has entered since this was set."""
        self.put_off: deque[Callable[[], object]] = deque()
        self._caller: int = 0
        """The thread that calls the delayed functions, or 0."""

    def __enter__(self) -> None:
        self.lock.acquire()
        self.owner, self.untouched = get_ident(), False

    def __exit__(self, *exc_info: object) -> None:
        self.owner = 0  # as `leave`, without a call
        self.lock.release()
        if self.put_off:
            self.call_put_off()

    def enter(self) -> bool:
        """Take the lock, which `leave` releases. Return False if this thread has it, in the middle of a change."""
        if not self.lock.acquire(False):
            if self.owner == get_ident():
                return False
            self.lock.acquire()
        self.owner, self.untouched = get_ident(), False
        return True

    def leave(self) -> None:
        """Release the lock, and call the delayed functions."""
        self.owner = 0
        self.lock.release()
        if self.put_off:
            self.call_put_off()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the lock."""
        return self.owner == get_ident()

    def later(self, call: Callable[[], object]) -> None:
        """Call something when this thread has released the lock."""
        self.put_off.append(call)

    def call_put_off(self) -> None:
        """Call the delayed functions. Those that they delay are called here too, so that the stack does not grow."""
        if self._caller == get_ident():
            return
        self._caller = get_ident()
        try:
            while self.put_off:
                try:
                    call = self.put_off.popleft()
                except IndexError:  # another thread has taken the last one
                    return
                for error in close_all((call,)):
                    drop_error(error)
        finally:
            self._caller = 0
