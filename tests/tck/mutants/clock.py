"""The clock by which calls are measured: it stands still, but where a mutant takes its time, whatever else the machine does."""

from __future__ import annotations

from attrs import define


@define
class Clock:
    """Stands in for the module ``time`` of who measures."""

    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now

    def take(self, seconds: float) -> None:
        self.now += seconds


CLOCK = Clock()
LONG = 0.1
"""Seconds; longer than a call may take that has to return quickly."""
