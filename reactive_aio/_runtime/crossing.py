"""Crossings: what stands between two regions of one flow, seen from upstream."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field, frozen

from ..spec import Subscription
from .driver import RegionDriver
from .handover import Handover
from .passage import Passage


@frozen(eq=False)
class Crossing:
    """The boundary between two regions (a Receiver): each signal is an event downstream.

    Fusion must not carry a user's function across it: in ``map(f).publish_on(s).map(g)`` the scheduler was
    asked for so that ``g`` runs on ``s`` and ``f`` does not. Chunks keep their order, and the end stays behind
    them; what is under way is bounded by what the downstream region has requested.
    """

    downstream: RegionDriver
    on_chunk: Callable[[list[Any]], None]
    on_error: Callable[[BaseException], None]
    on_complete: Callable[[], None]

    @classmethod
    def to(cls, driver: RegionDriver) -> Crossing:
        """Return the one to a region."""
        return cls(
            downstream=driver,
            on_chunk=driver.arrive,
            on_error=partial(driver.post, driver.take_end),
            on_complete=partial(driver.post, driver.take_end, None),
        )

    def on_subscribe(self, subscription: Subscription) -> None:
        """Nothing: the drivers were linked when they were made."""


@define(eq=False)
class Gathering:
    """The boundary after a combinator on the thread of a blocking iterator (a Receiver). A turn crosses as one list.

    The iterator gives each element before it makes the next, so that no element waits while it blocks. To send each by itself would
    cost a wake-up for each. A handover takes the list to the next region while the thread is blocked.
    """

    _loop: AbstractEventLoop
    """Of the combinator."""
    _crossing: Crossing
    _handover: Handover
    _made: list[Any] | None = field(init=False, default=None)
    """Elements that have not crossed yet, since this turn began."""

    @classmethod
    def begin(cls, driver: RegionDriver | Passage) -> None:
        """Put it after the last combinator on the loop of a region, from now on."""
        while driver.place.outer is not None:
            driver = driver.place.outer
        assert not isinstance(driver, Passage)
        crossing = driver.receiver
        if isinstance(crossing, Crossing):
            next_one = crossing.downstream
            handover = next_one.place.handover = Handover(next_one.loop, next_one.context, crossing.on_chunk)
            driver.receiver = cls(driver.loop, crossing, handover)

    def on_subscribe(self, subscription: Subscription) -> None:
        """Nothing: the drivers were linked when they were made."""

    def on_chunk(self, items: list[Any]) -> None:
        """Hold the elements until the turn is over."""
        handover = self._handover
        if self._made is None:
            self._made = handover.begin()
            self._loop.call_soon(self._cross)
        self._made += items
        if handover.idle:
            handover.arm()

    def on_error(self, error: BaseException) -> None:
        """Pass on the failure, after the elements."""
        self._cross()
        self._crossing.on_error(error)

    def on_complete(self) -> None:
        """Pass on the end, after the elements."""
        self._cross()
        self._crossing.on_complete()

    def _cross(self) -> None:
        made, self._made = self._made, None
        if made is not None and (rest := self._handover.rest(made)):
            self._crossing.on_chunk(rest)
