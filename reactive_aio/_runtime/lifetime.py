"""Lifetimes: all that has been started for a subscription, or for a region of it, and has not yet been cleaned up.

The lifetime of a whole subscription also collects what its cleanup raises, for an end that is awaited.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Final

from attrs import define, field

from .._core.guard import close_all, raise_all
from .._core.notes import add_note
from ..hooks import also, also_failed, drop_error
from ..schedulers.base import Released

NOTED: Final = 16
"""Notes of further failures that are kept."""


class _Waking(threading.local):
    """The calls that a thread is to make, while it makes some."""

    calls: list[Callable[[], None]] | None = None


_waking: Final = _Waking()


def _wake(waiting: Iterable[Callable[[], None]]) -> None:
    """Call those that wait for an end, one after another: a flow may be nested thousands deep, and each ends the next."""
    if _waking.calls is not None:
        _waking.calls.extend(waiting)
        return
    _waking.calls = [*waiting]
    try:
        failures = close_all(_waking.calls)  # which sees those that are added meanwhile
    finally:
        _waking.calls = None
    raise_all(failures)


@define(eq=False)
class Lifetime:
    """Counts what must have ended before a terminal may return: regions, tasks, threads, jobs.

    Holds are taken and released on any thread. The count can go up again after it was zero only while a hold
    is there, so zero is final.
    """

    _whole: Lifetime | None = None
    """The lifetime that this is a part of; its waiter joins the threads."""
    _held: int = field(init=False, default=0)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _waiting: tuple[Callable[[], None], ...] = field(init=False, default=())
    _join: Callable[[], None] | None = field(init=False, default=None)
    """Joins the latest thread that has reported its end, which it does just before it ends."""
    _awaited: bool = field(init=False, default=False)
    """Whether an end is awaited that raises the failures of the cleanup."""
    _told: bool = field(init=False, default=False)
    """Whether a subscriber gets the failure of the flow, and `settle` will hear which one that was."""
    _failures: tuple[BaseException, ...] = field(init=False, default=())
    """The errors of the cleanup. There are at most as many as things to clean up after the end of the flow."""
    _notes: tuple[str, ...] = field(init=False, default=())
    """Notes for the failure of the flow: the latest, as retries may go on for ever."""
    _doubted: tuple[BaseException, ...] = field(init=False, default=())
    """Failures that have come to the end by another way as well, perhaps. It will be known when the end is."""
    _reported: tuple[BaseException, ...] = field(init=False, default=())
    """Failures that have gone to the hook, the latest. They may come by another way as well until the end."""

    def part(self) -> Lifetime:
        """Return the lifetime of a region. Its place is kept until nothing is held there, because it takes turns."""
        return Lifetime(self._whole or self)

    def hold(self) -> Released:
        """Count something that has been started; call the result once when it has ended."""
        with self._lock:
            self._held += 1
        return self._release

    def _release(self, join: Callable[[], None] | None = None) -> None:
        if join is not None:
            (self._whole or self)._keep(join)
        with self._lock:
            self._held -= 1
            if self._held:
                return
            waiting, self._waiting = self._waiting, ()
        if waiting:
            _wake(waiting)

    def _keep(self, join: Callable[[], None]) -> None:
        # Each joins the one before it and the waiter joins the last, so that one place is enough for any number.
        with self._lock:
            before, self._join = self._join, join
        if before is not None:
            before()

    def then(self, call: Callable[[], None]) -> None:
        """Call something when nothing is held any more, on any thread. Call it at once if nothing is held now."""
        with self._lock:
            if self._held:
                self._waiting += (call,)
                return
        call()

    # -- what the cleanup raises

    @classmethod
    def awaited(cls) -> Lifetime:
        """Return a lifetime whose end is awaited: it keeps the failures of the cleanup for `outcome`."""
        lifetime = cls()
        lifetime._awaited = True
        return lifetime

    @classmethod
    def told(cls) -> Lifetime:
        """Return a lifetime whose end goes to a subscriber: it keeps doubted failures for `settle`."""
        lifetime = cls()
        lifetime._told = True
        return lifetime

    def cleanup_failed(self, error: BaseException) -> None:
        """Keep the failure of a cleanup for the awaited end, or report it to the hook without one; from any thread."""
        whole = self._whole or self
        with whole._lock:
            if whole._awaited:
                whole._failures += (error,)
                return
        drop_error(error)

    def note(self, text: str) -> None:
        """Add a note to the failure of the flow; from any thread."""
        whole = self._whole or self
        with whole._lock:
            whole._notes = (*whole._notes, text)[-NOTED:]

    def doubt(self, error: BaseException) -> bool:
        """Keep a failure that the end may raise or signal, since it has come to the flow by another way too. If it does not, report it then.

        Return False if the end tells nobody, or too many are kept: then it is to be reported now.
        """
        whole = self._whole or self
        with whole._lock:
            known = any(each is error for each in (*whole._doubted, *whole._reported))
            if (whole._awaited or whole._told) and not known and len(whole._doubted) < NOTED:
                whole._doubted += (error,)
                known = True
        return known

    def reported(self, error: BaseException) -> None:
        """Note that a failure has gone to the hook. It does not go there again if it comes by another way."""
        whole = self._whole or self
        with whole._lock:
            whole._doubted = tuple(each for each in whole._doubted if each is not error)
            whole._reported = (*whole._reported, error)[-NOTED:]

    def has_reported(self, error: BaseException) -> bool:
        """Return whether a failure has gone to the hook."""
        return any(each is error for each in (self._whole or self)._reported)

    def report_once(self, error: BaseException | None) -> None:
        """Pass a failure to the hook that the end neither raises nor signals, if there is one, unless it has gone there."""
        if error is not None and not self.has_reported(error):
            self.reported(error)
            drop_error(error)

    def outcome(self, error: BaseException | None) -> BaseException | None:
        """Return what the awaited end raises: the failure of the flow, else the first of the cleanup.

        The others are noted.
        """
        with self._lock:
            failures, self._failures = self._failures, ()
            notes, self._notes = self._notes, ()
            doubted, self._doubted = self._doubted, ()
        try:
            for each in doubted:
                if each is not error:
                    self.report_once(each)
                    notes += (also(each),)
            for failure in failures:
                if error is None:
                    error = failure
                else:
                    also_failed(error, failure)
            if error is not None:
                own = also(error)  # it may have been reported before it came to the end
                for note in notes:
                    if note != own:
                        add_note(error, note)
            return error
        finally:
            self._reported = ()
            del error, failures, doubted  # a traceback leads back to here

    def settle(self, error: BaseException | None) -> None:
        """Report the doubted failures, but for the one that the subscriber has got."""
        with self._lock:
            self._told = False
            doubted, self._doubted = self._doubted, ()
        for each in doubted:
            if each is not error:
                self.report_once(each)
        self._reported = ()

    def unawaited(self, error: BaseException | None = None) -> None:
        """Pass the failure of the flow and those of its cleanup to the hook, later ones too: nobody awaits the end any more."""
        with self._lock:
            self._awaited = False
            failures, self._failures = self._failures, ()
            doubted, self._doubted = self._doubted, ()
        for each in doubted if error is None else (error, *doubted):
            self.report_once(each)
        for failure in failures:
            drop_error(failure)
        self.then(self._forget)

    def _forget(self) -> None:
        """Let go of the reported failures. Nothing is held by which they can come again."""
        self._reported = ()

    async def ended(self) -> None:
        """Wait until nothing is held.

        Cancelling the waiter does not cut the cleanup short: the cancellation is put off until all has ended
        and is raised then.
        """
        loop, here = asyncio.get_running_loop(), get_ident()
        put_off: asyncio.CancelledError | None = None
        done = loop.create_future()

        def tell() -> None:
            if not done.done():
                done.set_result(None)

        def wake() -> None:
            if get_ident() == here:
                tell()  # without the loop's being woken, which is a call of the system
            else:
                loop.call_soon_threadsafe(tell)

        if self._held:
            self.then(wake)  # once, since a cancel scope of anyio cancels anew in each turn
        while self._held:
            try:
                await done
            except asyncio.CancelledError as cancelled:
                put_off, done = cancelled, loop.create_future()
        if self._join is not None:
            self._join()
        if put_off is not None:
            raise put_off
