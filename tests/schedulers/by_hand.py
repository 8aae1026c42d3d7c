"""Workers that are driven by the test: a pool of somebody else's, by the protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any

from attrs import define, field

from reactive_aio._remote.limit import ByteLimit
from reactive_aio.schedulers.base import Released, Report, Reports, Run, Work


@define(eq=False)
class ByHand:
    """Keeps the chunks that it is given until the test has them worked on (Workers)."""

    count: int = 2
    chunks: dict[int, Run] = field(init=False, factory=dict[int, Run])
    given: list[list[Any]] = field(init=False, factory=list[list[Any]])
    told: list[int] = field(init=False, factory=list[int])
    waiting: set[int] = field(init=False, factory=set[int])
    """The chunks that have given as many bytes of results as they may without leave to go on."""
    seconds: float = 0.0
    """The reported time of a chunk."""
    reports: Reports = field(init=False)
    most: int = field(init=False)
    work: Work = field(init=False)
    byte_limit: ByteLimit | None = None
    weigh: Callable[[Any], int] = lambda item: 0
    """Returns the bytes of an element or a result, as it is sent, if there is a limit."""
    released: Released | None = field(init=False, default=None)

    @property
    def name(self) -> str:
        return f"by_hand({self.count})"

    def check(self, stage: object) -> None:
        pass

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> ByHand:
        self.work, self.most, self.reports = work, most, reports
        return self

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        self.given.append(items)
        self.chunks[chunk] = self.work.begin(items, index)
        if self.byte_limit is not None:
            self.reports.sent(chunk, self.size(items))

    def size(self, items: list[Any]) -> int:
        return sum(map(self.weigh, items))

    def go_on(self, chunk: int) -> None:
        self.told.append(chunk)
        self.waiting.discard(chunk)

    def leave(self, released: Released) -> None:
        self.released = released

    def do(self, chunk: int, most: int | None = None) -> None:
        """Have a chunk worked on for so many results, or to its end if it may have as many bytes."""
        run, all_of_it, most = self.chunks[chunk], most is None, most or self.most
        items: list[Any] = []
        while not run.over and len(items) < most:
            if all_of_it and self.byte_limit is not None:
                if self.size(items) >= self.byte_limit.share:
                    self.waiting.add(chunk)
                    break
                items += run.part(1)
            else:
                items += run.part(most - len(items))  # as far as its time goes, which is short on a busy machine
        if run.over:
            del self.chunks[chunk]
        size = 0 if self.byte_limit is None else self.size(items)
        self.reports.reported(Report(chunk, items, run.taken, self.seconds, run.over, run.failure, size=size))

    def go(self) -> None:
        """Let the region go."""
        assert self.released is not None
        self.released()
