"""What pools of workers have in common: when they start, who holds them, and when they end."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from attrs import define, field

from ..errors import SchedulerClosedError
from .base import Released


class Team(Protocol):
    """Running workers."""

    def stop(self, told: Callable[[], None]) -> None:
        """Have all workers end; ``told`` is called, on any thread, as the last act of the last one."""

    def join(self) -> None:
        """Wait for the very end, behind ``told``, which takes no time."""


class Member(Protocol):
    """A region's hold on a pool."""

    def expel(self, error: BaseException) -> None:
        """Fail the region, and work for it no more."""


TeamT = TypeVar("TeamT", bound=Team)


@define(eq=False)
class Pool(ABC, Generic[TeamT]):
    """Workers shared by regions: they start with the first one and end with the last, unless the pool is held open."""

    count: int
    """The chunks that are worked on at the same time."""
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _team: TeamT | None = field(init=False, default=None)
    _members: set[Member] = field(init=False, factory=set[Member])
    _kept: bool = field(init=False, default=False)
    _closed: bool = field(init=False, default=False)

    @property
    @abstractmethod
    def name(self) -> str:
        """How plans show the place."""

    @abstractmethod
    def _form(self) -> TeamT:
        """Give a new team; takes no time."""

    def _enter(self, make: Callable[[TeamT], Member]) -> None:
        """Take in the member that is made for the team at work."""
        with self._lock:
            if self._closed:
                raise SchedulerClosedError(f"{self.name} has been closed: build the flow with a new one")
            if self._team is None:
                self._team = self._form()
            self._members.add(make(self._team))

    def _leave(self, member: Member, team: TeamT, released: Released) -> None:
        """Let a member go that is not worked for any more."""
        with self._lock:
            self._members.discard(member)
            last = self._team is team and not self._members and not self._kept
            if last:
                self._team = None
        if last:
            team.stop(lambda: released(team.join))
        else:
            released()

    def open(self) -> Self:
        """Keep the workers until ``close``, also while no region runs on them."""
        with self._lock:
            if self._closed:
                raise SchedulerClosedError(f"{self.name} has been closed")
            self._kept = True
            if self._team is None:
                self._team = self._form()
        return self

    def close(self) -> None:
        """End the workers for good and wait for them; flows that still run on them end with SchedulerClosedError."""
        ended = threading.Event()
        team = self._shut(ended.set)
        if team is not None:
            ended.wait()
            team.join()

    def _shut(self, told: Callable[[], None]) -> TeamT | None:
        with self._lock:
            self._closed = True
            team, self._team = self._team, None
            members, self._members = self._members, set[Member]()
        for member in members:
            member.expel(SchedulerClosedError(f"{self.name} was closed while a flow was running on it"))
        if team is not None:
            team.stop(told)
        return team

    async def __aenter__(self) -> Self:
        return self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        home, ended = asyncio.get_running_loop(), asyncio.Event()

        def told() -> None:
            home.call_soon_threadsafe(ended.set)

        team = self._shut(told)
        if team is not None:
            await ended.wait()
            team.join()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
