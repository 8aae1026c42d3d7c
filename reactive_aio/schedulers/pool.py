"""The common part of pools of workers: when they start, who holds them, and when they end."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from attrs import define, field

from .._core.containers import new_dict, new_list
from ..errors import SchedulerClosedError
from .base import Released, not_started
from .kept import Kept


class Team(Protocol):
    """Running workers."""

    def stop(self, told: Callable[[], None]) -> None:
        """End all workers. The last one calls ``told``, on any thread, as its last act.

        If all have ended, ``told`` is called now. Each further call does the same.
        """

    def is_here(self) -> bool:
        """Return whether the calling thread is a thread of the workers."""
        ...

    def join(self) -> None:
        """Wait for the very end, after ``told``. This takes no time."""


class Member(Protocol):
    """A region's hold on a pool."""

    def expel(self, error: BaseException) -> None:
        """Fail the region, and stop working for it."""


TeamT = TypeVar("TeamT", bound=Team)


@define(eq=False, repr=False)
class Pool(Kept, Generic[TeamT]):
    """Workers shared by regions. They start with the first region and end with the last, or with the open pool."""

    count: int
    """The number of chunks that are processed at the same time."""
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _team: TeamT | None = field(init=False, default=None)
    _home: int = field(init=False, default=0)
    """The process in which the team was formed. A process that is forked from it has a copy without workers."""
    _members: dict[Member, TeamT] = field(init=False, factory=new_dict)
    _kept: bool = field(init=False, default=False)
    _closed: bool = field(init=False, default=False)
    _past: list[TeamT] = field(init=False, factory=new_list)
    """Teams that have lost a worker and have not ended."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How plans show the place."""

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def _form(self) -> TeamT:
        """Return a new team; takes no time."""

    def _enter(self, make: Callable[[TeamT], Member]) -> None:
        """Add the member that is made for the current team."""
        self._check_home()
        with self._lock:
            if self._closed:
                raise SchedulerClosedError(f"{self.name} has been closed. Build the flow with a new scheduler")
            team = self._running()
            self._members[make(team)] = team

    def _running(self) -> TeamT:
        """Return the team, formed if there is none. The caller holds the lock."""
        if self._team is None:
            try:
                self._team, self._home = self._form(), os.getpid()
            except (RuntimeError, OSError) as error:
                raise not_started(self.name, error) from error
        return self._team

    @property
    def _is_copy(self) -> bool:
        """Whether this is the copy, in a forked process, of a pool with workers.

        Its lock may be a copy of a locked one.
        """
        return (self._team is not None or bool(self._past)) and self._home != os.getpid()

    def _check_home(self) -> None:
        if self._is_copy:
            raise SchedulerClosedError(
                f"the workers of {self.name} belong to process {self._home}, but this process, {os.getpid()}, is a "
                "fork of it. Build the flow with a new pool"
            )

    def ends_with(self, member: Member) -> bool:
        """Return whether the team of a member has no other member, now or later."""
        with self._lock:
            team = self._members.get(member)
            return team is not None and self._last(member, team)

    def _last(self, member: Member, team: TeamT) -> bool:
        kept = self._kept and self._team is team
        return not kept and all(each is not team for other, each in self._members.items() if other is not member)

    def let_go(self, member: Member, team: TeamT, released: Released) -> None:
        """Release a member that needs no more work. The last one ends the workers."""
        with self._lock:
            # One that is not there has been expelled by `close`, which ends the workers itself.
            last = member in self._members and self._last(member, team)
            self._members.pop(member, None)
            if last and self._team is team:
                self._team = None
        if last:
            team.stop(lambda: self._ended(team, released))
        else:
            released()

    def _dismiss(self, team: TeamT) -> list[Member]:
        """Retire a team, so that the next member gets new workers. Return the members of the old team."""
        with self._lock:
            members = [member for member, each in self._members.items() if each is team]
            known = self._team is team
            if known:
                self._team = None
                self._past.append(team)
        if known and not members:
            team.stop(lambda: self._ended(team, None))
        return members

    def _ended(self, team: TeamT, released: Released | None) -> None:
        with self._lock:
            if team in self._past:
                self._past.remove(team)
        if released is not None:
            released(team.join)

    def open(self) -> Self:
        """Keep the workers until ``close``, also while no region runs on them."""
        self._check_home()
        with self._lock:
            if self._closed:
                raise SchedulerClosedError(f"{self.name} has been closed")
            self._kept = True
            self._running()
        return self

    def _shut(self, told: Callable[[], None]) -> list[TeamT]:
        if self._is_copy:
            told()
            return []
        with self._lock:
            self._closed = True
            teams, self._team = [*self._past, *filter(None, [self._team])], None
            members, self._members = self._members, {}
        for member in members:
            member.expel(SchedulerClosedError(f"{self.name} was closed while a flow was running on it"))
        left = [*teams]

        def one_ended() -> None:
            with self._lock:
                left.pop()
                last = not left
            if last:
                told()

        for team in teams:
            team.stop(one_ended)
        if not teams:
            told()
        return teams
