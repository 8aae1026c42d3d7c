"""The machine that parts a flow into substreams: what windows and groups have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Final

from attrs import define, field

from ..._arbiter import Audience, Gathering, Inner
from ..._core import budgets
from ..._core.containers import new_list
from ...errors import SourceCancelledError
from .substream import Substream

TURNS: Final = 8
"""More turns of the event loop than a reader needs to act on a signal."""


@define
class Ended:
    """Whether a parting, and with it all of its substreams, has ended. It outlives the parting, and holds nothing of it."""

    ended: bool = False
    waiting: list[int] = field(init=False, factory=new_list)
    """An entry for each listener that may still get the failure, until one has got it. Substreams are read on any thread."""

    def got(self) -> None:
        """Note that a listener has got the failure. It need not be reported any more."""
        self.waiting.clear()

    def unheard(self, leaving: int = 1) -> bool:
        """Note that listeners leave before they get the failure. Return whether the last is one of them, and none has got it."""
        try:
            left = [self.waiting.pop() for _ in range(leaving)]
        except IndexError:
            return False
        return left[-1] == 0


@define(eq=False)
class Parting(Gathering):
    """Reads one flow for an audience: the region, which gets the substreams, and the substreams that get elements.

    When the region is cancelled, substreams that are being read go on. The last one to leave has the flow cancelled.
    """

    upstream: Inner = field(init=False)
    audience: Audience[Parting | Substream] = field(init=False)
    ending: Ended = field(init=False, factory=Ended)

    def __attrs_post_init__(self) -> None:
        self.upstream = self.enter(None)
        self.audience = Audience(self._deserted, self.inlet.dropped)
        self.audience.join(self)

    def cut(self) -> None:
        """Disconnect from the flow."""
        self.remove(self.upstream)

    def _deserted(self) -> None:
        """Disconnect, because nobody listens any more."""
        self.cut()
        self.ending.ended = True

    def cancel(self) -> None:
        """Leave the substreams to their readers. The reader of a new substream has the time to begin."""
        self.over = True
        self.audience.leave(self)
        if not self.audience.over and self.unread():
            self.soon(self._give_up)

    def _give_up(self) -> None:
        """Leave the substreams without a reader."""
        for each in self.unread():
            each.end(SourceCancelledError(f"{self.inlet.where} was cancelled before anybody read the {each.title}"))
            self.release(each)  # behind its end: with the last one all has ended

    def unread(self) -> list[Substream]:
        """Return the substreams that nobody reads."""
        return [each for each in self.audience.members if isinstance(each, Substream) and each.reader is None]

    def release(self, substream: Substream) -> None:
        """Pass a substream no more elements."""
        substream.owner = None
        self.audience.leave(substream)

    # -- the end

    def close(self, error: BaseException | None) -> None:
        """End all listeners: the substreams, after their kept elements, and then the region if it still listens."""
        self.cut()
        told = [each for each in self.audience.members if isinstance(each, Substream)]
        if error is not None:
            self.ending.waiting += range(1 + len(told))
        trace = None if error is None else error.__traceback__
        self._end_some(self.audience.ends(error), partial(self._ended, error, told), error, trace)

    def _end_some(
        self,
        ends: Iterator[None],
        ended: Callable[[], None],
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End as many listeners as there is time for: there may be thousands. The end of the whole waits for the last."""
        if error is not None:
            BaseException.with_traceback(error, trace)  # readers may have raised it since the part before
        until = self.budget.moment()
        for _ in ends:
            if budgets.clock() >= until:
                self.next_part(lambda _: self._end_some(ends, ended, error, trace))
                return
        ended()

    def _ended(self, error: BaseException | None, told: list[Substream]) -> None:
        """End the whole, behind the substreams."""
        self.ending.ended = True  # at last, as in `Substream.end`
        if error is None:
            self.complete()
        else:
            self.soon(partial(self._fail_too, error, told), TURNS if told else 0)

    def end(self, error: BaseException | None) -> None:
        """Nothing: the region gets the end after the substreams."""

    def _fail_too(self, error: BaseException, told: list[Substream]) -> None:
        """Fail, unless a reader has got the failure by a substream, and has left. Then those who have not come never will."""
        if not self.over:
            self.ending.got()
            self.fail(error)
        elif self.ending.unheard(1 + sum(not each.opened for each in told)):
            self.inlet.dropped(error)

    def soon(self, call: Callable[[], None], turns: int = TURNS) -> None:
        """Call something when the readers of a new substream, or of its failure, have had the time to act on it.

        One who is given a substream by an ``async for`` subscribes to it a few turns later, when the substreams may have been
        cancelled because it was the last one wanted. And a reader that receives a failure from a substream most often
        leaves the others for it: to receive it from them as well would be once too often.
        """
        if turns:
            self.next_turn(lambda _: self.soon(call, turns - 1))
        else:
            call()

    # -- what the substreams say

    def on_opened(self, substream: Substream) -> None:
        """Note that a substream has got a reader."""

    def on_taken(self, substream: Substream, n: int) -> None:
        """Take note that elements of a substream are about to go to its reader."""

    def on_starving(self, substream: Substream) -> None:
        """Take note that the reader of a substream wants elements, and none are kept."""

    def on_left(self, substream: Substream, kept: int) -> None:
        """Note that a reader has cancelled, when ``kept`` elements were kept for it."""
        self.audience.leave(substream)
        if self.audience.over:
            self.ending.unheard()  # it leaves in the middle of the end, before its own has come
